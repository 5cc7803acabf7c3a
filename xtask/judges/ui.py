"""Does in Chromium what a user does in the window of talkpath, from an empty folder to each answer.

    python ui.py TALKPATH FOLDER

Every tab is opened at 400 and at 1400 px, in light and in dark, and each task is done once at each width. There is a
fault where

- axe-core finds what it calls serious or critical;
- the console shows an error;
- the page is wider than the window;
- a task does not come to its answer;
- a figure shown is not the one of summary.json;
- the first paint takes longer than 0.3 s, or the page has more than 300 kB.

Screenshots are left in FOLDER.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, sync_playwright

WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
BAD = ("serious", "critical")
TABS = ("compare", "measure", "serve", "send", "runs", "studies", "scenario")
#: The time for one task, ms.
TASK_TIME = 60_000
#: The bounds of issue 54: s, B.
FIRST_PAINT = 0.3
MOST_BYTES = 300_000
FIRST_PAINT_AT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
BYTES = "() => performance.getEntriesByType('resource').reduce((sum, it) => sum + it.encodedBodySize, 0)"


#: What is marked in the text that has the focus.
MARKED = "() => { const it = document.activeElement; return it.value?.slice(it.selectionStart, it.selectionEnd); }"


class Window:
    """A window that the program serves, on a folder of its own."""

    def __init__(self, program, folder):
        self.out = folder
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TALKPATH_")}
        command = [program, "ui", "--no-open", "--out", folder]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        self.address = self.process.stdout.readline().strip()

    def end(self):
        """Ctrl-C twice, as a user who leaves what runs."""
        for _ in range(2):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                try:
                    self.process.wait(1)
                except subprocess.TimeoutExpired:
                    continue
        return self.process.wait(20)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def go(page, tab):
    page.evaluate("(tab) => { location.hash = `#/${tab}`; }", tab)
    page.locator(f"nav a[data-view={tab}][aria-current=page]").wait_for()
    page.wait_for_timeout(300)


def fill(page, label, value):
    page.get_by_label(label, exact=True).locator("visible=true").first.fill(value)


def choose(page, label, value):
    page.get_by_label(label, exact=True).locator("visible=true").first.select_option(value)


def done(page, time=TASK_TIME):
    """Waits until the job that was started has ended well, and its run is shown."""
    page.locator(".job [role=status]", has_text="Done after").wait_for(timeout=time)


def checked_table(page, out):
    """The differences between the table that is shown and summary.json."""
    for folded in page.locator(".found details.folded > summary").all():
        folded.click()
    name = page.locator(".found > .help").first.inner_text()
    summary = json.loads((out / name / "summary.json").read_text())
    heads = page.locator(".found thead th").all_inner_texts()
    rows = page.locator(".found tbody tr").all()
    column = heads.index("round trip, ms p50") if "round trip, ms p50" in heads else None
    cells = [(flow, figures) for cell in summary["cells"] for flow, figures in cell["flows"].items()]
    if len(cells) != len(rows):
        yield f"{len(rows)} rows for {len(cells)} flows"
    for row, (flow, figures) in zip(rows, cells, strict=False):
        texts = row.locator("th, td").all_inner_texts()
        expected = figures.get("round_trip_delay_ms.p50", {}).get("median")
        if texts[0] != flow:
            yield f"a row is of {texts[0]}, not of {flow}"
        if column is not None and expected is not None and abs(float(texts[column]) - expected) > 0.0501:
            yield f"{flow}: {texts[column]} ms is shown, {expected} ms is in summary.json"


def compares_a_line(page, out, _far):
    go(page, "compare")
    fill(page, "Or your own line", "50 Mb")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator(".field.wrong", has_text="is not understood").wait_for()
    fill(page, "Or your own line", "50/10")
    page.get_by_text("More", exact=True).click()
    fill(page, "Repetitions", "20")
    fill(page, "How long each transport runs", "10s")
    page.locator("form.task pre code", has_text="--line=50/10 --duration=10s --repeat=20").wait_for()
    page.get_by_role("button", name="Compare", exact=True).click()
    done(page)
    page.locator(".found .answer").first.wait_for()
    if not page.locator(".verdict").inner_text().startswith(("Yes.", "Barely.", "No.")):
        yield "the answer does not begin with yes, barely or no"
    yield from checked_table(page, out)
    page.get_by_role("button", name="Report").click()
    report = page.frame_locator(".found iframe")
    report.locator("h1").wait_for()
    if report.locator("svg").count() == 0:
        yield "the report has no figure"
    page.get_by_role("button", name="Play").click()
    page.frame_locator(".found iframe[title='The packets']").locator("#player").wait_for(timeout=TASK_TIME)


def measures_to_a_host(page, out, far):
    go(page, "measure")
    fill(page, "Far end", far)
    fill(page, "Rounds", "1")
    for name in ("TCP", "QUIC datagrams", "QUIC stream", "QUIC, a stream a message"):
        page.get_by_label(name, exact=True).uncheck()
    page.get_by_role("button", name="Measure", exact=True).click()
    # Repetitions that the machine disturbed run again for a minute at most.
    done(page, 2 * TASK_TIME)
    yield from checked_table(page, out)


def is_the_far_end(page, _out, _far):
    go(page, "serve")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_text("The key, for the other computer").wait_for()
    fill(page, "Port, for UDP and TCP", str(free_port()))
    page.get_by_role("button", name="Start the far end").click()
    page.get_by_text("The far end listens").wait_for()
    page.locator(".job", has_text="A firewall must let port").wait_for()
    start = page.get_by_role("button", name="Start the far end")
    if start.is_enabled():
        yield "a far end that listens can be started again"
    page.get_by_role("button", name="Cancel").click()
    page.locator(".job [role=status]", has_text="Cancelled").wait_for(timeout=TASK_TIME)
    if start.is_disabled():
        yield "a far end that has ended cannot be started again"


def sends(page, out, far):
    """The tests 1 to 5 of spoor-2014's appendix B: generated data and a file over TCP and UDP, and the log."""
    for protocol in ("tcp", "udp"):
        go(page, "runs")
        go(page, "send")
        fill(page, "Far end", far)
        choose(page, "Protocol", protocol)
        fill(page, "Size of a message, B", "1024")
        fill(page, "Number of messages", "10")
        page.get_by_role("button", name="Send the burst").click()
        done(page)
        printed = page.locator("pre.table").inner_text()
        if "1024" not in printed:
            yield f"the statistics of a burst over {protocol} are: {printed}"
        page.get_by_role("button", name="Log").click()
        log = page.locator(".found pre").last.inner_text()
        if "1024" not in log or protocol.upper() not in log.upper():
            yield f"the log of a burst over {protocol} has: {log}"
        go(page, "runs")
        go(page, "send")
        choose(page, "What is sent", "a file")
        page.locator("input[type=file]").nth(1).set_input_files(
            files=[{"name": "sent.bin", "mimeType": "application/octet-stream", "buffer": bytes(range(256)) * 40}]
        )
        page.wait_for_function("() => [...document.querySelectorAll('select')].some((it) => it.value === 'sent.bin')")
        fill(page, "Far end", far)
        choose(page, "Protocol", protocol)
        page.get_by_role("button", name="Send the file").click()
        done(page)
        page.locator(".large", has_text="sent.bin arrived intact").wait_for()
    kept = [file for file in (out.parent / "far" / "received").rglob("*") if file.is_file()]
    if not any(file.read_bytes() == bytes(range(256)) * 40 for file in kept):
        yield f"the far end kept no file that is the same: {kept}"


