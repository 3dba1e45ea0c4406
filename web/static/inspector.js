// Why this replica: the sentence that the server made from the decision, the client's pool as
// a picture and as a table.
import { NONE } from './frame.js';
import { palette, font } from './palette.js';
import { circle, diamond } from './shapes.js';

const REGIMES = ['direct', 'cold', 'hot', 'fallback', 'spill', 'panic'];
const CHOSEN = 0;
const HOT = 2;
const GONE = 3; // verdicts from here on informed nothing
const ROWS = 16;

// ms prints a latency as the server does in its sentences: cut, never rounded.
export const ms = (tenths) => {
  if (tenths === NONE) return 'unknown';
  if (tenths >= 10000) return `${(Math.floor(tenths / 100) / 100).toFixed(2)} s`;
  if (tenths === 0) return '<0.1 ms';
  return tenths < 100 ? `${(tenths / 10).toFixed(1)} ms` : `${Math.floor(tenths / 10)} ms`;
};

// verdict puts a row's fate into words.
function verdict(row, d, chosen) {
  switch (row.verdict) {
    case CHOSEN: return 'chosen';
    case 1: {
      if (!chosen || row.latency === NONE || chosen.latency === NONE) return 'cold';
      const slower = row.latency - chosen.latency;
      return slower === 0 ? 'cold, as fast' : `cold, +${ms(slower)}`;
    }
    case HOT: return `hot, ${row.rif - d.threshold} over`;
    case 3: return 'removed: worst';
    case 4: return 'removed: oldest';
    default: return 'not eligible';
  }
}

export class Inspector {
  constructor(doc) {
    const $ = (id) => doc.getElementById(id);
    this.why = $('why');
    this.body = $('pool');
    this.plane = $('plane');
    this.context = this.plane.getContext('2d');
    this.shown = null; // the decision on show
    this.rows = Array.from({ length: ROWS }, () => {
      const tr = this.body.insertRow();
      tr.className = 'empty';
      for (let i = 0; i < 6; i++) tr.insertCell();
      return tr;
    });
  }

  // show puts a frame's decision on show.
  show(f) {
    const d = f.decision;
    this.shown = d;
    this.why.textContent = f.why;
    const regime = REGIMES[d.regime];
    this.why.className = `sentence ${regime}`;
    const chosen = d.rows.find((r) => r.verdict === CHOSEN);
    this.body.className = regime;
    this.rows.forEach((tr, i) => {
      const row = d.rows[i];
      const cells = tr.cells;
      if (!row) {
        tr.className = 'empty';
        for (const td of cells) td.textContent = '';
        return;
      }
      const hot = d.threshold !== NONE && row.rif > d.threshold;
      tr.className = (row.verdict === CHOSEN ? 'chosen ' : '') + (row.verdict >= GONE ? 'gone ' : '') + (hot ? 'is-hot' : '');
      const text = [`r${row.replica}`, row.rif > row.raw && row.rif - row.raw < 100 ? `${row.raw}+${row.rif - row.raw}` : String(row.rif),
        ms(row.latency), `${row.age} ms`, String(row.uses), verdict(row, d, chosen)];
      text.forEach((s, k) => { cells[k].textContent = s; });
    });
    this.draw();
  }

