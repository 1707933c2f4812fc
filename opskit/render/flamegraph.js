"use strict";
(() => {
  const script = document.currentScript;
  const svg = (script && script.closest("svg")) || document.documentElement;
  const part = id => svg.querySelector("#" + id);
  const data = JSON.parse(part("data").textContent);
  const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  const PAD = 10, GAP = 1, CHARACTER = 7.23, SLIVER = 1.5, FIRST_FRAME = 0;
  const row = matchMedia("(pointer: coarse)").matches ? 26 : 18;
  const alone = svg === document.documentElement;
  const canvas = document.createElementNS(HTML, "canvas").getContext("2d");
  canvas.font = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
  const character = canvas.measureText("MMMMMMMMMM").width / 10 || CHARACTER;

  // Every frame has a number: first the tree's, then those of the strip of what is gone.
  const frames = { region: [], depth: [], name: [], total: [], own: [], look: [], before: [], ownBefore: [], begin: [], wide: [], parent: [], end: [] };
  const regions = data.regions.map((columns, number) => {
    const first = frames.depth.length, count = columns.depth.length;
    const following = new Array(columns.rows + 2).fill(0), path = [];
    const lines = Array.from({ length: columns.rows }, () => []);
    for (let at = 0; at < count; at++) {
      const depth = columns.depth[at], i = first + at;
      const wide = number ? columns.totalBefore[at] : columns.total[at];
      while (path.length > depth) frames.end[path.pop()] = i;
      frames.parent[i] = depth ? path[depth - 1] : -1;
      path.push(i);
      frames.region[i] = number;
      frames.depth[i] = depth;
      frames.name[i] = columns.name[at];
      frames.total[i] = columns.total[at];
      frames.own[i] = columns.own[at];
      frames.look[i] = columns.look[at];
      frames.before[i] = columns.totalBefore ? columns.totalBefore[at] : 0;
      frames.ownBefore[i] = columns.ownBefore ? columns.ownBefore[at] : 0;
      frames.begin[i] = following[depth];
      frames.wide[i] = wide;
      following[depth + 1] = following[depth];
      following[depth] += wide;
      lines[depth].push(i);
    }
    while (path.length) frames.end[path.pop()] = first + count;
    return { number, heading: columns.heading, rows: columns.rows, span: columns.span, first, end: first + count, lines, top: 0 };
  });
  const count = frames.depth.length;
  const name = i => data.names[frames.name[i]];
  const isRoot = i => frames.region[i] === 0 && frames.depth[i] === 0;

  let zoom = FIRST_FRAME, focused = FIRST_FRAME, query = "", inverted = data.inverted, width = 0;
  let matching = null;   // a flag for each name, while something is searched
  const past = [];       // where Back leads
  let shown = new Map(); // frame -> its group
  let left = [], broad = []; // px, of the frames in the current zoom; undefined where out of sight

  const percent = (part, whole) => {
    const share = whole ? 100 * part / whole : 0;
    return share.toFixed(share > 0 && share < 1 ? 2 : 1) + "\u202f%";
  };
  const signed = share => (share > 0 ? "+" : share < 0 ? "\u2212" : "\u00b1") + Math.abs(share).toFixed(2) + " points";
  const amount = weight => {
    const units = weight / data.perUnit;
    const digits = data.perUnit === 1 || units >= 100 ? 0 : 1;
    const unit = data.perUnit === 1 && weight === 1 ? data.unit.replace(/s$/, "") : data.unit;
    return units.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + "\u00a0" + unit;
  };

  function make(parent, space, tag, attributes, text) {
    const element = document.createElementNS(space, tag);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  // Phones take a page without this for a desk's. (In the file itself it would end the picture where that is pasted into HTML.)
  if (alone) svg.insertBefore(make(null, HTML, "meta", { name: "viewport", content: "width=device-width, initial-scale=1" }), svg.firstChild);

  // The head and the controls are HTML, so that they wrap on a narrow screen.
  const oldHead = part("head");
  if (oldHead) oldHead.remove();
  const holder = make(null, SVG, "foreignObject", { x: 0, y: 0, width: "100%", height: 10 });
  svg.insertBefore(holder, part("frames"));
  const page = make(holder, HTML, "div", { class: "page" });
  make(page, HTML, "h1", {}, data.title);
  const notes = data.notes.map(note => make(page, HTML, "p", {}, note));
  const bar = make(page, HTML, "div", { class: "bar", role: "toolbar", "aria-label": "Picture" });
  const box = make(bar, HTML, "input", {
    id: "search", type: "search", placeholder: "search: regular expression  ( / )", "aria-label": "Search frames by a regular expression",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  });
  const back = make(bar, HTML, "button", { id: "back", type: "button", title: "Escape or Backspace" }, "Back");
  const reset = make(bar, HTML, "button", { id: "reset", type: "button", title: "Home or r" }, "Reset");
  const flip = make(bar, HTML, "button", { id: "flip", type: "button", title: "i" }, "Flip");
  const matched = make(bar, HTML, "output", { id: "matched", "aria-live": "polite" });
  const legend = make(page, HTML, "ul", { class: "legend", "aria-label": "Colours" });
  for (const [look, text] of data.legend) {
    const item = make(legend, HTML, "li", {});
    make(make(item, SVG, "svg", { "aria-hidden": "true", width: 26, height: 14 }), SVG, "rect", { class: look, width: 26, height: 14, rx: 2 });
    make(item, HTML, "span", {}, text);
  }

  const tree = part("frames");
  tree.textContent = "";
  tree.setAttribute("role", "tree");
  tree.setAttribute("aria-label", "Frames. Arrow keys walk, Enter zooms, Escape goes back, slash searches.");
  const layers = regions.map(region => {
    const heading = region.heading === null ? null : make(tree, SVG, "text", { class: "head", x: PAD }, region.heading);
    return { heading, group: make(tree, SVG, "g", {}) };
  });
  const tipHolder = make(svg, SVG, "foreignObject", { id: "tip", width: 10, height: 10, "pointer-events": "none", visibility: "hidden" });
  const tip = make(tipHolder, HTML, "div", { class: "tip", role: "tooltip" });

  function label(i, room) {
    const sign = data.signs[frames.look[i]], text = name(i), kind = frames.name[i];
    room -= 8 + sign.length * character;
    if (room < 2 * character) return "";
    for (const at of [0, data.classAt[kind], data.methodAt[kind]]) {
      const rest = text.slice(at);
      if (measure(rest) <= room) return sign + rest;
    }
    const rest = Array.from(text.slice(data.methodAt[kind]));
    let kept = Math.min(rest.length, Math.floor(room / character) - 1);
    while (kept > 0 && measure(rest.slice(0, kept).join("") + "\u2026") > room) kept--;
    return kept > 0 ? sign + rest.slice(0, kept).join("") + "\u2026" : "";
  }
  function measure(text) {
    return /^[ -~]*$/.test(text) ? text.length * character : canvas.measureText(text).width;
  }

  function described(i) {
    const kind = data.kinds[frames.look[i]];
    let text = name(i) + ", " + (kind ? kind + ", " : "") + amount(frames.total[i]) + ", " + percent(frames.total[i], data.total);
    if (data.before !== null) {
      text += ", before " + percent(frames.before[i], data.totalBefore) + "; own " + percent(frames.own[i], data.total)
        + ", before " + percent(frames.ownBefore[i], data.totalBefore);
    } else if (frames.own[i]) {
      text += ", own " + percent(frames.own[i], data.total);
    }
    return text;
  }

  function isAbove(i, below) { // i calls `below`, or is it
    return frames.region[i] === frames.region[below] && i <= below && below < frames.end[i];
  }

  function vertical(i) {
    const region = regions[frames.region[i]];
    return region.top + (inverted ? frames.depth[i] : region.rows - 1 - frames.depth[i]) * row;
  }

  function group(i) {
    const element = make(null, SVG, "g", {
      class: "f", role: "treeitem", tabindex: i === focused ? 0 : -1, "aria-level": frames.depth[i] + 1, "aria-label": described(i), "data-frame": i,
    });
    const y = vertical(i), room = broad[i];
    make(element, SVG, "rect", {
      class: data.looks[frames.look[i]], x: left[i].toFixed(2), y, width: Math.max(room - GAP, room * .7).toFixed(2), height: row - GAP,
    });
    const text = label(i, room);
    if (text) make(element, SVG, "text", { x: (left[i] + 4).toFixed(2), y: y + row / 2 + 4 }, text);
    if (isAbove(i, zoom) && i !== zoom) element.classList.add("above");
    if (matching && matching[frames.name[i]]) element.classList.add("match", ...(room >= 6 ? ["boxed"] : []));
    shown.set(i, element);
    return element;
  }

  function draw() {
    const ratio = width - 2 * PAD;
    left = new Array(count);
    broad = new Array(count);
    shown = new Map();
    for (const region of regions) {
      const at = frames.region[zoom] === region.number && !isRoot(zoom) ? zoom : -1;
      const from = at < 0 ? 0 : frames.begin[at], span = at < 0 ? region.span : frames.wide[at];
      const scale = span ? ratio / span : 0;
      const target = document.createDocumentFragment(), slivers = new Map();
      const place = i => {
        const above = at >= 0 && i < at;
        left[i] = above ? PAD : PAD + (frames.begin[i] - from) * scale;
        broad[i] = above ? ratio : frames.wide[i] * scale;
        if (broad[i] >= SLIVER) {
          target.appendChild(group(i));
        } else {
          const match = matching && matching[frames.name[i]] ? " match" : "";
          const look = data.looks[frames.look[i]] + match;
          const y = vertical(i);
          slivers.set(look, (slivers.get(look) || "") + "M" + left[i].toFixed(2) + " " + y + "h" + broad[i].toFixed(2) + "v" + (row - GAP) + "h-" + broad[i].toFixed(2) + "z");
        }
      };
      for (let i = at < 0 ? -1 : frames.parent[at], callers = []; ; i = frames.parent[i]) {
        if (i < 0) { callers.reverse().forEach(place); break; }
        callers.push(i);
      }
      for (let i = at < 0 ? region.first : at, end = at < 0 ? region.end : frames.end[at]; i < end; i++) place(i);
      for (const [look, path] of slivers) make(target, SVG, "path", { class: look, d: path });
      layers[region.number].group.replaceChildren(target);
    }
    tree.classList.toggle("searched", matching !== null);
    back.disabled = past.length === 0;
    reset.disabled = zoom === FIRST_FRAME && !query;
    flip.textContent = inverted ? "Flame" : "Icicle";
    tell();
  }

  // The share of all that matches: a match below a match counts once.
  function found(from, weights) {
    let sum = 0, count = 0, covered = -1;
    for (let i = from; i < frames.end[from]; i++) {
      if (!matching[frames.name[i]]) continue;
      count++;
      if (i < covered) continue;
      sum += weights[i];
      covered = frames.end[i];
    }
    return { sum, count };
  }
  function tell() {
    if (!matching) { matched.textContent = ""; return; }
    const within = frames.region[zoom] === 0 ? zoom : FIRST_FRAME;
    const { sum, count } = found(within, frames.total);
    const lost = { sum: 0, count: 0 }; // in the strip of what is gone
    for (const region of regions.slice(1)) {
      for (const i of region.lines[0]) {
        const one = found(i, frames.before);
        lost.sum += one.sum;
        lost.count += one.count;
      }
    }
    const figures = (weight, number) => "(" + amount(weight) + ", " + number.toLocaleString("en-US") + (number === 1 ? " frame)" : " frames)");
    const said = [];
    if (count) said.push("matched " + percent(sum, frames.total[within]) + (isRoot(within) ? "" : " of the zoomed frame") + " " + figures(sum, count));
    if (lost.count) said.push("gone: " + percent(lost.sum, data.totalBefore) + " of " + data.before + " " + figures(lost.sum, lost.count));
    matched.textContent = said.join("; ") || "nothing matches";
  }

  function layout() {
    if (data.width === null) svg.setAttribute("width", "100%");
    svg.removeAttribute("viewBox");
    width = data.width === null ? Math.max(svg.getBoundingClientRect().width || 1200, 160) : data.width;
    holder.setAttribute("width", width);
    holder.setAttribute("height", 2000);
    let y = Math.ceil(page.getBoundingClientRect().height || 120);
    holder.setAttribute("height", y);
    for (const region of regions) {
      const heading = layers[region.number].heading;
      if (heading) {
        y += 30;
        heading.setAttribute("y", y - 9);
      }
      region.top = y;
      y += region.rows * row + 6;
    }
    svg.setAttribute("height", y + 6);
    draw();
    if (data.width === null && Math.abs(svg.getBoundingClientRect().width - width) > 1 && !layout.again) {
      layout.again = true; // a scroll bar came
      layout();
      layout.again = false;
    }
  }

  function go(to, remember = true) {
    if (to !== zoom) {
      if (remember) past.push(zoom);
      zoom = to;
    }
    const keep = tree.contains(document.activeElement);
    focused = to;
    hide();
    draw();
    if (keep) focus(to, false);
    note();
  }

  function goBack() {
    if (past.length) go(past.pop(), false);
  }

  function search(text) {
    query = text;
    matching = null;
    box.removeAttribute("aria-invalid");
    let problem = "";
    if (text) {
      try {
        const pattern = new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "u" : "iu");
        matching = data.names.map(known => pattern.test(known));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        box.setAttribute("aria-invalid", "true");
        problem = "no regular expression: " + error.message.replace(/^.*?: (?=\S)/, "");
      }
    }
    draw();
    if (problem) matched.textContent = problem;
    note();
    fit();
  }

  // The head may have grown by a line.
  function fit() {
    if (Math.abs(Math.ceil(page.getBoundingClientRect().height) - holder.getAttribute("height")) > 1) layout();
  }

  function note() { // a reloaded or forwarded address shows the same
    if (!alone) return;
    const words = new URLSearchParams();
    if (zoom !== FIRST_FRAME) words.set("zoom", zoom);
    if (query) words.set("search", query);
    try {
      history.replaceState(null, "", "#" + words);
    } catch (error) {
      if (!(error instanceof DOMException)) throw error; // where the address may not be changed it stays
    }
  }

  function recall() {
    const words = new URLSearchParams(location.hash.slice(1));
    const wanted = Number(words.get("zoom"));
    if (Number.isInteger(wanted) && wanted > 0 && wanted < count) {
      past.push(zoom);
      zoom = focused = wanted;
    }
    box.value = words.get("search") || "";
  }

  function line(parent, cells, header) {
    const tr = make(parent, HTML, "tr", {});
    cells.forEach((cell, at) => make(tr, HTML, at === 0 || header ? "th" : "td", {}, cell));
  }

  function show(i, x, y) {
    tip.textContent = "";
    make(tip, HTML, "b", {}, name(i));
    const kind = data.kinds[frames.look[i]];
    if (kind) make(tip, HTML, "div", {}, kind);
    const table = make(tip, HTML, "table", {});
    if (data.before === null) {
      line(table, ["total", amount(frames.total[i]), percent(frames.total[i], data.total)]);
      line(table, ["own", amount(frames.own[i]), percent(frames.own[i], data.total)]);
      if (zoom !== FIRST_FRAME && isAbove(zoom, i)) line(table, ["of the zoomed frame", "", percent(frames.total[i], frames.total[zoom])]);
    } else {
      const row = (title, now, before) => {
        const share = data.total ? 100 * now / data.total : 0, was = data.totalBefore ? 100 * before / data.totalBefore : 0;
        line(table, [title, percent(before, data.totalBefore), percent(now, data.total), signed(share - was)]);
      };
      line(table, ["", "before", "after", "change"], true);
      row("own", frames.own[i], frames.ownBefore[i]);
      row("total", frames.total[i], frames.before[i]);
      line(table, ["", amount(frames.before[i]), amount(frames.total[i])]);
    }
    const room = Math.min(520, width - 16);
    tipHolder.setAttribute("width", room);
    tipHolder.setAttribute("height", 1000);
    const size = tip.getBoundingClientRect();
    const window_ = alone ? { top: scrollY, bottom: scrollY + innerHeight } : { top: 0, bottom: Number(svg.getAttribute("height")) };
    const below = y + row + 4, above = y - size.height - 6;
    tipHolder.setAttribute("x", Math.max(8, Math.min(x, width - size.width - 8)));
    tipHolder.setAttribute("y", below + size.height > window_.bottom && above > window_.top ? above : below);
    tipHolder.setAttribute("width", Math.ceil(size.width));
    tipHolder.setAttribute("height", Math.ceil(size.height) + 10);
    tipHolder.setAttribute("visibility", "visible");
  }

  function hide() {
    tipHolder.setAttribute("visibility", "hidden");
  }

  // Slivers have no element: which frame is meant is found by its place.
  function frameAt(event) {
    const group = event.target.closest && event.target.closest(".f");
    if (group) return Number(group.dataset.frame);
    const bounds = svg.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    for (const region of regions) {
      const level = Math.floor((y - region.top) / row);
      if (level < 0 || level >= region.rows) continue;
      const found = region.lines[inverted ? level : region.rows - 1 - level];
      let low = 0, high = found.length - 1;
      const zoomed = frames.region[zoom] === region.number && !isRoot(zoom) ? zoom : -1;
      const from = zoomed < 0 ? 0 : frames.begin[zoomed], span = zoomed < 0 ? region.span : frames.wide[zoomed];
      const weight = from + (x - PAD) / (width - 2 * PAD) * span;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (frames.begin[found[middle]] <= weight) low = middle; else high = middle - 1;
      }
      const i = found[low];
      if (i !== undefined && left[i] !== undefined && frames.begin[i] <= weight && weight <= frames.begin[i] + frames.wide[i]) return i;
    }
    return -1;
  }

  function focus(i, telling = true) {
    let element = shown.get(i);
    if (!element) {
      if (left[i] === undefined) return;
      element = group(i); // a sliver gets an element when it is reached
      layers[frames.region[i]].group.appendChild(element);
    }
    const old = shown.get(focused);
    if (old) old.setAttribute("tabindex", -1);
    focused = i;
    element.setAttribute("tabindex", 0);
    element.focus({ preventScroll: true });
    if (alone) {
      const y = vertical(i) + svg.getBoundingClientRect().top;
      if (y < 0 || y + row > innerHeight) scrollBy(0, y - innerHeight / 2);
    }
    if (telling) show(i, Math.max(PAD, left[i]), vertical(i)); else hide();
  }

  function inside(i) { // the widest frame that i calls
    let best = -1;
    for (let at = i + 1; at < frames.end[i]; at = frames.end[at]) {
      if (left[at] !== undefined && (best < 0 || frames.wide[at] > frames.wide[best])) best = at;
    }
    return best;
  }

  function beside(i, step) {
    const found = regions[frames.region[i]].lines[frames.depth[i]];
    for (let at = found.indexOf(i) + step; at >= 0 && at < found.length; at += step) {
      if (left[found[at]] !== undefined) return found[at];
    }
    return -1;
  }

  function otherRegion(i, step) {
    const region = regions[frames.region[i] + step];
    return region ? region.first : -1;
  }

  tree.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const inwards = inverted ? "ArrowDown" : "ArrowUp", outwards = inverted ? "ArrowUp" : "ArrowDown";
    let to;
    if (event.key === "Enter" || event.key === " ") {
      go(focused);
      event.preventDefault();
      return;
    }
    if (event.key === inwards) to = inside(focused);
    else if (event.key === outwards) to = frames.parent[focused];
    else if (event.key === "ArrowLeft") to = beside(focused, -1);
    else if (event.key === "ArrowRight") to = beside(focused, 1);
    else if (event.key === "PageDown") to = otherRegion(focused, 1);
    else if (event.key === "PageUp") to = otherRegion(focused, -1);
    else return;
    event.preventDefault();
    if (to >= 0) focus(to);
  });
  svg.addEventListener("keydown", event => {
    const typing = event.target === box;
    if (((event.ctrlKey || event.metaKey) && event.key === "f" && !typing) || (!typing && event.key === "/")) {
      box.focus();
      box.select();
      event.preventDefault();
    } else if (typing && event.key === "Escape") {
      box.value = "";
      search("");
      shown.get(focused) && focus(focused);
    } else if (typing && event.key === "Enter") {
      const first = matching ? [...shown.keys()].find(i => matching[frames.name[i]]) : undefined;
      if (first !== undefined) focus(first);
    } else if (typing || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    } else if (event.key === "Escape" || event.key === "Backspace") {
      goBack();
      event.preventDefault();
    } else if (event.key === "Home" || event.key === "r") {
      start();
      event.preventDefault();
    } else if (event.key === "i") {
      turn();
    }
  });
  if (alone) {
    // Keys work before anything has been clicked.
    document.addEventListener("keydown", event => {
      if (!svg.contains(event.target) || event.target === svg) {
        if (event.key.startsWith("Arrow") && !event.ctrlKey && !event.altKey && !event.metaKey) {
          focus(left[focused] === undefined ? zoom : focused);
          event.preventDefault();
        }
      }
    });
  }
  tree.addEventListener("click", event => {
    const i = frameAt(event);
    if (i >= 0) go(i);
  });
  tree.addEventListener("mousemove", event => {
    const i = frameAt(event);
    if (i < 0) hide(); else show(i, event.clientX - svg.getBoundingClientRect().left + 10, vertical(i));
  });
  tree.addEventListener("mouseleave", hide);
  // On the document: a browser takes an SVG element that listens for focus for one that wants it.
  document.addEventListener("focusin", event => {
    const group = tree.contains(event.target) && event.target.closest(".f");
    if (group && group.matches(":focus-visible")) {
      const i = Number(group.dataset.frame);
      if (i !== focused) focus(i); else show(i, Math.max(PAD, left[i]), vertical(i));
    }
  });
  document.addEventListener("focusout", event => { if (tree.contains(event.target)) hide(); });
  function start() {
    past.length = 0;
    box.value = "";
    query = "";
    matching = null;
    box.removeAttribute("aria-invalid");
    go(FIRST_FRAME, false);
    fit();
  }
  function turn() {
    inverted = !inverted;
    hide();
    (inverted === data.inverted ? data.notes : data.notesTurned).forEach((text, at) => { notes[at].textContent = text; });
    draw();
    fit();
  }
  back.addEventListener("click", goBack);
  reset.addEventListener("click", start);
  flip.addEventListener("click", turn);
  box.addEventListener("input", () => search(box.value));
  addEventListener("resize", () => { hide(); layout(); });
  addEventListener("beforeprint", () => {
    hide();
    svg.setAttribute("viewBox", "0 0 " + width + " " + svg.getAttribute("height"));
    svg.removeAttribute("height");
  });
  addEventListener("afterprint", layout);

  recall();
  layout();
  if (box.value) search(box.value);
})();
