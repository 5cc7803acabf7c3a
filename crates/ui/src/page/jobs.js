// What runs: its progress, its first answers, what each transport did last, and what the program says.

import { button, element, errorPlace, number, seconds, table } from "./elements.js";
import { showRun } from "./runs.js";
import { post } from "./server.js";

const INTERVAL_MS = 400;

// Shows the job `id` in `place` until it has ended, and its run after that.
export function watch(place, id) {
  const title = element("h3", {}, "Starting");
  const bar = element("progress", { max: 1, "aria-label": "Progress" });
  const status = element("p", { role: "status" });
  const answers = element("div", { className: "answer", "aria-live": "polite", hidden: true });
  const figures = element("div");
  const log = element("pre", { tabIndex: 0, role: "log", "aria-label": "What the program says", hidden: true });
  const { place: error, show } = errorPlace();
  const result = element("div");
  const cancel = button("Cancel", () => post("cancel", { id }).catch(show), "danger");
  place.replaceChildren(element("section", { className: "job", "aria-label": "What runs" },
    title, bar, status, element("div", { className: "buttons" }, cancel), answers, figures, error, log), result);
  title.scrollIntoView({ block: "nearest" });

  let after = 0;
  let lastAnswers = "";
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
      log.hidden = false;
      log.append(`${message.event === "note" ? "" : `${message.event}: `}${message.text}\n`);
      log.scrollTop = log.scrollHeight;
      if (message.event === "error") error.append(`${message.text}\n`);
    }
    showProgress(job, bar, status);
    const lines = job.answers.map((answer) => [answer.line, answer.repetitions]);
    if (JSON.stringify(lines) !== lastAnswers) {
      lastAnswers = JSON.stringify(lines);
      answers.hidden = lines.length === 0;
      answers.replaceChildren(...lines.flatMap(([line, repetitions]) => [element("p", {}, line),
        element("p", { className: "why" }, `After ${repetitions} of each; more may change it.`)]));
    }
    figures.replaceChildren(...lastFigures(job));
    if (job.exit_code === null) {
      setTimeout(step, INTERVAL_MS);
      return;
    }
    cancel.hidden = true;
    bar.hidden = true;
    answers.hidden = true;
    figures.replaceChildren();
    if (job.output) {
      // A transfer's statistics are what its command prints, as the program of 2014 showed them.
      figures.replaceChildren(element("details", { open: ["send", "burst"].includes(job.task) }, element("summary", {}, "What it printed"),
        element("pre", { className: "table", tabIndex: 0, role: "group", "aria-label": "What it printed" }, job.output)));
    }
    if (job.run) await showRun(result, job.run, { isNew: true });
  };
  step();
}

function showProgress(job, bar, status) {
  const { progress, exit_code: code } = job;
  if (code !== null) {
    const how = job.cancelled ? "Cancelled" : code === 0 ? "Done" : `Ended with exit code ${code}`;
    status.textContent = `${how} after ${seconds(job.elapsed_s)}.`;
    status.className = code === 0 || job.server ? "good" : "bad";
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
