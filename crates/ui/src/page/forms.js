// Forms: one for each task, made of the program's own table of fields.

import { button, copyWord, copyable, element, errorPlace, freshId } from "./elements.js";
import { get, give, post } from "./server.js";

let given = [];
// What was filled in, so that a form has it again after a change of tab. These forms ask for the same
// far end and its key. The key of this computer's own far end is another one, and a scenario may need no far end.
const SENDING = ["measure", "burst", "send"];
const kept = new Map();
const keptAs = (task, field) => (SENDING.includes(task.name) && ["to", "key"].includes(field.name) ? field.name : `${task.name}.${field.name}`);
// Files that hold keys, so that no list of files to send offers them.
const KEY = "key-";

export async function readGiven() {
  given = await get("files");
}

// Makes the control of a field. `value` reads it; what stands there at first is the empty value.
function control(field) {
  const id = freshId();
  const helpId = field.help ? `${id}-help` : undefined;
  const help = field.help ? element("p", { className: "help", id: helpId }, field.help) : null;
  const described = { id, "aria-describedby": helpId, required: field.is_needed };
  const label = element("label", { htmlFor: id }, field.label);
  switch (field.kind) {
    case "choice": {
      const select = element("select", described,
        field.choices.map(([word, text]) => element("option", { value: word }, text)));
      return { place: element("div", { className: "field" }, label, select, help), input: select, value: () => select.value,
        set: (value) => { select.value = value; } };
    }
    case "several": {
      const boxes = field.choices.map(([word, text, chosen]) =>
        [word, chosen, element("input", { type: "checkbox", checked: chosen, id: freshId() }), text]);
      const place = element("fieldset", { className: "field wide" }, element("legend", {}, field.label),
        boxes.map(([, , box, text]) => element("label", { htmlFor: box.id }, box, text)), help);
      const value = () => boxes.every(([, chosen, box]) => box.checked === chosen) ? ""
        : boxes.filter(([, , box]) => box.checked).map(([word]) => word).join(",") || "none";
      return { place, input: place, value, set: (words) => boxes.forEach(([word, , box]) => { box.checked = words.split(",").includes(word); }) };
    }
    case "check": {
      const box = element("input", { type: "checkbox", ...described });
      return { place: element("div", { className: "field check" }, element("label", { htmlFor: id }, box, field.label), help),
        input: box, value: () => (box.checked ? "true" : ""), set: (value) => { box.checked = value === "true"; } };
    }
    case "file":
      return fileControl(field, id, label, help, described);
    default: {
      const input = element("input", { type: "text", placeholder: field.example, autocomplete: "off", spellcheck: false, ...described });
      return { place: element("div", { className: "field" }, label, input, help), input, value: () => input.value,
        set: (value) => { input.value = value; } };
    }
  }
}