  // draw is the plane: RIF to the right, latency upwards on a log scale.
  draw() {
    const d = this.shown;
    const box = this.plane.getBoundingClientRect();
    if (!d || box.width === 0) return;
    const dpr = Math.min(devicePixelRatio, 1.5);
    this.plane.width = Math.round(box.width * dpr);
    this.plane.height = Math.round(box.height * dpr);
    const c = this.context;
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    const left = 54;
    const right = box.width - 6;
    const top = 8;
    const bottom = box.height - 19;
    const rows = d.rows.filter((r) => r.latency !== NONE);
    const limit = d.threshold === NONE ? 0 : d.threshold;
    const maxX = Math.max(8, 1.35 * limit, ...rows.map((r) => Math.min(r.rif, 3 * limit || r.rif))) + 1;
    const lats = rows.map((r) => Math.max(r.latency, 10));
    const lo = Math.log(Math.min(300, ...lats) / 1.3);
    const hi = Math.log(Math.max(1500, ...lats) * 1.3);
    const X = (rif) => left + ((right - left) * Math.min(rif, maxX)) / maxX;
    const Y = (lat) => bottom - ((bottom - top) * (Math.log(Math.max(lat, 10)) - lo)) / (hi - lo);
    const cut = d.threshold === NONE ? right : X(d.threshold + 0.5);

    c.clearRect(0, 0, box.width, box.height);
    if (d.serial === 0) {
      c.font = `14px ${font}`;
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillStyle = palette.soft;
      c.fillText('waiting for the first decision', box.width / 2, box.height / 2);
      return;
    }
    c.globalAlpha = 0.1;
    c.fillStyle = palette.cold;
    c.fillRect(left, top, cut - left, bottom - top);
    c.fillStyle = palette.hot;
    c.fillRect(cut, top, right - cut, bottom - top);
    c.globalAlpha = 1;
    c.font = `12px ${font}`;
    c.textBaseline = 'middle';
    c.strokeStyle = palette.grid;
    c.lineWidth = 1;
    c.textAlign = 'right';
    for (const lat of [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000]) {
      const y = Y(lat);
      if (y < top + 6 || y > bottom - 6) continue;
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(right, y);
      c.stroke();
      c.fillStyle = palette.soft;
      c.fillText(lat >= 10000 ? `${lat / 10000} s` : `${lat / 10} ms`, left - 5, y);
    }
    c.textAlign = 'left';
    c.fillText('RIF 0', left, bottom + 11);
    c.textAlign = 'right';
    c.fillText(String(Math.floor(maxX)), right, bottom + 11);
    if (d.threshold !== NONE) {
      c.strokeStyle = palette.hot;
      c.setLineDash([5, 4]);
      c.beginPath();
      c.moveTo(cut, top);
      c.lineTo(cut, bottom);
      c.stroke();
      c.setLineDash([]);
      c.textAlign = 'center';
      c.fillStyle = palette.hot;
      const text = `hot above ${d.threshold} at this decision`;
      const half = c.measureText(text).width / 2;
      const last = right - c.measureText(String(Math.floor(maxX))).width; // between the ends of the axis
      c.fillText(text, Math.min(Math.max(cut, left + 46 + half), last - 8 - half), bottom + 11);
    }
    for (const r of d.rows) {
      if (r.latency === NONE) continue;
      const hot = d.threshold !== NONE && r.rif > d.threshold;
      const x = X(r.rif);
      const y = Y(r.latency);
      // The older an entry, the paler; what informed nothing is only an outline.
      c.globalAlpha = r.verdict >= GONE ? 0.6 : Math.max(0.4, 1 - r.age / 1000);
      c.fillStyle = c.strokeStyle = hot ? palette.hot : palette.cold;
      c.beginPath();
      (hot ? diamond : circle)(c, x, y, hot ? 5.5 : 4.2);
      if (r.verdict >= GONE) c.stroke(); else c.fill();
      c.globalAlpha = 1;
      if (r.verdict === CHOSEN) {
        c.strokeStyle = palette.text;
        c.lineWidth = 1.8;
        c.beginPath();
        circle(c, x, y, 8.5);
        c.stroke();
        c.lineWidth = 1;
        c.fillStyle = palette.text;
        c.font = `600 12.5px ${font}`;
        c.textAlign = x > right - 50 ? 'right' : 'left';
        c.fillText(`r${r.replica}`, x + (x > right - 50 ? -13 : 13), Math.min(Math.max(y, top + 8), bottom - 8));
        c.font = `12px ${font}`;
      }
    }
  }
}
