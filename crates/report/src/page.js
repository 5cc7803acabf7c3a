// What the page can do beyond being read: values under the pointer, lines switched off, one time axis that all
// figures over time share, figures saved as files. Without it the page is complete.
//
// Nothing is computed here: a value is read back from the line as drawn, which is good to about a thousandth of
// its axis. The scales stand in each panel's data attributes (plot/panel.rs, open).

const SVG = "http://www.w3.org/2000/svg";
/** Around the panels of a saved figure: heights of a legend's row, of the title and of a caption's row, where the
 * texts begin, and a caption letter's width. As in chart/file.rs. */
const [LEGEND_ROW, TITLE_ROW, TITLE_BASE, CAPTION_ROW, TEXT_LEFT, CAPTION_LETTER] = [20, 26, 18, 17, 8, 6.6];
/** Pixels of a saved picture for each unit of the figure. Chosen: sharp on paper at the width of a column. */
const PICTURE_SCALE = 3;
/** A drag of fewer pixels is a click. */
const MIN_DRAG = 6;

const element = (name, attributes = {}, text = "") => {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.textContent = text;
  return made;
};

/** An image of the page's own: a browser lets a canvas with it be read, also from disk. */
const dataUrl = (svg) => `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;

/** A map from values to places and back, from "linear 0 60 72 742". */
const scaleOf = (text) => {
  const [kind, ...numbers] = text.split(" ");
  const [low, high, from, to] = numbers.map(Number);
  const share = (value) => (kind === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const value = (part) => (kind === "log" ? low * (high / low) ** part : low + part * (high - low));
  return { low, high, from, to, at: (it) => from + share(it) * (to - from), of: (place) => value((place - from) / (to - from)) };
};

/** The corners of a path of M, L, H, V and dots. */
const cornersOf = (path) => {
  const corners = [];
  let [x, y] = [0, 0];
  for (const [, command, rest] of path.getAttribute("d").matchAll(/([MLHV])([^A-Za-z]*)/g)) {
    const values = rest.trim().split(/[ ,]+/).map(Number);
    if (command === "H") [x] = values;
    else if (command === "V") [y] = values;
    else [x, y] = values;
    corners.push([x, y]);
  }
  return corners;
};

/** Text broken at spaces into rows of at most `columns` letters. */
const wrapped = (text, columns) =>
  text.split(/\s+/).filter(Boolean).reduce((rows, word) => {
    const longer = rows.length ? `${rows.at(-1)} ${word}` : word;
    return rows.length && longer.length <= columns ? [...rows.slice(0, -1), longer] : [...rows, word];
  }, []);

/** Three figures are as many as a line holds. */
const rounded = (value) => String(Number(value.toPrecision(3)));

/** By how much an arrow key moves the cursor, in the figure's units; with Shift it is ten times that. Chosen. */
const STEP = 4;
/** A dot within a step of the cursor is read: so the arrow keys leave none out. */
const REACH = STEP;

class Series {
  constructor(path) {
    this.name = path.dataset.name;
    this.colour = path.style.stroke;
    this.path = path;
    // A share of zero has no place on a logarithmic axis: the line ends at its bottom, and says so.
    this.endsAtZero = path.dataset.end === "0";
    // Over time and in a distribution a value holds until the next; messages and swept values stand alone. A
    // message is read where it stands: elsewhere there is nothing.
    this.holds = path.classList.contains("state") || path.closest(".panel").dataset.kind === "distribution";
    // Over time a line ends with its run; the share in a distribution goes on.
    this.ends = path.classList.contains("state");
  }

  get isOff() {
    return this.path.classList.contains("off");
  }

  /** The place on the line at or nearest to `x`. */
  at(x) {
    this.corners ??= cornersOf(this.path).sort((a, b) => a[0] - b[0]);
    const { corners } = this;
    let [low, high] = [0, corners.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (corners[middle][0] <= x) low = middle + 1;
      else high = middle;
    }
    const [before, after] = [corners[low - 1], corners[low]];
    // Places are written in tenths.
    if (this.ends && !after && x > before?.[0] + 0.1) return undefined;
    if (this.holds || !after || !before) return before ?? (this.holds ? undefined : after);
    return x - before[0] <= after[0] - x ? before : after;
  }
}

/** What is nearest to `x` of `places`. */
const nearest = (places, x) => places.reduce((best, it) => (Math.abs(it - x) < Math.abs(best - x) ? it : best));

class Panel {
  constructor(group, figure) {
    const data = group.dataset;
    [this.group, this.figure, this.isTime] = [group, figure, data.kind === "time"];
    [this.x, this.y] = [scaleOf(data.x), scaleOf(data.y)];
    [this.top, this.bottom] = data.place.split(" ").map(Number);
    this.series = [...group.querySelectorAll("path.series, path.state, path.dots")].map((path) => new Series(path));
    this.shown = [this.x.low, this.x.high];
    // The swept values as written, each with its place.
    this.swept = data.swept && JSON.parse(data.swept);
  }

  /** From a value to its place as enlarged, and back. */
  placeOf(value) {
    const [a, b] = [this.x.at(this.shown[0]), this.x.at(this.shown[1])];
    return this.x.from + ((this.x.at(value) - a) / (b - a)) * (this.x.to - this.x.from);
  }

  valueAt(place) {
    const [a, b] = [this.x.at(this.shown[0]), this.x.at(this.shown[1])];
    return this.x.of(a + ((place - this.x.from) / (this.x.to - this.x.from)) * (b - a));
  }

  /** How many times as wide as drawn its values are. */
  enlargement() {
    return (this.x.to - this.x.from) / (this.x.at(this.shown[1]) - this.x.at(this.shown[0]));
  }

  /** The value with as many decimals as tell it from the value a step further. */
  written(value) {
    const step = Math.abs(this.valueAt(this.placeOf(value) + STEP) - value);
    return String(Number(value.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 9))));
  }

  /** Lines of the readout at this value: [colour, name, text]. */
  read(value) {
    const { xName, xUnit, yUnit, kind } = this.group.dataset;
    const factor = kind === "distribution" ? 100 : 1;
    const series = this.series.filter((it) => !it.isOff);
    const valueOf = (it, point) => (it.endsAtZero && point === it.corners.at(-1) ? 0 : this.y.of(point[1]));
    const row = (it, point) => [it.colour, it.name, `${rounded(valueOf(it, point) * factor)} ${yUnit}`.trim()];
    let x = this.x.at(value);
    if (this.swept) {
      // Between two swept values there is nothing: one of them is read, of every line that has a point there.
      const points = series.map((it) => [it, it.at(x)]).filter(([, point]) => point);
      x = nearest(points.length ? points.map(([, point]) => point[0]) : this.swept.map(([place]) => place), x);
      const label = this.swept.filter(([place]) => place === x).map(([, text]) => text).join(", ");
      const rows = points.filter(([, point]) => point[0] === x).map(([it, point]) => row(it, point));
      return [["", xName, label], ...rows];
    }
    const rows = series.flatMap((it) => {
      const point = it.at(x);
      const isThere = point && (it.holds || Math.abs(point[0] - x) * this.enlargement() <= REACH);
      return isThere ? [row(it, point)] : [];
    });
    return [["", xName, `${this.written(value)} ${xUnit}`.trim()], ...rows];
  }

  /** Shows the span of values from `from` to `to`. */
  enlarge(from, to) {
    this.shown = [from, to];
    const [a, factor] = [this.x.at(from), this.enlargement()];
    const data = this.group.querySelector(".data");
    data.classList.toggle("zoomed", factor > 1);
    data.setAttribute("clip-path", `url(#${this.clip()})`);
    const matrix = `matrix(${factor} 0 0 1 ${this.x.from - factor * a} 0)`;
    [...data.children].forEach((path) => path.setAttribute("transform", matrix));
  }

  clip() {
    if (!this.clipId) {
      this.clipId = `clip-${document.querySelectorAll("clipPath").length}`;
      const clip = element("clipPath", { id: this.clipId });
      const size = { x: this.x.from, y: this.top - 2, width: this.x.to - this.x.from, height: this.bottom - this.top + 4 };
      clip.append(element("rect", size));
      this.group.prepend(clip);
    }
    return this.clipId;
  }
}

