// The window: its tabs, and what each shows.

import { element, question } from "./elements.js";
import { form, readGiven } from "./forms.js";
import { watch } from "./jobs.js";
import { runsView, showRun } from "./runs.js";
import { scenarioView } from "./scenario.js";
import { get, post } from "./server.js";

const VIEWS = [
  ["compare", "Compare a line", "Is this line good enough for calls while somebody uploads? Nothing is sent: the line is simulated."],
  ["measure", "Measure to a host", "The same with this computer's own TCP and UDP, to a computer on which “Be the far end” is started."],
  ["serve", "Be the far end", "Another computer measures to this one, until you cancel it."],
  ["send", "Send", "A file or a burst of messages, to a computer that is the far end. Both ends show what came, and the log has each transfer."],
  ["runs", "Runs"],
  ["studies", "Studies", "What five papers claim, held against runs."],
  ["scenario", "Scenario file"],
];

const LOG_INTERVAL_MS = 2000;

const view = document.getElementById("view");
const tabs = document.getElementById("tabs");
let tasks = {};

function show(place, name) {
  const [, title, lead] = VIEWS.find(([known]) => known === name);
  place.replaceChildren(element("h2", {}, title), element("p", { className: "lead" }, lead));
}

// A view of one task: its form, and the job that was started last.
function taskView(place, name) {
  const job = element("div");
  show(place, name);
  const made = form(tasks[name], (id) => watch(job, id, made));
  place.append(made.place, job);
  return [job, made];
}

// The far end keeps a log of what came, in the form of the program of 2014. It is renewed while it is shown.
function serveView(place) {
  const shown = taskView(place, "serve");
  const log = element("pre", { tabIndex: 0, role: "log", "aria-label": "Log of what came" });
  let last;
  const renew = async () => {
    if (!log.isConnected) return;
    const { text } = await get("received").catch((why) => ({ text: why.message }));
    if (text !== last) {
      last = text;
      log.textContent = text || "Nothing came yet.";
      log.scrollTop = log.scrollHeight;
    }
    setTimeout(renew, LOG_INTERVAL_MS);
  };
  place.append(element("h3", {}, "Log of what came"), element("p", { className: "help" }, "The newest transfer is the last."), log);
  renew();
  return shown;
}

function sendView(place) {
  show(place, "send");
  const job = element("div");
  // Both forms wait while one has sent.
  const busy = (is) => made.forEach((it) => it.busy(is));
  const made = ["burst", "send"].map((name) => form(tasks[name], (id, own) => watch(job, id, { busy, mistake: own.mistake })));
  const forms = made.map((it) => it.place);
  const what = element("select", { id: "what", onchange: () => forms.forEach((it, at) => { it.hidden = at !== what.selectedIndex; }) },
    element("option", {}, "a burst of messages"), element("option", {}, "a file"));
  forms[1].hidden = true;
  place.append(element("div", { className: "field apart" }, element("label", { htmlFor: "what" }, "What is sent"), what), ...forms, job);
  return [job, { busy, mistake: (text) => text }];
}

async function studiesView(place) {
  show(place, "studies");
  const job = element("div");
  const reading = element("p", { role: "status" }, "Reading the studies…");
  place.append(reading);
  const studies = await get("studies");
  reading.remove();
  const list = element("ul", { className: "runs" }, studies.map(({ study, title, claims }) => element("li", {},
    element("h3", {}, study), element("p", {}, `${title} (${claims} claims)`),
    element("details", {}, element("summary", {}, "Run it"), form(tasks.study, (id, own) => watch(job, id, own), { study }).place))));
  place.append(job, list);
  return [job];
}

async function render() {
  const [name, detail] = location.hash.replace(/^#\//, "").split("/");
  const current = VIEWS.some(([known]) => known === name) ? name : "compare";
  for (const link of tabs.querySelectorAll("a")) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS.find(([known]) => known === current)[1]} · talkpath`;
  try {
    await readGiven();
    let job = null;
    if (current === "runs" && detail) {
      view.replaceChildren(element("p", {}, element("a", { href: "#/runs" }, "All runs")));
      const place = element("div");
      view.append(place);
      await showRun(place, decodeURIComponent(detail), { gone: () => { location.hash = "#/runs"; } });
    } else if (current === "runs") {
      runsView(view, (run) => { location.hash = `#/runs/${encodeURIComponent(run)}`; });
    } else if (current === "scenario") await scenarioView(view, tasks.scenario);
    else if (current === "studies") job = await studiesView(view);
    else if (current === "send") job = sendView(view);
    else if (current === "serve") job = serveView(view);
    else job = taskView(view, current);
    if (job) await showRunning(job[0], current, job[1]);
  } catch (why) {
    view.replaceChildren(element("p", { className: "error", role: "alert" }, why.message));
  }
}

// A page that is opened again shows what runs.
async function showRunning(place, current, shownForm) {
  const { jobs } = await get("state");
  const of = { send: ["send", "burst"], studies: ["study"] }[current] ?? [current];
  const running = jobs.find((job) => of.includes(job.task) && job.exit_code === null);
  if (running) watch(place, running.id, shownForm);
}

async function end() {
  const { jobs } = await get("state");
  const running = jobs.filter((job) => job.exit_code === null);
  const answers = running.length
    ? [["Leave them running", "leave"], ["Cancel them", "cancel", "danger"], ["Go on", ""]]
    : [["End it", "leave", "danger"], ["Go on", ""]];
  const text = running.length ? `${running.length} still running. A far end ends with the window; a run can go on without it.` : "End this window?";
  const answer = await question(text, answers);
  if (answer) {
    await post("end", { cancel: answer === "cancel" });
    document.body.replaceChildren(element("main", {}, element("h1", {}, "talkpath"), element("p", {}, "This window has ended.")));
  }
}

async function begin() {
  tabs.append(...VIEWS.map(([name, title]) => element("li", {}, element("a", { href: `#/${name}`, "data-view": name }, title))));
  try {
    const [state, list] = await Promise.all([get("state"), get("tasks")]);
    tasks = Object.fromEntries(list.map((task) => [task.name, task]));
    document.getElementById("folder").textContent = `talkpath ${state.version}. Runs are in ${state.out}`;
    document.getElementById("end").addEventListener("click", () => end().catch((why) => question(why.message, [["Close", ""]])));
    addEventListener("hashchange", render);
    await render();
  } catch (why) {
    view.replaceChildren(element("p", { className: "error", role: "alert" }, why.message));
  }
}

begin();
