// Four charts of the last minute, a column for each quarter second of simulated time.
import { NONE } from './frame.js';
import { palette, font, mix, whenChanged } from './palette.js';

const KEPT = 240;

export class Charts {
  constructor(doc) {
    this.canvases = ['latency', 'a', 'b', 'lost'].map((id) => doc.getElementById(`chart-${id}`));
    this.columns = [];
    this.stale = true;
    whenChanged(() => {
      // 0 to the threshold stays in a narrow range of blue; above it the colour jumps.
      const ramp = (from, to, n) => Array.from({ length: n }, (_, i) => mix(from, to, i / (n - 1)));
      this.cold = ramp(palette.heatLow, palette.heatMid, 64);
      this.hot = ramp(palette.heatHot, palette.heatTop, 64);
      this.stale = true;
    });
  }

  history(columns) {
    this.columns = columns.slice(-KEPT);
    this.stale = true;
  }

  // take adds a frame's column unless it is there already. A run that starts again starts anew.
  take(column) {
    const last = this.columns.at(-1);
    if (last && column.index === last.index) return;
    if (last && column.index < last.index) this.columns = [];
    this.columns.push(column);
    if (this.columns.length > KEPT) this.columns.shift();
    this.stale = true;
  }

  draw() {
    if (!this.stale || this.columns.length === 0) return;
    this.stale = false;
    const [latency, a, b, lost] = this.canvases.map((cv) => {
      const box = cv.getBoundingClientRect();
      const dpr = Math.min(devicePixelRatio, 1.5);
      const w = Math.round(box.width * dpr);
      const h = Math.round(box.height * dpr);
      if (cv.width !== w || cv.height !== h) Object.assign(cv, { width: w, height: h });
      const c = cv.getContext('2d');
      c.setTransform(dpr, 0, 0, dpr, 0, 0);
      c.clearRect(0, 0, box.width, box.height);
      c.font = `12px ${font}`;
      c.textBaseline = 'middle';
      return { c, w: box.width, h: box.height };
    });
    if (latency.w === 0) return;
    this.latency(latency);
    this.heat(a, 0);
    this.heat(b, 1);
    this.lost(lost);
  }

  x(box, left, i) { return left + ((box.w - left - 2) * (i + KEPT - this.columns.length)) / (KEPT - 1); }

  // latency draws percentiles on a log scale; a timeout runs along a rail of its own.
  latency(box) {
    const { c, w, h } = box;
    const left = 56;
    const rail = 9;
    const lo = Math.log(300); // 30 ms, in tenths
    const hi = Math.log(50000); // the deadline
    const y = (v) => (v === NONE ? rail : Math.max(rail + 7, h - 6 - ((h - 22) * (Math.log(Math.max(v, 300)) - lo)) / (hi - lo)));
    c.strokeStyle = palette.grid;
    c.fillStyle = palette.soft;
    c.textAlign = 'right';
    c.lineWidth = 1;
    for (const [v, text] of [[500, '50 ms'], [2000, '200 ms'], [10000, '1 s']]) {
      c.fillText(text, left - 6, y(v));
      c.beginPath();
      c.moveTo(left, y(v));
      c.lineTo(w, y(v));
      c.stroke();
    }
    c.fillStyle = palette.error;
    c.fillText('timeout', left - 6, rail);
    c.strokeStyle = palette.error;
    c.globalAlpha = 0.35;
    c.beginPath();
    c.moveTo(left, rail);
    c.lineTo(w, rail);
    c.stroke();
    c.globalAlpha = 1;
    const line = (k, name, color, width, dash) => {
      c.strokeStyle = color;
      c.lineWidth = width;
      c.setLineDash(dash);
      c.lineJoin = 'round';
      c.beginPath();
      this.columns.forEach((col, i) => {
        const v = col.worlds[k]?.[name];
        if (v) c.lineTo(this.x(box, left, i), y(v));
      });
      c.stroke();
      c.setLineDash([]);
    };
    line(1, 'p50', palette.direct, 1, [4, 3]);
    line(0, 'p50', palette.focus, 1, []);
    line(1, 'p99', palette.error, 2.2, [6, 3]);
    line(0, 'p99', palette.focus, 2.4, []);
  }

  heat(box, k) {
    const { c, w, h } = box;
    const n = this.columns.at(-1).worlds[k]?.rif.length ?? 0;
    if (n === 0) return;
    const image = new ImageData(KEPT, n);
    this.columns.forEach((col, i) => {
      const world = col.worlds[k];
      const t = col.worlds.map((x) => x.threshold).find((x) => x !== NONE) ?? 20;
      const x = i + KEPT - this.columns.length;
      for (let r = 0; r < n; r++) {
        const v = world.rif[r];
        const rgb = v <= t ? this.cold[Math.round((63 * v) / Math.max(t, 1))] : this.hot[Math.min(63, Math.round((63 * (v - t)) / (4 * Math.max(t, 1))))];
        image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * (r * KEPT + x));
      }
    });
    this.tile ??= document.createElement('canvas');
    Object.assign(this.tile, { width: KEPT, height: n });
    this.tile.getContext('2d').putImageData(image, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(this.tile, 0, 3, w, h - 4);
  }

  lost(box) {
    const { c, w, h } = box;
    const left = 36;
    const most = Math.max(10, ...this.columns.flatMap((col) => col.worlds.map((x) => x.errors)));
    const bottom = h - 4;
    const y = (v) => bottom - ((h - 16) * v) / most;
    c.strokeStyle = palette.grid;
    c.lineWidth = 1;
    c.fillStyle = palette.soft;
    c.textAlign = 'right';
    for (const v of [0, most]) {
      c.fillText(String(v), left - 6, Math.min(y(v), bottom - 4));
      c.beginPath();
      c.moveTo(left, y(v));
      c.lineTo(w, y(v));
      c.stroke();
    }
    const step = (w - left - 2) / (KEPT - 1);
    for (const [k, color] of [[1, palette.error], [0, palette.focus]]) {
      c.fillStyle = color;
      this.columns.forEach((col, i) => {
        const v = col.worlds[k]?.errors ?? 0;
        if (v > 0) c.fillRect(this.x(box, left, i) - step / 2, y(v), Math.max(1, step * 0.8), bottom - y(v));
      });
    }
  }
}
