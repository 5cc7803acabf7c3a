// Runs: the list of the folder, and one run with its figures, which are those of summary.json.

import { button, copyable, element, errorPlace, folded, number, question, table } from "./elements.js";
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
        button([run.title || run.name, time(run)].filter(Boolean).join(" · "), () => open(run.name)), element("span", { className: run.valid === false ? "bad" : "help" }, state)),
      run.arena ? element("p", { className: "help" }, run.arena) : null,
      run.answers.map((line) => element("p", {}, line)));
  };
  const time = (run) => run.started.replace("T", " ").replace("Z", " UTC");
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
  const put = (...children) => {
    shown.replaceChildren(...children);
    shown.scrollIntoView({ block: "start" });
  };
  const showText = (which, title) => work(async () => {
    const { text } = await post("text", { name, which });
    put(element("h3", {}, title), element("pre", { tabIndex: 0 }, text));
  });
  const report = run.pages["report.html"];
  const buttons = [];
  if (report) buttons.push(button("Report", () => put(pageFrame("The report", report))));
  if (run.figures?.arena === "sim") {
    buttons.push(button("Play", () => work(async () => put(pageFrame("The packets", (await post("play", { name })).path)))));
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
    if (await question(`Delete the run ${name} with all its files?`, [["Keep it", ""], ["Delete it", "yes", "danger"]])) {
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
  return run;
}

const COLUMNS = [
  ["MOS", "call.mos", "mean", 2, 1],
  ["mouth to ear, ms", "call.mouth_to_ear_ms.p50", "median", 0, 1],
  ["late or missing, %", "call.concealed", "mean", 2, 100],
  ["round trip, ms p50", "round_trip_delay_ms.p50", "median", 1, 1],
  ["p99", "round_trip_delay_ms.p99", "median", 1, 1],
  ["loss, %", "loss_rate", "mean", 2, 100],
  ["in time, %", "in_time", "mean", 2, 100],
  ["received", "received", "mean", 0, 1],
  ["first sent to last received, ms", "first_sent_to_last_received_ms", "median", 1, 1],
  ["Mb/s", "goodput_bps", "mean", 3, 1e-6],
];

const swept = (sweep) => Object.entries(sweep).filter(([key]) => !key.endsWith(".transport"))
  .map(([key, value]) => `${key.split(".").slice(-2).join(".")} ${typeof value === "object" ? value.kind ?? "" : value}`).join(", ");

const SMART = "a smart queue in the router (a setting, often called SQM or fq_codel)";

function queueInWords(sweep) {
  const queue = sweep["path.up.queue"];
  if (queue === undefined) return undefined;
  const kind = queue.kind ?? queue;
  if (kind === "fq_codel") return SMART;
  return kind === "drop-tail" ? `the usual plain queue in the router${queue.limit ? `, which holds up to ${queue.limit.replace("ms", " ms")} of the upload` : ""}` : undefined;
}

// Below this no call is usable: nearly all users are dissatisfied (ITU-T G.109, Table 1).
const USABLE = 3.1;
// From this on no more than some users are dissatisfied (ITU-T G.107, Table B.1: R 70).
const GOOD = 3.6;

// Whether the line is good enough for a call: in a word, what to expect, and what helps.
function verdict(summary) {
  const [first] = summary.comparisons;
  if (!first) return [];
  const cells = summary.cells.filter(({ cell }) => first.cells.includes(cell)).map(({ flows }) => flows[first.flow] ?? {});
  const scored = cells.filter((spreads) => typeof spreads["call.mos"]?.mean === "number");
  if (!scored.length) return [];
  const best = scored.reduce((one, other) => (other["call.mos"].mean > one["call.mos"].mean ? other : one));
  const { outcome, cure, receivers } = first.answer;
  const mos = best["call.mos"].mean;
  const depends = receivers.some((it) => it.outcome === "unusable") && outcome !== "unusable";
  const word = outcome === "unusable" || mos < USABLE ? "No" : depends || mos < GOOD ? "Barely" : "Yes";
  const delay = best["call.mouth_to_ear_ms.p50"]?.median;
  const expect = typeof delay === "number" ? ` At best a voice arrives ${(delay / 1000).toFixed(2)} s after it is spoken, with MOS ${mos.toFixed(2)}.` : "";
  const receiver = depends ? " That is with a program that adapts to the delay, as browsers and most call programs do; with one that waits a fixed time, as some telephones do, no call works." : "";
  const help = cure?.change["path.up.queue"] === "fq_codel" ? `Turn on ${SMART}: then the score is ${cure.mos.toFixed(2)}. Without such a setting, limit the upload, in the program that uploads, to less than the line carries.` : "";
  const queue = summary.arena === "sim" ? queueInWords(first.sweep) : undefined;
  const assumed = queue && queue !== SMART ? `We assumed ${queue}. A line with a shorter queue is better, and one with a longer queue is worse.` : "";
  return [element("div", { className: "verdict" },
    element("p", {}, element("strong", { className: word === "Yes" ? "good" : "bad" }, `${word}.`), expect, receiver),
    help ? element("p", {}, help) : null, assumed ? element("p", {}, assumed) : null,
    element("p", { className: "help" }, `MOS is the opinion score of a call, from 1 to 4.5; usable from ${USABLE}.`))];
}

// What came of a file or a burst, in large.
function transfers(summary) {
  const { files } = summary;
  if (files.length) {
    const [{ name, sha256, bytes }] = files;
    const whole = files.filter(({ intact }) => intact).length;
    const times = files.length > 1 ? `, ${whole} of ${files.length} times` : "";
    const how = whole === files.length ? "arrived intact" : whole ? "arrived intact" : "did not arrive intact";
    return [element("p", { className: `large ${whole === files.length ? "good" : "bad"}` }, `${name} ${how}${times}`),
      element("p", { className: "help" }, `${bytes} B, SHA-256 ${sha256}`)];
  }
  const [cell] = summary.cells;
  const flow = summary.runs[0]?.flows.transfer;
  if (!flow?.transfer || cell?.n !== 1 || typeof flow.sent !== "number") return [];
  const received = cell.flows.transfer?.received?.mean;
  if (typeof received !== "number") return [];
  const lost = flow.sent - received;
  return [element("p", { className: `large ${lost ? "bad" : "good"}` }, `${received} of ${flow.sent} messages arrived${lost ? `, ${lost} were lost` : ""}`)];
}

// Chosen: a flow with each of TCP's, UDP's and QUIC's ways, and an upload beside, fit on a telephone's screen.
const ROWS_UNFOLDED = 8;

// The answers, the warnings and a table: each figure is one of summary.json, in the statistic that the reports use.
function figures(summary) {
  const parts = [];
  const isTransfer = summary.runs.some(({ flows }) => Object.values(flows).some((flow) => flow.transfer));
  parts.push(...transfers(summary));
  if (!summary.valid) {
    parts.push(element("p", { className: "error" }, isTransfer
      ? "The computers, not the network alone, lost or delayed something, as said below. What came is counted; times and rates are not those of the network."
      : "Not valid: do not trust these figures."));
  }
  parts.push(...verdict(summary));
  const answers = summary.comparisons.map(({ answer, sweep }) => [
    summary.comparisons.length > 1 ? element("p", { className: "with" }, `With ${queueInWords(sweep) ?? swept(sweep)}:`) : null,
    element("p", {}, answer.line), element("p", { className: "why" }, answer.why)]);
  const [answer, ...others] = answers;
  if (answer) {
    parts.push(element("div", { className: "answer", role: "status" }, answer));
    if (others.length) parts.push(folded(`The answer with ${others.length === 1 ? "another setting" : `each of ${others.length} other settings`}`, element("div", { className: "answer" }, others.flat())));
  }
  const warnings = summary.warnings.filter((text) => !text.startsWith("note: "));
  if (warnings.length) parts.push(element("details", { open: !summary.valid }, element("summary", {}, `Warnings (${warnings.length})`), element("ul", {}, warnings.map((text) => element("li", {}, text)))));
  const rows = summary.cells.flatMap((cell) => Object.entries(cell.flows).map(([name, spreads]) => ({ cell, name, spreads })));
  // What a stream carries has no packets of its own: a file's verdict is above.
  const columns = COLUMNS.filter(([, path]) => !summary.files.length || !["received", "loss_rate", "goodput_bps"].includes(path));
  const known = columns.filter(([, path]) => rows.some(({ spreads }) => typeof spreads[path]?.mean === "number"));
  const transportOf = (cell, name) => {
    const flow = summary.runs.find((run) => run.cell === cell)?.flows[name];
    return flow ? `${flow.transport}${flow.cc ? ` (${flow.cc})` : ""}` : "";
  };
  const isSwept = rows.some(({ cell }) => swept(cell.sweep) !== "");
  const count = summary.cells[0]?.n ?? 0;
  const shown = table(`Means of scores, shares and rates, medians of times; over ${count} ${count === 1 ? "repetition" : "repetitions"}`,
    ["flow", "transport", ...(isSwept ? ["with"] : []), ...known.map(([head]) => head)],
    rows.map(({ cell, name, spreads }) => [name, transportOf(cell.cell, name), ...(isSwept ? [swept(cell.sweep)] : []),
      ...known.map(([, path, statistic, digits, factor]) => number(spreads[path]?.[statistic], digits, factor))]));
  parts.push(others.length && rows.length > ROWS_UNFOLDED ? folded(`The figures of ${rows.length} flows`, shown) : shown);
  return parts;
}
