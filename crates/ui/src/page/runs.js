// Runs: the list of the folder, and one run with its figures, which are those of summary.json.

import { button, copyable, element, errorPlace, number, question, table } from "./elements.js";
import { post } from "./server.js";

const STATES = { ended: "", running: "a process works on it", unfinished: "not finished", study: "a study" };

// The list of runs, with a search, and two of them side by side.
export function runsView(place, open) {
  const { place: error, show } = errorPlace();
  const search = element("input", { type: "search", id: "search", placeholder: "voice lte 2026-11", autocomplete: "off" });
  const list = element("ul", { className: "runs" });
  const count = element("p", { role: "status", className: "help" });
  const chosen = new Set();
  const beside = button("Side by side", async () => {
    show("");
    try {
      const { path } = await post("beside", { names: [...chosen] });
      detail.replaceChildren(pageFrame("Two runs side by side", path));
      detail.scrollIntoView();
    } catch (why) {
      show(why);
    }
  });
  const detail = element("div");
  const renew = async () => {
    try {
      const runs = await post("runs", { search: search.value });
      count.textContent = runs.length === 1 ? "1 run" : `${runs.length} runs`;
      list.replaceChildren(...runs.map((run) => entry(run)));
    } catch (why) {
      show(why);
    }
  };
  const entry = (run) => {
    const box = element("input", { type: "checkbox", checked: chosen.has(run.name), "aria-label": `Choose ${run.name}`,
      onchange: () => { box.checked ? chosen.add(run.name) : chosen.delete(run.name); beside.disabled = chosen.size !== 2; } });
    const state = run.valid === false ? "not valid: do not trust its figures" : STATES[run.state];
    return element("li", {},
      element("div", { className: "buttons" }, box,
        button(run.title || run.name, () => open(run.name)), element("span", { className: run.valid === false ? "bad" : "help" }, state)),
      element("p", { className: "help" }, [run.arena, run.started.replace("T", " ").replace("Z", " UTC")].filter(Boolean).join(" · ")),
      run.answers.map((line) => element("p", {}, line)));
  };
  let waiting;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(renew, 200); });
  beside.disabled = true;
  place.replaceChildren(element("h2", {}, "Runs"),
    element("div", { className: "field" }, element("label", { htmlFor: "search" }, "Search"), search),
    element("div", { className: "buttons" }, beside, element("span", { className: "help" }, "choose two")), error, count, list, detail);
  renew();
}

function pageFrame(title, path) {
  return element("div", {}, element("p", {}, element("a", { href: path, target: "_blank", rel: "noopener" }, `${title} in a tab of its own`)),
    element("iframe", { src: path, title, sandbox: "allow-scripts allow-downloads" }));
}

// Shows a run: its answer, its figures, its pages, and what can be done with it.
export async function showRun(place, name, { isNew = false, gone = () => place.replaceChildren() } = {}) {
  const { place: error, show } = errorPlace();
  let run;
  try {
    run = await post("run", { name });
  } catch (why) {
    show(why);
    place.replaceChildren(error);
    return;
  }
  const shown = element("div");
  const work = async (task) => {
    show("");
    try {
      await task();
    } catch (why) {
      show(why);
    }
  };
  const showText = (which, title) => work(async () => {
    const { text } = await post("text", { name, which });
    shown.replaceChildren(element("h3", {}, title), element("pre", { tabIndex: 0 }, text));
  });
  const report = run.pages["report.html"];
  const buttons = [];
  if (report) buttons.push(button("Report", () => shown.replaceChildren(pageFrame("The report", report))));
  if (run.figures?.arena === "sim") {
    buttons.push(button("Play", () => work(async () => shown.replaceChildren(pageFrame("The packets", (await post("play", { name })).path)))));
  }
  buttons.push(button("Scenario", () => showText("scenario", "The scenario")));
  if (run.figures) buttons.push(button("Log", () => showText("log", "The log")));
  if (run.unfinished && run.ours) {
    buttons.push(button("Go on", () => work(async () => {
      const { id } = await post("resume", { name });
      const { watch } = await import("./jobs.js");
      watch(place, id);
    })));
  }
  buttons.push(button("Delete", () => work(async () => {
    if (await question(`Delete the run ${name} with all its files?`, [["Delete it", "yes", "danger"], ["Keep it", ""]])) {
      await post("delete", { name });
      gone();
    }
  }), "danger"));
  const resume = copyable("To go on with it in a terminal:");
  resume.set(run.resume_command);
  place.replaceChildren(element("section", { className: "found", "aria-label": "A run" },
    element("h3", {}, run.figures?.name ?? name), element("p", { className: "help" }, name),
    ...(run.figures ? figures(run.figures) : run.pages["report.html"] ? [] : [element("p", {}, run.no_figures ?? "")]),
    element("div", { className: "buttons" }, buttons), error, run.unfinished ? resume.place : null, shown));
  if (isNew && run.figures === null && report) shown.replaceChildren(pageFrame("The report", report));
}

