// Elements of the page. Text is always set as text, so that nothing from a file becomes markup.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key in made && !key.includes("-") && key !== "form" && key !== "list") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const button = (text, onclick, kind = "") => element("button", { type: "button", className: kind, onclick }, text);

let count = 0;
export const freshId = () => `e${(count += 1)}`;

// Asks the user, and returns the value of the answer; undefined if the user closes the dialog.
export function question(text, answers) {
  const dialog = document.getElementById("question");
  document.getElementById("question-text").textContent = text;
  document.getElementById("question-answers").replaceChildren(
    ...answers.map(([label, value, kind]) => element("button", { value, className: kind ?? "" }, label)),
  );
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue || undefined), { once: true });
  });
}

// A place for errors, read out when one comes.
export function errorPlace() {
  const place = element("div", { className: "error", role: "alert" });
  return { place, show: (error) => { place.textContent = error?.message ?? error ?? ""; } };
}

function copyButton(text, label) {
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text.textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  copy.setAttribute("aria-label", `Copy: ${label}`);
  return copy;
}

// A word to copy, with its button beside it.
export function copyWord(label, word) {
  const text = element("code", {}, word);
  return element("span", { className: "buttons" }, text, copyButton(text, label));
}

// A text to copy, with its button.
export function copyable(label) {
  const text = element("code");
  const copy = copyButton(text, label);
  const place = element("div", { className: "wide" }, element("p", { className: "help" }, label),
    element("pre", { tabIndex: 0, role: "group", "aria-label": label }, text), copy);
  return { place, set: (value) => { text.textContent = value; } };
}

export function table(caption, heads, rows) {
  const head = element("tr", {}, heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...others]) => element("tr", {},
    element("th", { scope: "row" }, first), others.map((text) => element("td", {}, text))));
  return element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, body)));
}

// What is read by few, behind its title.
export const folded = (title, ...children) => element("details", { className: "folded" }, element("summary", {}, title), children);

// A number of summary.json for a table: rounded, never computed from others. "–" if it is not known.
export function number(value, digits = 2, factor = 1) {
  return typeof value === "number" ? (value * factor).toFixed(digits) : "–";
}

export const seconds = (value) => value >= 90 ? `${Math.round(value / 60)} min` : `${Math.max(1, Math.ceil(value))} s`;