def reads_runs(page, out, _far):
    go(page, "runs")
    page.locator(".runs li").first.wait_for()
    before = page.locator(".runs li").count()
    chosen = page.locator(".runs li", has_text="10Mbps")
    if before < 2:
        yield f"{before} runs are listed"
        return
    # A run of a study has no summary to lay beside another one.
    for title in ("a call beside an upload", "10Mbps"):
        page.locator(".runs li", has_text=title).first.get_by_role("checkbox").check()
    page.get_by_role("button", name="Side by side").click()
    page.frame_locator("iframe").locator("h1").wait_for(timeout=TASK_TIME)
    fill(page, "Search", "no run has these words")
    page.get_by_text("0 runs").wait_for()
    fill(page, "Search", "")
    page.wait_for_function("(count) => document.querySelectorAll('.runs li').length === count", arg=before)
    chosen.first.get_by_role("button").click()
    page.get_by_role("button", name="Scenario", exact=True).click()
    page.locator(".found pre", has_text="[flow").wait_for()
    name = page.locator(".found > .help").first.inner_text()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    page.locator(".runs li").first.wait_for()
    if (out / name).exists():
        yield f"{name} is not deleted"


def runs_a_study(page, _out, _far):
    go(page, "studies")
    entry = page.locator(".runs li", has=page.get_by_role("heading", name="foderaro-1995"))
    entry.get_by_text("Run it").click()
    entry.get_by_role("button", name="Run the study").click()
    page.locator(".job [role=status]", has_text="after").wait_for(timeout=2 * TASK_TIME)
    page.frame_locator(".found iframe").locator("h1").wait_for()
    yield from ()