const COLUMNS = [
  ["MOS", "call.mos", "mean", 2, 1],
  ["mouth to ear, ms", "call.mouth_to_ear_ms.mean", "median", 0, 1],
  ["late or missing, %", "call.concealed", "mean", 2, 100],
  ["round trip, ms p50", "round_trip_delay_ms.p50", "median", 1, 1],
  ["p99", "round_trip_delay_ms.p99", "median", 1, 1],
  ["loss, %", "loss_rate", "mean", 2, 100],
  ["in time, %", "in_time", "mean", 2, 100],
  ["received", "received", "mean", 0, 1],
  ["first sent to last received, ms", "first_sent_to_last_received_ms", "median", 1, 1],
  ["Mb/s", "goodput_bps", "mean", 3, 1e-6],
];

// The answers, the warnings and a table: each figure is one of summary.json, in the statistic that the reports use.
function figures(summary) {
  const parts = [];
  if (!summary.valid) parts.push(element("p", { className: "error" }, "Not valid: do not trust these figures."));
  const answers = summary.comparisons.map(({ answer }) => [element("p", {}, answer.line), element("p", { className: "why" }, answer.why)]);
  if (answers.length) parts.push(element("div", { className: "answer", role: "status" }, answers.flat()));
  const warnings = summary.warnings.filter((text) => !text.startsWith("note: "));
  if (warnings.length) parts.push(element("details", {}, element("summary", {}, `Warnings (${warnings.length})`), element("ul", {}, warnings.map((text) => element("li", {}, text)))));
  const rows = summary.cells.flatMap((cell) => Object.entries(cell.flows).map(([name, spreads]) => ({ cell, name, spreads })));
  const known = COLUMNS.filter(([, path]) => rows.some(({ spreads }) => typeof spreads[path]?.mean === "number"));
  const transportOf = (cell, name) => {
    const flow = summary.runs.find((run) => run.cell === cell)?.flows[name];
    return flow ? `${flow.transport}${flow.cc ? ` (${flow.cc})` : ""}` : "";
  };
  const swept = (sweep) => Object.entries(sweep).filter(([key]) => !key.endsWith(".transport"))
    .map(([key, value]) => `${key.split(".").slice(-2).join(".")} ${typeof value === "object" ? value.kind ?? "" : value}`).join(", ");
  const others = rows.some(({ cell }) => swept(cell.sweep) !== "");
  const count = summary.cells[0]?.n ?? 0;
  parts.push(table(`Means of scores, shares and rates, medians of times; over ${count} ${count === 1 ? "repetition" : "repetitions"}`,
    ["flow", "transport", ...(others ? ["with"] : []), ...known.map(([head]) => head)],
    rows.map(({ cell, name, spreads }) => [name, transportOf(cell.cell, name), ...(others ? [swept(cell.sweep)] : []),
      ...known.map(([, path, statistic, digits, factor]) => number(spreads[path]?.[statistic], digits, factor))])));
  return parts;
}
