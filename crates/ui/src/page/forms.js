// Forms: one for each task, made of the program's own table of fields.

import { button, copyable, element, errorPlace, freshId } from "./elements.js";
import { get, give, post } from "./server.js";

let given = [];

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
        : boxes.filter(([, , box]) => box.checked).map(([word]) => word).join(",");
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
      ...given.map((name) => element("option", { value: name }, name)));
    select.value = chosen;
  };
  fill("");
  const { place: error, show } = errorPlace();
  const take = async (work) => {
    show("");
    try {
      const name = await work();
      await readGiven();
      fill(name);
      select.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (why) {
      show(why);
    }
  };
  const said = element("p", { className: "help", role: "status" });
  const picker = element("input", { type: "file", hidden: true, "aria-label": `${field.label}: choose a file`, tabIndex: -1,
    onchange: () => picker.files[0] && take(() => give(picker.files[0])) });
  const buttons = element("div", { className: "buttons" }, button("Choose a file…", () => picker.click()), picker);
  if (field.name === "key") {
    const name = () => `key-${new Date().toISOString().slice(0, 23).replaceAll(/[:.]/g, "-")}`;
    buttons.append(button("Make a key", () => take(async () => {
      const made = name();
      const { key } = await post("key", { name: made });
      said.replaceChildren("The key, for the other computer: ", element("code", {}, key));
      return made;
    })));
    const pasted = element("input", { type: "text", autocomplete: "off", spellcheck: false, "aria-label": "A key to paste", placeholder: "paste a key" });
    buttons.append(pasted, button("Use it", () => take(async () => {
      const kept = name();
      await post("key", { name: kept, key: pasted.value });
      return kept;
    })));
  }
  const place = element("div", { className: "field" }, label, select, buttons, said, help, error);
  return { place, input: select, value: () => select.value, set: fill };
}

// Makes the form of `task`. `onstart` receives the number of the job that was started.
export function form(task, onstart, fixed = {}) {
  const controls = task.fields.map((field) => ({ field, ...control(field) }));
  const shown = controls.filter(({ field }) => !(field.name in fixed));
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
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      try {
        const { command: text, missing } = await post("command", { task: task.name, values: values() });
        command.set(text ?? `(${missing})`);
        show(made.dataset.tried && missing ? missing : "");
      } catch (why) {
        show(why);
      }
    }, 150);
  };
  made.addEventListener("input", renew);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    made.dataset.tried = "yes";
    start.disabled = true;
    try {
      const { id } = await post("jobs", { task: task.name, values: values() });
      show("");
      onstart(id);
    } catch (why) {
      show(why);
      controls.find(({ field }) => why.message.startsWith(`${field.label}:`))?.input.focus();
    } finally {
      start.disabled = false;
    }
  });
  renew();
  return { place: made, set: (name, value) => { controls.find(({ field }) => field.name === name)?.set(value); renew(); } };
}
