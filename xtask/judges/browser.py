"""Opens our pages in Chromium and judges them as a reader meets them.

    python browser.py FOLDER PAGE.html...

Each page is opened at 400 and at 1400 px, in light and in dark. A page has a fault where

- axe-core finds what it calls serious or critical;
- the console shows an error;
- it is wider than the window, so that something is cut off;
- what a script offers does not work: values under the arrow keys, names that switch lines off, zoom, the player's
  steps;
- without scripts it has no heading or no figure.

Screenshots of each are left in FOLDER.
"""

import shutil
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
BAD = ("serious", "critical")


#: The names under which the figures are saved.
SAVED_NAMES = """() => {
  const names = [], click = HTMLAnchorElement.prototype.click;
  HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
  const buttons = [...document.querySelectorAll(".tools button")];
  buttons.filter((it) => it.textContent === "Save SVG").forEach((it) => it.click());
  HTMLAnchorElement.prototype.click = click;
  return names;
}"""


def uses_of_a_figure(page):
    """What the first figures of a report do when somebody uses them."""
    plots = page.locator(".plot[role=group]")
    if plots.count():
        plots.first.focus()
        page.keyboard.press("ArrowRight")
        readout = plots.first.locator(".readout")
        if not readout.is_visible() or not readout.inner_text().strip():
            yield "an arrow key reads no value"
    switches = page.locator(".legend [role=switch]")
    if switches.count():
        switches.first.click()
        if switches.first.get_attribute("aria-checked") != "false" or not page.locator("svg .off").count():
            yield "a name of the legend switches nothing off"
        switches.first.press("Enter")
        if switches.first.get_attribute("aria-checked") != "true" or page.locator("svg .off").count():
            yield "a name of the legend does not switch its lines on again"
    saved = page.evaluate(SAVED_NAMES)
    if any(name.startswith(".") for name in saved) or len(set(saved)) < len(saved):
        yield f"figures are saved under no name or under one: {saved}"
    larger = page.locator(".tools button", has_text="+")
    if larger.count():
        figure = larger.first.locator("xpath=ancestor::figure | ancestor::section[1]").last
        before = figure.locator(".plot svg").first.text_content()
        larger.first.click()
        if figure.locator(".plot svg").first.text_content() == before:
            yield "zoom leaves the axis as it was"
        page.locator(".tools button", has_text="All of the time").first.click()
        yield from uses_of_the_cursor(page, figure.locator(".plot[role=group]").first)


#: Whether a figure of messages reads more than the time, with no message within six units of the cursor.
READS_FAR_DOT = """() => [...document.querySelectorAll("figure")].some((figure) => {
  const dots = [...figure.querySelectorAll("path.dots:not(.off)")];
  const at = Number(figure.querySelector(".cursor")?.getAttribute("d")?.match(/^M([-.\\d]+)/)?.[1]);
  if (!dots.length || Number.isNaN(at) || figure.querySelectorAll(".readout:not([hidden]) p").length < 2) return false;
  const places = dots.flatMap((it) => [...it.getAttribute("d").matchAll(/M([-.\\d]+)/g)].map((found) => Number(found[1])));
  return !places.some((place) => Math.abs(place - at) < 6);
})"""


def uses_of_the_cursor(page, plot):
    """It stays at its time when the axis changes, reads what is there and nothing else, and leaves the browser its keys."""
    plot.focus()
    for key in ("ArrowRight", "+", "+", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    cursor = plot.locator(".cursor").first
    near = cursor.get_attribute("d")
    page.keyboard.press("0")
    if cursor.get_attribute("d") == near:
        yield "the cursor stands where it stood before the zoom"
    for _ in range(8):
        page.keyboard.press("+")
    read = plot.locator(".readout p").first
    times = []
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        times.append(read.inner_text())
    if len(set(times)) < len(times):
        yield f"steps in an enlarged figure read one time: {times}"
    page.keyboard.press("0")
    for _ in range(20):
        page.keyboard.press("Shift+ArrowRight")
        if page.evaluate(READS_FAR_DOT):
            yield "a message is read where there is none"
            break
    ticks = plot.locator("svg").first.text_content()
    page.keyboard.press("Control+=")
    if plot.locator("svg").first.text_content() != ticks:
        yield "a figure takes a key of the browser"


#: The speeds whose value is not what stands there: "1/3" is a third.
WRONG_SPEEDS = """() => [...document.querySelectorAll("#speed option")].filter((it) => {
  const [of, parts = 1] = it.textContent.split("/").map(Number);
  return Math.abs(Number(it.value) - of / parts) > 1e-12;
}).map((it) => `${it.textContent} is ${it.value}`)"""


def uses_of_the_player(page):
    """Steps, seeks and plays."""
    if not page.locator("#player #toggle").count():
        return
    now = page.locator("#now")
    begin = now.inner_text()
    page.locator("#forward").click()
    stepped = now.inner_text()
    if stepped == begin:
        yield "a step forward leaves the time as it was"
    page.keyboard.press("End")
    if now.inner_text() == stepped:
        yield "the End key does not go to the end"
    page.keyboard.press("Home")
    wrong = page.evaluate(WRONG_SPEEDS)
    if wrong:
        yield f"a speed is another one than its name says: {wrong}"
    page.locator("#toggle").click()
    page.wait_for_timeout(1500)
    page.locator("#toggle").click()
    if now.inner_text() == begin:
        yield "it does not play"


def faults(browser, file, folder):
    """What is wrong with a page, a line each."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            where = f"{file.parent.name}/{file.name} at {width} px, {scheme}"
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            errors = []
            page.on("console", lambda it, errors=errors: it.type == "error" and errors.append(it.text))
            page.on("pageerror", lambda it, errors=errors: errors.append(str(it)))
            page.goto(file.resolve().as_uri())
            page.screenshot(path=folder / f"{file.parent.name}-{file.stem}-{width}-{scheme}.png", full_page=True)
            page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if wide > 0:
                yield f"{where}: {wide} px wider than the window"
            for violation in Axe().run(page).response["violations"]:
                if violation["impact"] in BAD:
                    nodes = violation["nodes"]
                    first = nodes[0]["target"][0]
                    yield f"{where}: {violation['impact']}: {violation['help']}: {len(nodes)} places, first {first}"
            for fault in [*uses_of_a_figure(page), *uses_of_the_player(page)]:
                yield f"{where}: {fault}"
            for error in errors:
                yield f"{where}: console: {error}"
            context.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.resolve().as_uri())
    if not (page.locator("h1").count() and page.locator("svg").count()):
        yield f"{file.parent.name}/{file.name}: without scripts it has no heading or no figure"
    context.close()


def main():
    folder, *files = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start for root.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for file in files:
            found += faults(browser, file, folder)
        browser.close()
    print("\n".join(found))
    print(f"{len(files)} pages, each 4 times: {len(found)} faults")
    sys.exit(1 if found else 0)


main()