/** Every panel over time on the page: they show one span. */
const time = {
  panels: [],
  show(from, to) {
    const [low, high] = [0, Math.max(...time.panels.map((panel) => panel.x.high))];
    const width = Math.min(Math.max(to - from, (high - low) / 1000), high - low);
    const start = Math.min(Math.max(from, low), high - width);
    time.span = [start, start + width];
    time.panels.forEach((panel) => panel.enlarge(...time.span));
    time.figures().forEach((figure) => figure.drawTicks(...time.span));
    // What was read stands at another place now, at the nearer end if its moment is out of sight.
    const within = (value) => Math.min(Math.max(value, time.span[0]), time.span[1]);
    const read = time.figures().filter((figure) => figure.value !== undefined);
    read.forEach((figure) => figure.show(within(figure.value)));
  },
  figures() {
    return [...new Set(time.panels.map((panel) => panel.figure))];
  },
  all() {
    time.show(0, Infinity);
  },
  /** Enlarges by `factor` around `value`. */
  zoom(factor, value) {
    const [from, to] = time.span;
    const middle = value ?? (from + to) / 2;
    time.show(middle - (middle - from) / factor, middle + (to - middle) / factor);
  },
  mark(value) {
    time.figures().forEach((figure) => figure.drawCursor(value));
  },
};