// A file is chosen among those that were given, or given now. A key can also be made.
function fileControl(field, id, label, help, described) {
  const select = element("select", described);
  const fill = (chosen) => {
    select.replaceChildren(element("option", { value: "" }, "none"),
      ...given.filter((name) => name.startsWith(KEY) === isKey).map((name) => element("option", { value: name }, name)));
    select.value = chosen;
    said.replaceChildren();
    reveal.hidden = !isKey || !select.value;
  };
  const isKey = field.name === "key";
  const said = element("p", { className: "help", role: "status" });
  const reveal = button("Show the key", () => take(async () => {
    const { text } = await post("given", { name: select.value });
    return [select.value, text.trim()];
  }));
  const { place: error, show } = errorPlace();
  const take = async (work) => {
    show("");
    try {
      const [name, key] = [await work()].flat();
      await readGiven();
      fill(name);
      if (key) said.replaceChildren("The key, for the other computer: ", copyWord("the key", key));
      select.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (why) {
      show(why);
    }
  };
  const picker = element("input", { type: "file", hidden: true, "aria-label": `${field.label}: choose a file`, tabIndex: -1,
    onchange: () => picker.files[0] && take(() => give(picker.files[0], picker.files[0].name.startsWith(KEY) === isKey ? "" : isKey ? KEY : "file-")) });
  const buttons = element("div", { className: "buttons" }, button("Choose a file…", () => picker.click()), picker);
  if (isKey) {
    const name = () => `${KEY}${new Date().toISOString().slice(0, 23).replaceAll(/[:.]/g, "-")}`;
    buttons.append(button("Make a key", () => take(async () => {
      const made = name();
      const { key } = await post("key", { name: made });
      return [made, key];
    })), reveal);
    const pasted = element("input", { type: "text", autocomplete: "off", spellcheck: false, "aria-label": "A key to paste", placeholder: "paste a key" });
    buttons.append(pasted, button("Use it", () => take(async () => {
      const made = name();
      await post("key", { name: made, key: pasted.value });
      return made;
    })));
  }
  select.addEventListener("change", () => { said.replaceChildren(); reveal.hidden = !isKey || !select.value; });
  fill("");
  const place = element("div", { className: "field" }, label, select, buttons, said, help, error);
  return { place, input: select, value: () => select.value, set: fill };
}

// An error of the program in the words of the page, with the field that it is about, if it is about one.
function inWords(text, task) {
  const of = (name) => task.fields.find((field) => field.name === name);
  const port = /cannot listen on \S*:(\d+) .*another program/.exec(text)?.[1];
  if (port) return [`Port ${port} is taken by another program, perhaps by another far end. Choose another, such as ${Number(port) % 65535 + 1}.`, of("port")];
  const labelled = task.fields.find((field) => text.startsWith(`${field.label}: `));
  if (labelled) return [text.slice(labelled.label.length + 2), labelled];
  const flag = /--[a-z][a-z-]*/.exec(text)?.[0];
  const field = flag && task.fields.find((it) => it.flag === flag);
  if (!field) return [text, undefined];
  const lines = text.split("\n").filter((line) => !line.startsWith("  = help"));
  const words = lines.join("\n")
    .replace(/^invalid value '(.*)' for '.*?': /, "“$1” is not understood: ")
    .replace(/^--[a-z-]+(?:[ =].*?)?: (?:[a-z_]+(?:\.[a-z_]+)+: )?/, "");
  return [field.name === "line" && /unit/.test(words) ? `${words}. Write the numbers alone, in Mb/s: 50/10` : words, field];
}

// Makes the form of `task`. `onstart` receives the number of the job that was started.
export function form(task, onstart, fixed = {}) {
  const controls = task.fields.filter((field) => field.kind !== "hidden").map((field) => ({ field, ...control(field) }));
  const shown = controls.filter(({ field }) => !(field.name in fixed));
  for (const { field, place, set } of shown) {
    const mistake = element("p", { className: "mistake", role: "alert", id: freshId() });
    place.append(mistake);
    if (!field.more && kept.get(keptAs(task, field))) set(kept.get(keptAs(task, field)));
  }
  const mark = ({ place, input }, text) => {
    const mistake = place.querySelector(".mistake");
    mistake.textContent = text;
    place.classList.toggle("wrong", text !== "");
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    if (!text) return;
    const more = place.closest("details");
    if (more) more.open = true;
    place.scrollIntoView({ block: "center" });
    (input.matches("fieldset") ? input.querySelector("input") : input).focus();
  };
  // Shows an error at its field, or below the form, and returns it in words.
  const mistake = (text) => {
    const [words, field] = inWords(text, task);
    const found = field && shown.find((it) => it.field === field);
    if (found) mark(found, words);
    else show(words);
    return found ? `${field.label}: ${words}` : words;
  };
  const unmark = () => {
    show("");
    shown.forEach((it) => mark(it, ""));
  };
  const { place: error, show } = errorPlace();
  const command = copyable("The same in a terminal:");
  const start = element("button", { type: "submit", className: "main" }, task.start);
  const more = shown.filter(({ field }) => field.more);
  const values = () => Object.fromEntries(controls.map(({ field, value }) => [field.name, fixed[field.name] ?? value()]).filter(([, value]) => value !== ""));
  const made = element("form", { className: "task", noValidate: true },
    shown.filter(({ field }) => !field.more).map(({ place }) => place),
    more.length ? element("details", { className: "wide" }, element("summary", {}, "More"),
      element("div", { className: "task-more" }, more.map(({ place }) => place))) : null,
    element("div", { className: "wide" }, error, element("div", { className: "buttons" }, start)), command.place);

  let waiting;
  const renew = () => {
    // A line of one's own wins over the list of lines.
    const line = controls.find(({ field }) => field.name === "line");
    if (line) controls.find(({ field }) => field.name === "path").input.disabled = line.value() !== "";
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      try {
        const { command: text, missing } = await post("command", { task: task.name, values: values() });
        command.set(text ?? `(${missing})`);
      } catch (why) {
        show(why);
      }
    }, 150);
  };
  made.addEventListener("input", () => {
    shown.forEach(({ field, value }) => kept.set(keptAs(task, field), value()));
    unmark();
    renew();
  });
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    unmark();
    start.disabled = true;
    let id;
    try {
      ({ id } = await post("jobs", { task: task.name, values: values() }));
    } catch (why) {
      start.disabled = false;
      mistake(why.message);
      return;
    }
    onstart(id, self);
  });
  renew();
  // While what it started runs, it starts no other: that would hide the first.
  const busy = (is) => { start.disabled = is; };
  const self = { place: made, busy, mistake, set: (name, value) => { controls.find(({ field }) => field.name === name)?.set(value); renew(); } };
  return self;
}
