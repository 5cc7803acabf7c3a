"use strict";
// Plays the hops of `#run` on `#stage`. Times are microseconds of run time from the page's beginning.
(() => {
  const run = JSON.parse(document.getElementById("run").textContent);
  const get = (id) => document.getElementById(id);
  const [still, stage, controls, toggle, speed, seek, now] =
    ["still", "stage", "controls", "toggle", "speed", "seek", "now"].map(get);
  const count = run.hops.entered.length;
  const entered = Float64Array.from(run.hops.entered);
  const began = entered.map((at, i) => at + run.hops.began[i]);
  const sent = began.map((at, i) => at + run.hops.sent[i]);
  const left = sent.map((at, i) => at + run.hops.left[i]);
  const link = Uint32Array.from(run.hops.link), flow = Uint32Array.from(run.hops.flow);
  const fate = Uint8Array.from(run.hops.fate);
  // Events between which a step goes, and the moments of drops and of losses by link.
  const events = Float64Array.from(
    [...entered, ...left].filter((at) => at >= 0 && at <= run.length)).sort();
  const DROPPED = 1, LOST = 2;
  const moments = (which) => {
    const by = run.links.map(() => []);
    for (let i = 0; i < count; i++) if (fate[i] === which) by[link[i]].push(left[i]);
    return by.map((them) => them.sort((a, b) => a - b));
  };
  const drops = moments(DROPPED), losses = moments(LOST);

  /** How many of the ascending `values` are at most `at`. */
  const upTo = (values, at, value = (it) => it) => {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value(values[middle]) <= at) low = middle + 1; else high = middle;
    }
    return low;
  };

  let time = 0, rate = 1, playing = false, last = 0;
  // Hops that may be seen: indices below `next` whose end, or whose fall, is not over.
  let active = new Uint32Array(1024), used = 0, next = 0, shown = -Infinity, fallOfActive = 0;
  /** How long a fall takes: 0.7 s of the viewer's time. */
  const fall = () => 7e5 * rate;
  const end = (i) => left[i] + (fate[i] ? fall() : 0);

  function add(i) {
    if (used === active.length) {
      const larger = new Uint32Array(2 * used);
      larger.set(active);
      active = larger;
    }
    active[used++] = i;
  }

  /** Brings the active hops to `at`. */
  function advance(at) {
    if (at < shown || fall() !== fallOfActive) { used = 0; next = 0; fallOfActive = fall(); }
    let kept = 0;
    for (let k = 0; k < used; k++) if (end(active[k]) > at) active[kept++] = active[k];
    used = kept;
    for (; next < count && entered[next] <= at; next++) if (end(next) > at) add(next);
    shown = at;
  }

  const context = stage.getContext("2d");
  let width = 0, height = 0, side = 0, wires = [], ink, soft, page, bad;
  const edge = 56, font = "12px system-ui, sans-serif";
  const spot = ([, x, y]) => [side + x * (width - 2 * side), edge + y * (height - 2 * edge)];

  function layout() {
    const columns = {};
    for (const [, x] of run.nodes) columns[x.toFixed(3)] = (columns[x.toFixed(3)] || 0) + 1;
    const rows = Math.max(1, ...Object.values(columns));
    width = stage.clientWidth;
    height = Math.max(260, Math.min(720, 2 * edge + 44 * (rows - 1)));
    const dots = window.devicePixelRatio || 1;
    stage.width = Math.round(width * dots);
    stage.height = Math.round(height * dots);
    stage.style.height = `${height}px`;
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.font = font;
    const outermost = run.nodes.filter(([, x]) => x <= 0 || x >= 1);
    const widest = Math.max(0, ...outermost.map(([label]) => context.measureText(label).width + 14));
    side = Math.max(Math.min(150, 0.22 * width), Math.min(0.35 * width, widest));
    const style = getComputedStyle(document.documentElement);
    [ink, soft, page, bad] = ["--ink", "--soft", "--page", "--bad"].map((it) => style.getPropertyValue(it));
    wires = run.links.map(([name, about, ends]) => {
      if (!ends) return null;
      const [a, b] = ends.map((node) => spot(run.nodes[node]));
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      const [ux, uy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
      // A little to the right of the way, so that two directions lie beside each other.
      const [rx, ry] = [uy * 6, -ux * 6];
      return { name, about, x: a[0] + rx, y: a[1] + ry, ux, uy, length };
    });
  }

  function drawNetwork() {
    context.lineWidth = 1;
    context.strokeStyle = soft;
    context.beginPath();
    for (const wire of wires) if (wire) {
      context.moveTo(wire.x, wire.y);
      context.lineTo(wire.x + wire.ux * wire.length, wire.y + wire.uy * wire.length);
    }
    context.stroke();
    for (const node of run.nodes) {
      const [x, y] = spot(node);
      context.fillStyle = page;
      context.strokeStyle = ink;
      context.fillRect(x - 6, y - 6, 12, 12);
      context.strokeRect(x - 6, y - 6, 12, 12);
    }
  }

  // Of each link: how many wait.
  const waiting = new Uint32Array(run.links.length);

  // Of each flow: how many of its hops are active, and where they begin in `sorted`.
  const starts = new Uint32Array(run.flows.length + 2);
  const rank = new Uint32Array(count);
  // Of each link: the flow and the place of the packet that was drawn last.
  const lastFlow = new Int32Array(run.links.length), lastTail = new Float64Array(run.links.length);
  let sorted = new Uint32Array(1024);

  function drawPackets(at) {
    waiting.fill(0);
    starts.fill(0);
    lastFlow.fill(-1);
    if (sorted.length < used) sorted = new Uint32Array(active.length);
    for (let k = 0; k < used; k++) starts[flow[active[k]] + 2]++;
    for (let f = 2; f < starts.length; f++) starts[f] += starts[f - 1];
    for (let k = 0; k < used; k++) {
      const i = active[k];
      sorted[starts[flow[i] + 1]++] = i;
      // Hops come in the order of their entry: so do the ranks in a queue.
      if (at < began[i] && at < left[i]) rank[i] = waiting[link[i]]++;
    }
    for (let f = 0; f < run.flows.length; f++) {
      context.fillStyle = run.flows[f][1];
      for (let k = starts[f]; k < starts[f + 1]; k++) {
        const i = sorted[k];
        if (wires[link[i]] && !(fate[i] && at >= left[i])) place(i, at);
      }
    }
    context.fillStyle = bad;
    for (let k = 0; k < used; k++) {
      const i = active[k], wire = wires[link[i]];
      if (!fate[i] || at < left[i] || !wire) continue;
      const share = (at - left[i]) / fall(), along = fate[i] === LOST ? wire.length : 12;
      context.fillRect(wire.x + wire.ux * along - 3, wire.y + wire.uy * along + share * share * 70 - 3, 6, 6);
    }
  }

  function place(i, at) {
    const wire = wires[link[i]];
    if (at < began[i]) {
      // Waiting packets stand in columns of ten beside the link's beginning.
      const column = Math.floor(rank[i] / 10), row = rank[i] % 10;
      const along = 14 + 5 * (column % 20), aside = 6 + 5 * row;
      context.fillRect(wire.x + wire.ux * along + wire.uy * aside - 2, wire.y + wire.uy * along - wire.ux * aside - 2, 4, 4);
      return;
    }
    const delay = left[i] - sent[i], service = sent[i] - began[i];
    const head = delay > 0 ? Math.min(1, (at - began[i]) / delay) : (at - began[i]) / Math.max(1, service);
    const tail = delay > 0 ? Math.max(0, (at - sent[i]) / delay) : 0;
    // A packet that would cover the one before it of its flow is not drawn.
    const l = link[i], drawn = tail * wire.length;
    if (lastFlow[l] === flow[i] && Math.abs(lastTail[l] - drawn) < 0.5) return;
    lastFlow[l] = flow[i];
    lastTail[l] = drawn;
    // Three lanes, so that flows on one link do not hide each other.
    const lane = run.flows.length > 1 ? 3 * (flow[i] % 3 - 1) : 0;
    const x = wire.x + wire.ux * drawn - wire.uy * lane, y = wire.y + wire.uy * drawn + wire.ux * lane;
    const long = (head - tail) * wire.length;
    if (long <= 4) { context.fillRect(x - 2, y - 2, 4, 4); return; }
    if (Math.abs(wire.uy) < 1e-3) { context.fillRect(Math.min(x, x + wire.ux * long), y - 2, long, 4); return; }
    context.beginPath();
    context.moveTo(x - wire.uy * 2, y + wire.ux * 2);
    context.lineTo(x + wire.uy * 2, y - wire.ux * 2);
    context.lineTo(x + wire.ux * long + wire.uy * 2, y + wire.uy * long - wire.ux * 2);
    context.lineTo(x + wire.ux * long - wire.uy * 2, y + wire.uy * long + wire.ux * 2);
    context.fill();
  }

  /** How many packets link `index` has dropped and lost from the page's beginning until `at`. */
  const gone = (index, at) => [upTo(drops[index], at), upTo(losses[index], at)];

  /** As much of `text` as has room beside `x`. */
  function fitting(text, x, isLeft) {
    const room = (isLeft ? x : width - x) - 12;
    if (context.measureText(text).width <= room) return text;
    let most = text.length;
    while (most > 1 && context.measureText(`${text.slice(0, most)}…`).width > room) most--;
    return `${text.slice(0, most)}…`;
  }

  function drawWords(at) {
    context.font = font;
    context.fillStyle = ink;
    const rows = {};
    for (const node of run.nodes) {
      const [x, y] = spot(node), isLeft = node[1] < 0.5;
      context.textAlign = isLeft ? "right" : "left";
      context.fillText(fitting(node[0], x, isLeft), isLeft ? x - 12 : x + 12, y + 4);
    }
    for (const [, colour, sender, cwnd] of run.flows) {
      if (!cwnd.length) continue;
      const before = upTo(cwnd, at, (point) => point[0]);
      if (!before) continue;
      const value = cwnd[before - 1][1], [x, y] = spot(run.nodes[sender]), isLeft = run.nodes[sender][1] < 0.5;
      const row = rows[sender] = (rows[sender] || 0) + 1;
      if (row > 3) continue;
      context.textAlign = isLeft ? "right" : "left";
      context.fillText(`cwnd ${value.toFixed(1)}`, isLeft ? x - 12 : x + 12, y + 4 + 14 * row);
      context.fillStyle = colour;
      const bar = Math.min(90, value);
      context.fillRect(isLeft ? x - 12 - bar : x + 12, y + 7 + 14 * row, bar, 3);
      context.fillStyle = ink;
    }
    context.textAlign = "center";
    context.fillStyle = soft;
    const named = new Set(), called = new Set();
    wires.forEach((wire, index) => {
      if (!wire) return;
      const [dropped, lost] = gone(index, at), has = (text) => context.measureText(text).width < 0.8 * wire.length;
      const joined = (...parts) => parts.filter((it) => it).join(", ");
      const states = joined(waiting[index] ? `${waiting[index]} wait` : "", dropped ? `${dropped} dropped` : "",
        lost ? `${lost} lost` : "");
      // Where there is no room, the text over the drawing has the rate and the delay alone.
      const whole = joined(`${wire.name}: ${wire.about}`, states), short = joined(wire.name, states);
      // Of links that are made alike the first is named: names on all of a fan would hide each other.
      const isWhole = !named.has(wire.about) && has(whole);
      const isFirst = !named.has(wire.about) && !called.has(wire.about);
      const isShort = !isWhole && (isFirst || run.links.length <= 2) && has(short);
      if (isWhole) named.add(wire.about);
      if (isShort) called.add(wire.about);
      const words = isWhole ? whole : isShort ? short : states;
      if (!words) return;
      const since = dropped || lost ? `${words} since the page begins` : words;
      const said = has(since) ? since : words;
      const middle = 0.5 * wire.length, below = wire.ux < 0;
      context.fillText(said, wire.x + wire.ux * middle, wire.y + wire.uy * middle + (below ? 18 : -8));
    });
  }

  function draw() {
    advance(time);
    context.clearRect(0, 0, width, height);
    drawNetwork();
    drawPackets(time);
    drawWords(time);
    seek.value = String(Math.round(1000 * time / run.length));
    now.textContent = `${((run.from + time) / 1e6).toFixed(6)} s`;
  }

  function go(to) {
    time = Math.max(0, Math.min(run.length, to));
    draw();
  }

  function play(whether) {
    playing = whether && time < run.length;
    toggle.textContent = playing ? "Pause" : "Play";
    if (playing) {
      last = performance.now();
      requestAnimationFrame(tick);
    }
  }

  function tick(at) {
    if (!playing) return;
    go(time + Math.max(0, at - last) * 1e3 * rate);
    last = at;
    if (time >= run.length) play(false); else requestAnimationFrame(tick);
  }

  function step(by) {
    play(false);
    const at = by > 0 ? upTo(events, time) : upTo(events, time - 1e-6) - 1;
    go(at < 0 ? 0 : at >= events.length ? run.length : events[at]);
  }

  const SLOWER = [10000, 3000, 1000, 300, 100, 30, 10, 3];
  const SPEEDS = [...SLOWER.map((part) => 1 / part), 1, 3, 10];
  for (const value of SPEEDS) speed.add(new Option(value < 1 ? `1/${Math.round(1 / value)}` : `${value}`, value));
  function setSpeed(index) {
    speed.selectedIndex = Math.max(0, Math.min(SPEEDS.length - 1, index));
    rate = SPEEDS[speed.selectedIndex];
    draw();
  }

  toggle.addEventListener("click", () => { if (time >= run.length) time = 0; play(!playing); });
  get("back").addEventListener("click", () => step(-1));
  get("forward").addEventListener("click", () => step(1));
  speed.addEventListener("change", () => setSpeed(speed.selectedIndex));
  seek.addEventListener("input", () => go(seek.valueAsNumber / 1000 * run.length));
  document.addEventListener("keydown", (event) => {
    const own = event.target.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || own === "SELECT" || own === "INPUT") return;
    const keys = {
      " ": () => toggle.click(), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
      ArrowUp: () => setSpeed(speed.selectedIndex + 1), ArrowDown: () => setSpeed(speed.selectedIndex - 1),
      Home: () => go(0), End: () => go(run.length),
    };
    if (!keys[event.key] || (event.key === " " && own === "BUTTON")) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("resize", () => { layout(); draw(); });

  still.hidden = true;
  stage.hidden = controls.hidden = false;
  get("keys").hidden = false;
  layout();
  // A page of some seconds plays in some tens of seconds; one that takes longer at any speed has the last.
  const suits = SPEEDS.findIndex((value) => run.length / 1e6 / value <= 60);
  setSpeed(suits < 0 ? SPEEDS.length - 1 : suits);
  // For a script that measures or takes pictures.
  window.player = { go, play, step, gone, drawn: () => used, length: run.length };
})();