class Figure {
  constructor(node) {
    [this.node, this.plot] = [node, node.querySelector(".plot")];
    this.svg = this.plot.querySelector("svg");
    this.panels = [...this.svg.querySelectorAll("g.panel")].map((group) => new Panel(group, this));
    this.isTime = this.panels.some((panel) => panel.isTime);
    time.panels.push(...this.panels.filter((panel) => panel.isTime));
    this.addTools();
    this.addSwitches();
    if (this.panels.length) this.addReadout();
  }

  addTools() {
    const tools = document.createElement("div");
    tools.className = "tools";
    const button = (label, title, action) => {
      const made = document.createElement("button");
      [made.type, made.textContent, made.title] = ["button", label, title];
      made.addEventListener("click", action);
      tools.append(made);
    };
    if (this.isTime) {
      button("+", "Enlarge every figure over time", () => time.zoom(2, this.value));
      button("−", "Show more time", () => time.zoom(0.5, this.value));
      button("All of the time", "Show all of the time", () => time.all());
    }
    button("Save SVG", "Save this figure as a drawing", () => this.download("svg", dataUrl(this.file())));
    button("Save PNG", "Save this figure as a picture", () => this.savePicture());
    this.plot.after(tools);
  }

  /** Each name of the legend that has a line becomes a switch. */
  addSwitches() {
    this.node.querySelectorAll(".legend [data-name]").forEach((item) => {
      const named = [...this.svg.querySelectorAll("[data-name]")].filter((it) => it.dataset.name === item.dataset.name);
      if (!named.length) return;
      const texts = [...this.svg.querySelectorAll("text.name")].filter((it) => it.textContent === item.dataset.name);
      Object.assign(item, { tabIndex: 0, role: "switch", ariaChecked: "true" });
      const toggle = () => {
        const isOff = item.ariaChecked === "true";
        item.ariaChecked = String(!isOff);
        [...named, ...texts].forEach((it) => it.classList.toggle("off", isOff));
      };
      item.addEventListener("click", toggle);
      item.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    });
  }

