"use strict";

// One state (the index of the threshold, the chosen class, the order of the table); every change of
// it goes through show(), which brings plots, totals and table up to date.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const count = data.classes.names.length;
const steps = data.thresholds.length;
const PAGE_ROWS = 50;

function floats(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Row i of each holds class i's rate at every threshold.
const far = floats(data.classes.far);
const frr = floats(data.classes.frr);
const squaredC = data.c * data.c;

function utility(far, frr) {
  const specificity = 1 - far;
  const sensitivity = 1 - frr;
  const weighted = squaredC * specificity + sensitivity;
  return weighted > 0 ? ((1 + squaredC) * specificity * sensitivity) / weighted : 0;
}

const utilities = Float32Array.from(far, (rate, i) => utility(rate, frr[i]));
const state = { at: data.start, chosen: -1, key: "utility", descending: false, rows: PAGE_ROWS };

function percent(rate) {
  if (rate === 0) return "0";
  const value = rate * 100;
  return (value >= 10 ? value.toFixed(1) : value >= 0.001 ? value.toPrecision(3) : value.toExponential(1)) + " %";
}
const whole = (number) => Math.round(number).toLocaleString("en");
const metres = () => data.thresholds[state.at];

function row(i) {
  const here = i * steps + state.at;
  return {
    i, name: data.classes.names[i], images: data.classes.images[i], far: far[here], frr: frr[here],
    accepts: far[here] * data.classes.negatives[i], rejects: frr[here] * data.classes.positives[i],
    utility: utilities[here],
  };
}

// A class is off when its FAR exceeds the reference by the factor, or its FRR that of all pairs.
function offBy(entry) {
  const reference = data.targetFar ?? data.overall.far[state.at];
  const found = [];
  if (entry.far > data.factor * reference) found.push("FAR " + ratio(entry.far, reference));
  if (entry.frr > data.factor * data.overall.frr[state.at]) found.push("FRR " + ratio(entry.frr, data.overall.frr[state.at]));
  return found.join(", ");
}
const ratio = (rate, reference) => (reference > 0 ? (rate / reference).toFixed(1) + "×" : "where others have none");

const collator = new Intl.Collator("en", { numeric: true });
function sorted(rows) {
  const sign = state.descending ? -1 : 1;
  const compare = state.key === "name"
    ? (a, b) => collator.compare(a.name, b.name)
    : (a, b) => a[state.key] - b[state.key];
  return rows.sort((a, b) => sign * compare(a, b) || a.i - b.i);
}

function cell(line, text, classes = "", share = null) {
  const td = line.insertCell();
  td.textContent = text;
  td.className = classes;
  if (share !== null) td.style.setProperty("--share", Math.min(100, share * 100).toFixed(1) + "%");
  return td;
}

// Bars are relative to the worst class; the smallest number keeps 0 / 0 away.
const highest = (rows, key) => rows.reduce((most, entry) => Math.max(most, entry[key]), Number.MIN_VALUE);

function showTable() {
  const wanted = byId("search").value.trim().toLowerCase();
  const all = Array.from({ length: count }, (_, i) => row(i));
  byId("overall-off").textContent = whole(all.filter(offBy).length) + " of " + whole(count);
  const onlyOff = byId("only-off").checked;
  const rows = sorted(all.filter((entry) =>
    (!wanted || entry.name.toLowerCase().includes(wanted)) && (!onlyOff || offBy(entry))));
  const worst = { far: highest(all, "far"), frr: highest(all, "frr") };
  const body = document.createElement("tbody");
  for (const entry of rows.slice(0, state.rows)) {
    const line = body.insertRow();
    line.dataset.row = entry.i;
    line.setAttribute("aria-selected", String(entry.i === state.chosen));
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = entry.name;
    button.setAttribute("aria-pressed", String(entry.i === state.chosen));
    cell(line, "", "name").append(button);
    cell(line, whole(entry.images), "number wide");
    cell(line, percent(entry.far), "number bar-far", entry.far / worst.far);
    cell(line, percent(entry.frr), "number bar-frr", entry.frr / worst.frr);
    cell(line, whole(entry.accepts), "number wide");
    cell(line, whole(entry.rejects), "number wide");
    cell(line, entry.utility.toFixed(3), "number");
    cell(line, offBy(entry), "wide");
  }
  byId("classes").tBodies[0].replaceWith(body);
  byId("found").textContent = wanted || onlyOff ? whole(rows.length) + " found" : "";
  byId("more").hidden = rows.length <= state.rows;
  byId("more").textContent = "Show more (" + whole(rows.length - state.rows) + " left)";
}

const [calibrationLow, calibrationHigh] = data.calibration;
const utilityPlot = new Plot(
  byId("utility"),
  () => ({
    x: byId("zoom").checked && calibrationHigh > calibrationLow
      ? data.calibration : [data.thresholds[0], data.thresholds[steps - 1]],
    y: [0, 1], xLabel: "threshold (" + data.distance + " distance)", yLabel: "utility",
  }),
  ({ context, area, px, line }) => {
    context.fillStyle = colour("range");
    context.fillRect(px(calibrationLow), area.top, Math.max(2, px(calibrationHigh) - px(calibrationLow)), area.bottom - area.top);
    const thin = { stroke: colour("class-line"), alpha: Math.min(0.8, Math.max(0.05, 25 / count)) };
    for (let i = 0; i < count; i++) line(data.thresholds, utilities.subarray(i * steps, (i + 1) * steps), thin);
    const mean = colour("mean");
    for (const band of [data.utility.low, data.utility.high]) line(data.thresholds, band, { stroke: mean, width: 1.5, dash: [2, 3] });
    line(data.thresholds, data.utility.mean, { stroke: mean, width: 3 });
  },
  ({ context, area, px, line }) => {
    const { chosen } = state;
    if (chosen >= 0) {
      const curve = utilities.subarray(chosen * steps, (chosen + 1) * steps);
      line(data.thresholds, curve, { stroke: colour("chosen"), width: 3, dash: [8, 4] });
    }
    marker(context, area, px(metres()));
  },
);

const { edges, positive, negative } = data.histogram;
const tallest = Math.max(...positive, ...negative);
const smallest = Math.min(...[...positive, ...negative].filter((share) => share > 0));
const histogramPlot = new Plot(
  byId("histogram"),
  () => ({
    x: [edges[0], edges[edges.length - 1]],
    logarithmic: byId("logarithmic").checked,
    y: byId("logarithmic").checked ? [Math.max(smallest, tallest * 1e-7) / 1.5, tallest * 1.5] : [0, tallest * 1.05],
    xLabel: "cosine similarity", yLabel: "share of pairs",
  }),
  (pen) => {
    stairs(pen, negative, colour("negative"), [6, 3]);
    stairs(pen, positive, colour("positive"), []);
  },
  ({ context, area, px }) => marker(context, area, px(data.similarities[state.at])),
);

function stairs({ context, area, px, py, line }, shares, stroke, dash) {
  const xs = [], ys = [];
  shares.forEach((share, i) => {
    xs.push(edges[i], edges[i + 1]);
    ys.push(share, share);
  });
  context.globalAlpha = 0.18;
  context.fillStyle = stroke;
  context.beginPath();
  context.moveTo(px(xs[0]), area.bottom);
  xs.forEach((x, i) => context.lineTo(px(x), Math.min(py(ys[i]), area.bottom)));
  context.lineTo(px(xs[xs.length - 1]), area.bottom);
  context.fill();
  line(xs, ys, { stroke, width: 2, dash });
}

function marker(context, area, x) {
  context.strokeStyle = colour("marker");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x, area.top);
  context.lineTo(x, area.bottom);
  context.stroke();
}

