"use strict";

// A canvas with axes. Curves go to a cached layer, so that moving the marker redraws one line.

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
    found.push([i * step, (i * step).toFixed(digits)]);
  }
  return found;
}

function decadeTicks(low, high) {
  const found = [];
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first) / 6));
  for (let e = last; e >= first; e -= every) found.push([10 ** e, e < 0 ? "1e" + e : "1"]);
  return found;
}

class Plot {
  // view() gives {x: [low, high], y: [low, high], logarithmic, xLabel, yLabel}.
  // curves(pen) draws what does not change with the threshold, marks(pen) what does.
  constructor(canvas, view, curves, marks) {
    Object.assign(this, { canvas, view, curves, marks, layer: document.createElement("canvas") });
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  redraw() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1;
    for (const target of [this.canvas, this.layer]) {
      target.width = Math.round(box.width * ratio);
      target.height = Math.round(box.height * ratio);
    }
    this.size = { width: box.width, height: box.height, ratio };
    this.pen = this.makePen(this.layer);
    this.axes();
    this.clipped(this.pen, this.curves);
    this.mark();
  }

  mark() {
    if (!this.size) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.layer, 0, 0);
    const pen = this.makePen(this.canvas);
    this.clipped(pen, this.marks);
  }

  makePen(target) {
    const { width, height, ratio } = this.size;
    const view = this.view();
    const area = { left: 58, right: width - 12, top: 10, bottom: height - 44 };
    const scale = view.logarithmic ? Math.log10 : (v) => v;
    const [yLow, yHigh] = view.y.map(scale);
    const context = target.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const px = (x) => area.left + ((x - view.x[0]) / (view.x[1] - view.x[0])) * (area.right - area.left);
    const py = (y) => {
      const height = Math.max(scale(Math.max(y, view.logarithmic ? 1e-300 : y)), yLow - 1);
      return area.bottom - ((height - yLow) / (yHigh - yLow)) * (area.bottom - area.top);
    };
    return { context, area, px, py, view, line: (xs, ys, style) => strokeLine(context, px, py, xs, ys, style) };
  }

  axes() {
    const { context, area, px, py, view } = this.pen;
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 1;
    const xTicks = ticks(view.x[0], view.x[1], (area.right - area.left) / 70);
    const yTicks = view.logarithmic ? decadeTicks(...view.y) : ticks(view.y[0], view.y[1], 5);
    context.strokeStyle = colour("line");
    context.fillStyle = colour("soft");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [value, text] of yTicks) {
      context.beginPath();
      context.moveTo(area.left, py(value));
      context.lineTo(area.right, py(value));
      context.stroke();
      context.fillText(text, area.left - 7, py(value));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const [value, text] of xTicks) {
      context.beginPath();
      context.moveTo(px(value), area.bottom);
      context.lineTo(px(value), area.bottom + 5);
      context.stroke();
      context.fillText(text, px(value), area.bottom + 8);
    }
    context.fillText(view.xLabel, (area.left + area.right) / 2, area.bottom + 26);
    context.save();
    context.translate(13, (area.top + area.bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(view.yLabel, 0, 0);
    context.restore();
  }

  clipped(pen, draw) {
    const { context, area } = pen;
    context.save();
    context.beginPath();
    context.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    context.clip();
    draw(pen);
    context.restore();
  }
}

function strokeLine(context, px, py, xs, ys, { stroke, width = 1, dash = [], alpha = 1 }) {
  context.strokeStyle = stroke;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.globalAlpha = alpha;
  context.lineJoin = "round";
  context.beginPath();
  for (let i = 0; i < xs.length; i++) context.lineTo(px(xs[i]), py(ys[i]));
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}