  addReadout() {
    const keys = this.isTime ? ", plus and minus enlarge, 0 shows all" : "";
    const label = `${this.node.querySelector("h3").textContent}: arrow keys read values${keys}`;
    Object.assign(this.plot, { tabIndex: 0, role: "group", ariaLabel: label });
    this.cursor = element("path", { class: "cursor" });
    this.svg.append(this.cursor);
    this.readout = document.createElement("div");
    Object.assign(this.readout, { className: "readout", hidden: true, role: "status" });
    this.plot.append(this.readout);
    [this.panel, this.value] = [this.panels[0], undefined];
    this.plot.addEventListener("pointermove", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerdown", (event) => this.onPointer(event));
    this.plot.addEventListener("pointerleave", () => this.hide());
    this.plot.addEventListener("blur", () => this.hide());
    this.plot.addEventListener("keydown", (event) => this.onKey(event));
    if (this.isTime) this.addDrag();
  }

  /** Place of the event in the figure's own units. */
  place(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
  }

  onPointer(event) {
    const { x, y } = this.place(event);
    const away = (panel) => Math.max(panel.top - y, y - panel.bottom, 0);
    this.panel = this.panels.reduce((best, panel) => (away(panel) < away(best) ? panel : best));
    const { from, to } = this.panel.x;
    if (x < from - 8 || x > to + 8) this.hide();
    else this.show(this.panel.valueAt(Math.min(Math.max(x, from), to)));
  }

  onKey(event) {
    // Those are the browser's: Ctrl and + enlarges the page, Alt and an arrow goes back.
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { panel } = this;
    const step = (event.shiftKey ? 10 : 1) * STEP * { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = this.panels.indexOf(panel) + { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const middle = this.value ?? panel.valueAt((panel.x.from + panel.x.to) / 2);
    if (step) {
      const place = panel.placeOf(middle) + step;
      this.show(panel.valueAt(Math.min(Math.max(place, panel.x.from), panel.x.to)));
    } else if (this.panels[at]) {
      this.panel = this.panels[at];
      this.show(middle);
    } else if (event.key === "Escape") this.hide();
    else if (this.isTime && (event.key === "+" || event.key === "=")) time.zoom(2, middle);
    else if (this.isTime && event.key === "-") time.zoom(0.5, middle);
    else if (this.isTime && event.key === "0") time.all();
    else return;
    event.preventDefault();
  }

  show(value) {
    this.value = value;
    if (this.isTime) time.mark(value);
    else this.drawCursor(value);
    const rows = this.panel.read(value).map(([colour, name, text]) => {
      const row = document.createElement("p");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = colour;
      row.append(...(colour ? [swatch] : []), `${name} ${text}`);
      return row;
    });
    this.readout.replaceChildren(...rows);
    this.readout.hidden = false;
    const scale = this.plot.clientWidth / this.svg.viewBox.baseVal.width;
    const place = this.panel.placeOf(value) * scale;
    const isRight = place > this.plot.clientWidth / 2;
    const left = isRight ? place - this.readout.offsetWidth - 12 : place + 12;
    this.readout.style.left = `${Math.max(0, Math.min(left, this.plot.clientWidth - this.readout.offsetWidth))}px`;
    this.readout.style.top = `${this.panel.top * scale}px`;
  }

  hide() {
    this.value = undefined;
    this.readout.hidden = true;
    if (this.isTime) time.mark(undefined);
    else this.drawCursor(undefined);
  }

  drawCursor(value) {
    const line = (panel) => `M${panel.placeOf(value)} ${panel.top}V${panel.bottom}`;
    this.cursor.setAttribute("d", value === undefined ? "" : this.panels.map(line).join(""));
  }

  /** A drag across a panel enlarges what it spans. */
  addDrag() {
    let start;
    const box = element("rect", { class: "selected" });
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      this.onPointer(event);
      start = { x: event.clientX, value: this.value };
      event.preventDefault();
      this.plot.focus();
    });
    window.addEventListener("pointermove", () => {
      if (start?.value === undefined || this.value === undefined) return;
      const [a, b] = [start.value, this.value].map((value) => this.panel.placeOf(value)).sort((p, q) => p - q);
      const size = { x: a, width: b - a, y: this.panel.top, height: this.panel.bottom - this.panel.top };
      Object.entries(size).forEach(([key, value]) => box.setAttribute(key, value));
      this.svg.append(box);
    });
    window.addEventListener("pointerup", (event) => {
      box.remove();
      const [from, to] = [start?.value, this.value];
      const isDrag = start && Math.abs(event.clientX - start.x) > MIN_DRAG;
      start = undefined;
      if (isDrag && from !== undefined && to !== undefined) time.show(Math.min(from, to), Math.max(from, to));
    });
    this.svg.addEventListener("dblclick", () => time.all());
  }

  /** Ticks for the span that is shown; only the last panel has labels. */
  drawTicks(from, to) {
    this.svg.querySelectorAll(".xt").forEach((tick) => tick.remove());
    const rough = (to - from) / 8;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((it) => it * power >= rough * 0.999) * power;
    this.panels.forEach((panel, index) => {
      for (let at = Math.ceil(from / step - 1e-9); at * step <= to * (1 + 1e-9); at += 1) {
        const x = panel.placeOf(at * step);
        this.svg.append(element("path", { class: "axis xt", d: `M${x} ${panel.bottom}v4` }));
        if (index + 1 < this.panels.length) continue;
        const label = String(Number((at * step).toPrecision(6)));
        this.svg.append(element("text", { class: "tick xt", x, y: panel.bottom + 18, "text-anchor": "middle" }, label));
      }
    });
  }

  download(extension, href) {
    const link = document.createElement("a");
    link.download = `${this.node.id.replace(/^figure-/, "")}.${extension}`;
    link.href = href;
    link.click();
  }

  /** The browser draws the file as an image, and the image onto a canvas. */
  savePicture() {
    const file = this.file();
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = file.width.baseVal.value * PICTURE_SCALE;
      canvas.height = file.height.baseVal.value * PICTURE_SCALE;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      this.download("png", canvas.toDataURL("image/png"));
    };
    image.src = dataUrl(file);
  }