function show() {
  const { at } = state;
  byId("slider").value = at;
  byId("slider").setAttribute("aria-valuetext", "distance " + metres().toPrecision(4));
  byId("distance").textContent = metres().toPrecision(4);
  byId("overall-far").textContent = percent(data.overall.far[at]);
  byId("overall-frr").textContent = percent(data.overall.frr[at]);
  byId("overall-accepts").textContent = whole(data.overall.falseAccepts[at]) + " of " + whole(data.overall.negatives);
  byId("overall-rejects").textContent = whole(data.overall.falseRejects[at]) + " of " + whole(data.overall.positives);
  showTable();
  utilityPlot.mark();
  histogramPlot.mark();
}

function moveTo(index) {
  state.at = Math.min(steps - 1, Math.max(0, index));
  // The address holds the threshold, so that a link opens the page where its sender left it.
  try { history.replaceState(null, "", "#d=" + metres().toPrecision(6)); } catch { /* not allowed here */ }
  show();
}

function nearest(distance) {
  let best = 0;
  data.thresholds.forEach((t, i) => {
    if (Math.abs(t - distance) < Math.abs(data.thresholds[best] - distance)) best = i;
  });
  return best;
}

function followAddress() {
  const asked = /^#d=([0-9.eE+-]+)$/.exec(location.hash);
  if (asked && Number.isFinite(Number(asked[1]))) state.at = nearest(Number(asked[1]));
  show();
}

function choose(i) {
  state.chosen = state.chosen === i ? -1 : i;
  show();
  byId("classes").querySelector(`tr[data-row="${i}"] button`)?.focus();
}

function start() {
  byId("interactive").hidden = false;
  byId("slider").max = steps - 1;
  byId("off-hint").textContent = "FAR or FRR more than " + data.factor + "× " + (data.targetFar === null ? "overall" : "target FAR or overall FRR");
  for (const { label, at } of data.jumps) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => moveTo(at));
    byId("jumps").append(button);
  }
  byId("slider").addEventListener("input", (event) => moveTo(Number(event.target.value)));
  byId("search").addEventListener("input", () => { state.rows = PAGE_ROWS; showTable(); });
  byId("only-off").addEventListener("change", () => { state.rows = PAGE_ROWS; showTable(); });
  byId("more").addEventListener("click", () => { state.rows += 200; showTable(); });
  byId("zoom").addEventListener("change", () => utilityPlot.redraw());
  byId("logarithmic").addEventListener("change", () => histogramPlot.redraw());
  byId("classes").tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th[data-key]");
    if (!head) return;
    const { key } = head.dataset;
    state.descending = state.key === key ? !state.descending : !["name", "utility"].includes(key);
    state.key = key;
    for (const other of byId("classes").tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
    showTable();
  });
  byId("classes").addEventListener("click", (event) => {
    const line = event.target.closest("tbody tr");
    if (line) choose(Number(line.dataset.row));
  });
  addEventListener("hashchange", followAddress);
  utilityPlot.redraw();
  histogramPlot.redraw();
  followAddress();
}

start();
