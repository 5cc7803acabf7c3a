// What runs: its progress, its first answers, what each transport did last, and what the program says.

import { button, copyWord, element, errorPlace, number, seconds, table } from "./elements.js";
import { showRun } from "./runs.js";
import { get, post } from "./server.js";

const INTERVAL_MS = 400;

// What the exit codes of the program mean (docs/reference/interface.md).
const FAILURES = {
  1: "It ran, and something is not as it should be",
  2: "Not started: something in the form is wrong",
  3: "Not started: this computer lacks something",
  4: "The far end failed",
};
const DEFAULT_PORT = "7160";

// Shows the job `id` in `place` until it has ended, and its run after that. `form` starts no other meanwhile, and has
// the errors at its fields.
export function watch(place, id, form = { busy: () => {}, mistake: (text) => text }) {
  const title = element("h3", {}, "Starting");
  const bar = element("progress", { max: 1, "aria-label": "Progress" });
  const status = element("p", { role: "status" });
  const answers = element("div", { className: "answer", "aria-live": "polite", hidden: true });
  const figures = element("div");
  const log = element("pre", { tabIndex: 0, role: "log", "aria-label": "What the program says", hidden: true });
  const { place: error, show } = errorPlace();
  const result = element("div");
  const cancel = button("Cancel", () => post("cancel", { id }).catch(show), "danger");
  const reach = element("div");
  form.busy(true);
  place.replaceChildren(result, element("section", { className: "job", "aria-label": "What runs" },
    title, bar, status, error, reach, element("div", { className: "buttons" }, cancel), answers, figures, log));
  place.scrollIntoView({ block: "start" });

  let after = 0;
  let lastAnswers = "";
  const errors = [];
  const step = async () => {
    if (!place.isConnected) return;
    let job;
    try {
      job = await post("job", { id, after });
    } catch (why) {
      show(why);
      return;
    }
    after = job.next_message;
    title.textContent = job.command;
    for (const message of job.messages) {
      if (message.event === "error") {
        errors.push(message.text);
        continue;
      }
      log.hidden = false;
      log.append(`${message.event === "note" ? "" : `${message.event}: `}${message.text}\n`);
      log.scrollTop = log.scrollHeight;
    }
    showProgress(job, bar, status);
    const lines = job.answers.map((answer) => [answer.line, answer.repetitions]);
    if (JSON.stringify(lines) !== lastAnswers) {
      lastAnswers = JSON.stringify(lines);
      answers.hidden = lines.length === 0;
      answers.replaceChildren(...lines.flatMap(([line, repetitions]) => [element("p", {}, line),
        element("p", { className: "why" }, `After ${repetitions} of each so far.`)]));
    }
    figures.replaceChildren(...lastFigures(job));
    if (job.server && job.exit_code === null && !reach.hasChildNodes()) await showReach(reach, job);
    if (job.exit_code === null) {
      setTimeout(step, INTERVAL_MS);
      return;
    }
    form.busy(false);
    reach.hidden = true;
    // The last error counts the others.
    const count = errors.findIndex((text) => /^\d+ mistakes in the options$/.test(text));
    if (count > 0) errors.splice(count, 1);
    show([...new Set(errors.map((text) => form.mistake(text)))].join("\n"));
    cancel.hidden = true;
    bar.hidden = true;
    answers.hidden = true;
    figures.replaceChildren();
    if (job.output) {
      // A transfer's statistics are what its command prints, as the program of 2014 showed them.
      figures.replaceChildren(element("details", { open: ["send", "burst"].includes(job.task) }, element("summary", {}, "What it printed"),
        element("pre", { className: "table", tabIndex: 0, role: "group", "aria-label": "What it printed" }, job.output)));
    }
    if (!job.run) return;
    const run = await showRun(result, job.run, { isNew: true });
    if (run?.figures?.valid === false) {
      status.append(" The machines or their load took part: see what is said above.");
      status.className = "bad";
    }
    if (place.isConnected) place.scrollIntoView({ block: "start" });
  };
  step();
}

// What the other computer needs to reach this one.
async function showReach(place, job) {
  const { addresses } = await get("state").catch(() => ({ addresses: [] }));
  const port = /--bind=\S*:(\d+)/.exec(job.command)?.[1] ?? DEFAULT_PORT;
  const shown = addresses.map((address) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`));
  place.replaceChildren(
    element("p", {}, shown.length ? "“Far end” on the other computer is, by the network between them:" : `This computer has no address but its own. The port is ${port}.`),
    ...shown.map((address) => copyWord("the address", address)),
    element("p", { className: "help" }, `A firewall must let port ${port} in, for UDP and TCP.`));
}

function showProgress(job, bar, status) {
  const { progress, exit_code: code } = job;
  if (code !== null) {
    const how = job.cancelled ? "Cancelled" : code === 0 ? "Done" : FAILURES[code] ?? `Ended with exit code ${code}`;
    status.textContent = code === 0 || job.cancelled ? `${how} after ${seconds(job.elapsed_s)}.` : `${how} (after ${seconds(job.elapsed_s)}).`;
    status.className = code === 0 ? "good" : job.cancelled ? "" : "bad";
    return;
  }
  if (job.server) {
    bar.hidden = true;
    status.textContent = "The far end listens. What comes, and who is refused, has a line below.";
    return;
  }
  if (progress === null) {
    bar.removeAttribute("value");
    status.textContent = "Starting.";
    return;
  }
  bar.value = progress.share;
  const left = progress.left_s === null ? "" : `, about ${seconds(progress.left_s)} left`;
  status.textContent = `${progress.finished} of ${progress.repetitions} repetitions${left}.`;
}

// The last repetition of each cell: figures of one repetition, as summary.json will have them in `runs`.
function lastFigures(job) {
  if (job.figures.length === 0) return [];
  const rows = job.figures.flatMap((cell) => Object.entries(cell.flows).map(([name, flow]) => [
    `${flow.transport}${flow.cc ? ` (${flow.cc})` : ""} · ${name}`, String(cell.repetition), number(flow.mos),
    number(flow.round_trip_delay_ms?.p50, 1), number(flow.round_trip_delay_ms?.p99, 1), number(flow.loss_rate, 2, 100),
    number(flow.goodput_bps, 3, 1e-6)]));
  return [table("The last repetition of each", ["transport · flow", "repetition", "MOS", "round trip, ms p50", "p99", "loss, %", "Mb/s"], rows)];
}