  /** The figure as a file that needs nothing beside it, on light ground. */
  file() {
    const copy = this.svg.cloneNode(true);
    copy.querySelectorAll(".cursor, .selected, .off").forEach((it) => it.remove());
    const { width, height } = this.svg.viewBox.baseVal;
    const legend = element("g");
    let [x, row] = [72, 0];
    this.node.querySelectorAll(".legend [data-name]:not([aria-checked=false])").forEach((item) => {
      const samples = item.querySelectorAll("svg.sample");
      const text = 7.2 * item.dataset.name.length;
      if (x > 72 && x + 34 * samples.length + text > 750) [x, row] = [72, row + 1];
      samples.forEach((sample) => {
        const group = element("g", { transform: `translate(${x} ${4 + row * LEGEND_ROW})` });
        group.append(...[...sample.cloneNode(true).childNodes]);
        legend.append(group);
        x += 34;
      });
      legend.append(element("text", { x, y: 15 + row * LEGEND_ROW }, item.dataset.name));
      x += text + 20;
    });
    const legendHeight = legend.childNodes.length ? (row + 1) * LEGEND_ROW + 6 : 0;
    legend.setAttribute("transform", `translate(0 ${-legendHeight})`);
    const above = TITLE_ROW + legendHeight;
    const titleText = this.node.querySelector("h3").textContent;
    const title = element("text", { class: "name", x: TEXT_LEFT, y: TITLE_BASE - above }, titleText);
    const rows = wrapped(this.node.querySelector("figcaption").textContent, (width - 2 * TEXT_LEFT) / CAPTION_LETTER);
    const caption = rows.map((words, index) =>
      element("text", { class: "tick", x: TEXT_LEFT, y: height + CAPTION_ROW * (index + 1) }, words),
    );
    const below = rows.length ? CAPTION_ROW * (rows.length + 0.5) : 0;
    const box = { x: 0, y: -above, width, height: above + height + below };
    const variables = document.querySelector("style").textContent.split("@media")[0];
    copy.setAttribute("class", "plot");
    copy.setAttribute("viewBox", Object.values(box).join(" "));
    copy.setAttribute("width", width);
    copy.setAttribute("height", box.height);
    const ground = element("rect", { ...box, style: "fill:var(--page)" });
    copy.prepend(element("style", {}, variables + document.getElementById("figure-style").textContent), ground, title, legend);
    copy.append(...caption);
    return copy;
  }
}

document.querySelectorAll("figure").forEach((node) => {
  if (node.querySelector(".plot svg")) new Figure(node);
});
if (time.panels.length) time.span = [0, Math.max(...time.panels.map((panel) => panel.x.high))];
