// A scenario file: a text with all its mistakes at their lines, saved and run.

import { button, element, errorPlace } from "./elements.js";
import { form } from "./forms.js";
import { get, post } from "./server.js";
import { watch } from "./jobs.js";

const EXAMPLE = `name = "a call beside an upload"
duration = "30 s"
repeat = 10

[path]
up   = { rate = "1 Mbps", delay = "20 ms", queue = { kind = "drop-tail", limit = "64 kB" } }
down = { rate = "8 Mbps", delay = "20 ms" }

[flow.call]
transport = "udp"
workload = { kind = "voice", codec = "g711", echo = true }

[flow.upload]
transport = "tcp"
workload = { kind = "bulk" }

[sweep]
"flow.call.transport" = ["udp", "tcp", "tcp-nodelay"]
`;

export async function scenarioView(place, task) {
  const files = (await get("files")).filter((name) => name.endsWith(".toml"));
  const text = element("textarea", { id: "scenario", spellcheck: false, value: EXAMPLE, "aria-describedby": "found" });
  const name = element("input", { type: "text", id: "scenario-name", value: "scenario.toml", autocomplete: "off" });
  const found = element("div", { id: "found", "aria-live": "polite" });
  const { place: error, show } = errorPlace();
  const job = element("div");
  const run = element("div");

  const mark = (mistake) => {
    const lines = text.value.split("\n");
    const start = lines.slice(0, mistake.line - 1).join("\n").length + (mistake.line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[mistake.line - 1]?.length ?? 0));
  };
  const entry = (mistake) => element("li", {}, mistake.line === null ? "" : button(`line ${mistake.line}, column ${mistake.column}`, () => mark(mistake)),
    ` ${mistake.key ? `${mistake.key}: ` : ""}${mistake.message}${mistake.help ? ` — ${mistake.help}` : ""}`);
  const check = async () => {
    show("");
    try {
      const checked = await post("check", { text: text.value });
      const summary = checked.valid
        ? `Valid: ${checked.cells} cells, ${checked.repetitions} repetitions in all.`
        : `${checked.mistakes.length} mistakes:`;
      found.replaceChildren(element("p", { className: checked.valid ? "good" : "bad" }, summary),
        element("ul", { className: "mistakes" }, [...checked.mistakes, ...checked.warnings].map(entry)),
        ...checked.understood.map((line) => element("p", { className: "help" }, line)));
      return checked.valid;
    } catch (why) {
      show(why);
      return false;
    }
  };
  const save = async () => {
    const valid = await check();
    try {
      await post("scenario", { name: name.value, text: text.value });
      if (valid) run.replaceChildren(form(task, (id, own) => watch(job, id, own), { file: name.value }).place);
    } catch (why) {
      show(why);
    }
  };
  let waiting;
  text.addEventListener("input", () => { run.replaceChildren(); clearTimeout(waiting); waiting = setTimeout(check, 500); });
  const pick = element("select", { id: "scenario-file", onchange: async () => {
    if (!pick.value) return;
    try {
      text.value = (await post("given", { name: pick.value })).text;
      name.value = pick.value;
      check();
    } catch (why) {
      show(why);
    }
  } }, element("option", { value: "" }, "an example"), files.map((file) => element("option", { value: file }, file)));
  place.replaceChildren(element("h2", {}, "A scenario file"),
    element("p", { className: "lead" }, "An experiment of your own. Mistakes are shown as you write; a click goes to the line."),
    element("div", { className: "field" }, element("label", { htmlFor: "scenario-file" }, "Begin with"), pick),
    element("div", { className: "field" }, element("label", { htmlFor: "scenario" }, "Scenario"), text), found,
    element("div", { className: "field" }, element("label", { htmlFor: "scenario-name" }, "Save as"), name),
    element("div", { className: "buttons" }, button("Save, to run it", save, "main")), error, run, job);
  check();
}