def edits_a_scenario(page, out, _far):
    go(page, "scenario")
    text = page.get_by_label("Scenario", exact=True)
    example = text.input_value()
    text.fill(example.replace("duration", "durration").replace('"udp", ', '"upd", '))
    page.locator(".mistakes li").nth(1).wait_for()
    page.locator(".mistakes li", has_text="durration").get_by_role("button").first.click()
    marked = page.evaluate(MARKED)
    if "durration" not in marked:
        yield f"a click on a mistake marks {marked!r}"
    text.fill(example.replace("repeat = 10", "repeat = 2"))
    page.get_by_text("Valid: 3 cells").wait_for()
    page.get_by_role("button", name="Save, to run it").click()
    page.get_by_role("button", name="Run the scenario").click()
    done(page)
    yield from checked_table(page, out)


TASKS = (compares_a_line, measures_to_a_host, is_the_far_end, sends, runs_a_study, edits_a_scenario, reads_runs)


def looks(page, where, folder, name):
    """Faults of the page as it is now."""
    page.screenshot(path=folder / f"{name}.png", full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        yield f"{where}: {wide} px wider than the window"
    for violation in Axe().run(page, options={"iframes": False}).response["violations"]:
        if violation["impact"] in BAD:
            nodes = violation["nodes"]
            yield f"{where}: {violation['impact']}: {violation['help']}: {len(nodes)} places, first {nodes[0]['target'][0]}"


def opened(browser, window, width, scheme, errors):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda it: it.type == "error" and errors.append(it.text))
    page.on("pageerror", lambda it: errors.append(str(it)))
    page.goto(window.address)
    page.locator("form.task").first.wait_for()
    return page


def faults_of_looks(browser, window, folder):
    """Every tab at each width, in light and in dark."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            errors = []
            page = opened(browser, window, width, scheme, errors)
            paint, size = page.evaluate(FIRST_PAINT_AT), page.evaluate(BYTES)
            if paint is None or paint > 1000 * FIRST_PAINT:
                yield f"the first paint is after {paint} ms"
            if size > MOST_BYTES:
                yield f"the page has {size} B"
            if "#" in page.url and len(page.url.split("#")[1]) > 20:
                yield f"the token stays in the address: {page.url}"
            for tab in TABS:
                go(page, tab)
                if tab == "studies":
                    page.locator(".runs li").first.wait_for()
                page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
                yield from looks(page, f"{tab} at {width} px, {scheme}", folder, f"{tab}-{width}-{scheme}")
            yield from (f"{width} px, {scheme}: console: {error}" for error in errors)
            page.context.close()


def faults_of_tasks(browser, program, folder):
    """Each task at each width, from an empty folder."""
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        place = folder / f"tasks-{width}"
        shutil.rmtree(place, ignore_errors=True)
        window, far_window = Window(program, place / "near"), Window(program, place / "far")
        port = free_port()
        errors = []
        far_page = opened(browser, far_window, width, scheme, errors)
        go(far_page, "serve")
        choose(far_page, "Who is served", "--open")
        fill(far_page, "Port, for UDP and TCP", str(port))
        far_page.get_by_label("Keep files that come whole").check()
        far_page.get_by_role("button", name="Start the far end").click()
        far_page.get_by_text("The far end listens").wait_for()
        page = opened(browser, window, width, scheme, errors)
        for task in TASKS:
            name = task.__name__.replace("_", " ")
            try:
                found = list(task(page, place / "near", f"127.0.0.1:{port}"))
            except Error as why:
                found = [str(why).split("Call log")[0].strip()]
            print(f"{name} at {width} px: {len(found)} faults", flush=True)
            yield from (f"{name} at {width} px: {fault}" for fault in found)
            yield from looks(page, f"{name} at {width} px, {scheme}", folder, f"{task.__name__}-{width}")
        if not far_page.locator(".job [role=log]").inner_text().strip():
            yield f"{width} px: the far end shows nothing of what came"
        received = far_page.get_by_label("Log of what came").inner_text()
        if "File: sent.bin" not in received or "Arrived: intact" not in received:
            yield f"{width} px: the log of what came has: {received}"
        yield from looks(far_page, f"the far end at {width} px", folder, f"far-end-{width}")
        yield from (f"{width} px: console: {error}" for error in errors)
        page.context.close()
        far_page.context.close()
        for ended in (window.end(), far_window.end()):
            if ended != 0:
                yield f"a window ends with {ended}"


def main():
    program, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start for root.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        empty = folder / "empty"
        shutil.rmtree(empty, ignore_errors=True)
        window = Window(program, empty)
        found = []
        try:
            found.extend(faults_of_looks(browser, window, folder))
            found.extend(faults_of_tasks(browser, program, folder))
        except Error as why:
            found.append(str(why))
        window.end()
        browser.close()
    print("\n".join(found))
    print(f"{len(TABS)} tabs, each 4 times, and {len(TASKS)} tasks, each twice: {len(found)} faults")
    sys.exit(1 if found else 0)


main()
