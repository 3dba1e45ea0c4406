// The stage: a butterfly skyline. One column for each replica, the first world above the
// middle line, the second below it; a bar's height is the replica's requests in flight, and the
// dashed line across both is the threshold above which a replica is hot.
import { NONE } from './frame.js';
import { beyond } from './beyond.js';
import { palette, font, whenChanged } from './palette.js';
import { Particles, KIND } from './particles.js';
import { circle, cross, diamond, square, triangle } from './shapes.js';

const TICK = 1000 / 30; // stream time of a frame, ms
const BAND = 20; // height of the machines' band
const GUTTER = 80; // left of the columns, for axis labels
const RIGHT = 12;
const CLIENTS = 24; // distance of the client row from the edge
const HEADROOM = 76; // between the clients and the tallest bar

export class Stage {
  constructor(canvas, cap) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: false });
    this.particles = new Particles(cap);
    this.frame = null;
    this.time = 0; // stream time on show
    this.target = 0; // stream time of the newest frame's end
    this.scale = 16; // RIF at full height
    this.shown = [];
    this.cursor = -1;
    this.mark = { replica: -1, world: 0, until: 0 };
    this.perDot = 0;
    this.dpr = 1;
    whenChanged(() => { this.hatch = null; this.dirty = true; });
  }

  // resize fits the canvas to its box; true if it changed.
  resize(dpr) {
    const box = this.canvas.getBoundingClientRect();
    const w = Math.round(box.width * dpr);
    const h = Math.round(box.height * dpr);
    if (w === this.canvas.width && h === this.canvas.height && dpr === this.dpr) return false;
    Object.assign(this.canvas, { width: w, height: h });
    Object.assign(this, { dpr, width: box.width, height: box.height, hatch: null, dirty: true });
    return true;
  }

  reset() {
    this.frame = null;
    this.shown = [];
    this.particles.clear();
  }

  // take shows a frame from now on; motion is false for viewers who asked for none.
  take(f, motion) {
    if (this.frame && (f.seq < this.frame.seq || f.simMs < this.frame.simMs)) this.reset(); // begun anew
    const before = this.frame;
    this.frame = f;
    this.target = (f.seq + 1) * TICK;
    if (!before || Math.abs(this.target - this.time) > 500) this.time = f.seq * TICK;
    const n = f.replicas * f.worlds.length;
    if (this.shown.length !== n) this.shown = new Float32Array(n).map((_, i) => f.worlds[Math.floor(i / f.replicas)].rif[i % f.replicas]);
    this.rescale(before ? 0.06 : 1);
    if (motion && before && f.seq !== before.seq && !f.ahead) this.launch(f);
    this.dirty = true;
  }

  // rescale follows what must fit: the threshold well inside, almost every bar whole, and no
  // tower so tall that it flattens the rest.
  rescale(share) {
    const f = this.frame;
    const all = Float64Array.from(f.worlds.flatMap((w) => Array.from(w.rif))).sort();
    const p97 = all[Math.floor(0.97 * (all.length - 1))] || 0;
    const t = f.worlds.map((w) => w.threshold).find((x) => x !== NONE) ?? 0;
    const high = t > 0 ? Math.min(1.15 * p97, 3 * t) : 1.15 * p97;
    this.scale += (Math.max(14, 1.7 * t, high) - this.scale) * share;
  }

  launch(f) {
    // Fewer slots on a small or slow screen: fewer dots, each standing for more queries.
    const share = Math.min(1, this.particles.cap / 900);
    let drawn = 0;
    let stood = 0;
    f.worlds.forEach((w, i) => {
      let kept = 0;
      w.dots.forEach((d, k) => {
        const error = d.kind === KIND.error;
        if (!error && Math.floor(k * share) === Math.floor((k + 1) * share)) return;
        const hash = (d.client * 7919 + d.replica * 104729 + f.seq * 1299709 + k * 31) >>> 0;
        const spread = (hash % 2001) / 1000 - 1;
        const life = error ? 900 : d.kind === KIND.probe ? 420 : 460 + (hash % 160);
        this.particles.add(d.kind, i === 0 ? 1 : 0, d.client, d.replica, (f.seq + d.offset / 256) * TICK, life, spread);
        if (d.kind < KIND.error) kept++;
      });
      drawn += kept;
      stood += w.queries;
    });
    if (drawn > 0) this.perDot += (stood / drawn - this.perDot) * (this.perDot ? 0.1 : 1);
  }

  // advance moves stream time on by dt milliseconds of wall time, up to the newest frame.
  advance(dt) {
    const was = this.time;
    this.time = Math.min(this.time + dt, this.target);
    if (this.time < this.target - 4 * TICK) this.time = this.target - 2 * TICK;
    return this.time !== was;
  }

  // Geometry, in CSS pixels.
  column(i) { return GUTTER + (i * (this.width - GUTTER - RIGHT)) / this.frame.replicas; }
  columnWidth() { return (this.width - GUTTER - RIGHT) / this.frame.replicas; }
  center(i) { return this.column(i) + this.columnWidth() / 2; }
  clientX(c) { return GUTTER + ((c + 0.5) * (this.width - GUTTER - RIGHT)) / this.frame.clients; }
  clientY(up) { return up ? CLIENTS : this.height - CLIENTS; }
  base(up) { return this.height / 2 + (up ? -1 : 1) * (BAND / 2); }
  full() { return this.height / 2 - BAND / 2 - CLIENTS - HEADROOM; }
  level(up, rif) { return this.base(up) - (up ? 1 : -1) * Math.min(rif / this.scale, 1.06) * this.full(); }
  tip(up, i) { return this.level(up, this.shown[(up ? 0 : this.frame.replicas) + i] || 0); }

  // replicaAt is the column under a point, or -1.
  replicaAt(x) {
    if (!this.frame || x < GUTTER || x > this.width - RIGHT) return -1;
    return Math.min(this.frame.replicas - 1, Math.floor((x - GUTTER) / this.columnWidth()));
  }

  draw(motion) {
    const c = this.context;
    c.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    c.fillStyle = palette.panel;
    c.fillRect(0, 0, this.width, this.height);
    if (!this.frame) return;
    const f = this.frame;
    for (let k = 0; k < this.shown.length; k++) {
      const rif = f.worlds[Math.floor(k / f.replicas)].rif[k % f.replicas];
      this.shown[k] += (rif - this.shown[k]) * (motion ? 0.3 : 1);
    }
    const t = f.worlds.map((w) => w.threshold).find((x) => x !== NONE) ?? NONE;
    this.axis(c, t);
    this.backdrop(c);
    f.worlds.forEach((w, i) => this.bars(c, w, i === 0, t));
    this.band(c);
    this.clients(c);
    if (t !== NONE) this.threshold(c, t);
    if (this.particles.cap > 0) this.fly(c);
    this.labels(c, t);
    this.dirty = false;
  }

  axis(c, t) {
    const step = [2, 5, 10, 20, 50, 100, 200].find((s) => this.scale / s <= 5) ?? 500;
    c.font = `12px ${font}`;
    c.textBaseline = 'middle';
    c.textAlign = 'right';
    c.fillStyle = palette.soft;
    c.strokeStyle = palette.grid;
    c.lineWidth = 1;
    c.globalAlpha = 0.55;
    c.beginPath();
    for (const up of [true, false]) {
      for (let r = step; r <= this.scale; r += step) {
        const y = Math.round(this.level(up, r)) + 0.5;
        c.moveTo(GUTTER, y);
        c.lineTo(this.width - RIGHT, y);
      }
    }
    c.stroke();
    c.globalAlpha = 1;
    for (const up of [true, false]) {
      for (let r = step; r <= this.scale; r += step) if (Math.abs(this.level(up, r) - this.level(up, t)) > 27) c.fillText(String(r), GUTTER - 8, this.level(up, r));
      c.fillText('clients', GUTTER - 8, this.clientY(up));
    }
    c.fillText('machines', GUTTER - 4, this.height / 2);
    for (const up of [true, false]) {
      const y = this.base(up) - (up ? 1 : -1) * (this.full() + 16);
      if (t === NONE || Math.abs(y - this.level(up, t)) > 27) c.fillText('in flight', GUTTER - 8, y);
    }
  }

  // backdrop shades what is dead and what is under the cursor.
  backdrop(c) {
    const f = this.frame;
    const w = this.columnWidth();
    const high = 2 * this.full() + BAND;
    c.fillStyle = palette.barGone;
    for (let i = 0; i < f.replicas; i++) {
      if (f.worlds[0].state[i] === 2) c.fillRect(this.column(i), this.base(true) - this.full(), w, high);
    }
    if (this.cursor >= 0) {
      c.fillStyle = palette.raised;
      c.fillRect(this.column(this.cursor), this.base(true) - this.full() * 1.06, w, 2 * this.full() * 1.06 + BAND);
    }
  }

  bars(c, world, up, t) {
    const gap = Math.min(4, Math.max(1, this.columnWidth() * 0.16));
    const w = Math.max(1, this.columnWidth() - gap);
    const base = this.base(up);
    const line = t === NONE ? null : this.level(up, t);
    const cold = world.pool ? palette.barCold : palette.barDirect;
    const edge = world.pool ? palette.cold : palette.direct;
    const rect = (x, from, to) => c.fillRect(x, Math.min(from, to), w, Math.abs(to - from));
    for (let i = 0; i < this.frame.replicas; i++) {
      const tip = this.tip(up, i);
      if (Math.abs(tip - base) < 0.5) continue;
      const x = this.column(i) + gap / 2;
      const over = line !== null && (up ? tip < line - 0.5 : tip > line + 0.5);
      c.globalAlpha = world.state[i] === 1 ? 0.45 : 1;
      c.fillStyle = cold;
      rect(x, base, over ? line : tip);
      if (over) {
        c.fillStyle = palette.hot;
        rect(x, line, tip);
      } else {
        c.fillStyle = edge;
        rect(x, tip, tip + (up ? 2 : -2));
      }
    }
    c.globalAlpha = 1;
  }

  band(c) {
    const f = this.frame;
    const top = this.base(true);
    const w = this.columnWidth();
    c.fillStyle = palette.raised;
    c.fillRect(GUTTER, top, this.width - GUTTER - RIGHT, BAND);
    c.strokeStyle = palette.error;
    for (let i = 0; i < f.replicas; i++) {
      const x = this.column(i);
      if (f.worlds[0].neighbour[i]) {
        c.fillStyle = this.hatching(c);
        c.fillRect(x + 0.5, top + 1, w - 1, BAND - 2);
      }
      if (f.worlds[0].old[i]) {
        c.fillStyle = palette.soft;
        c.fillRect(x + w / 2 - 3, top + BAND / 2 - 1, 6, 2);
      }
      const state = f.worlds[0].state[i];
      if (state === 2) {
        c.lineWidth = 1.8;
        c.beginPath();
        cross(c, x + w / 2, top + BAND / 2, Math.min(4.5, w / 3));
        c.stroke();
      } else if (state === 1) {
        c.strokeStyle = palette.soft;
        c.lineWidth = 1;
        c.strokeRect(x + 2, top + 3, Math.max(1, w - 4), BAND - 6);
        c.strokeStyle = palette.error;
      }
    }
  }

  hatching(c) {
    if (!this.hatch) {
      const tile = document.createElement('canvas');
      const size = 6 * Math.ceil(this.dpr);
      tile.width = tile.height = size;
      const t = tile.getContext('2d');
      t.strokeStyle = palette.text;
      t.lineWidth = size / 4;
      t.beginPath();
      for (const k of [-1, 0, 1]) {
        t.moveTo(k * size, size);
        t.lineTo((k + 1) * size, 0);
      }
      t.stroke();
      this.hatch = c.createPattern(tile, 'repeat');
      this.hatch.setTransform(new DOMMatrix().scale(1 / Math.ceil(this.dpr)));
    }
    return this.hatch;
  }

  clients(c) {
    const f = this.frame;
    for (const up of [true, false]) {
      c.fillStyle = palette.direct;
      c.beginPath();
      for (let k = 0; k < f.clients; k++) if (k !== f.decision.client) circle(c, this.clientX(k), this.clientY(up), 3);
      c.fill();
      c.fillStyle = palette.focus;
      c.beginPath();
      circle(c, this.clientX(f.decision.client), this.clientY(up), 6);
      c.fill();
    }
  }

  threshold(c, t) {
    c.strokeStyle = palette.hot;
    c.lineWidth = 1.5;
    c.setLineDash([7, 5]);
    c.beginPath();
    for (const up of [true, false]) {
      const y = Math.round(this.level(up, t)) + 0.5;
      c.moveTo(GUTTER - 4, y);
      c.lineTo(this.width - RIGHT + 4, y);
    }
    c.stroke();
    c.setLineDash([]);
  }

  fly(c) {
    const p = this.particles;
    const paths = [[square, 3, palette.direct], [circle, 2.7, palette.cold], [diamond, 4.8, palette.hot], [triangle, 5, palette.fallback],
      [square, 3, palette.direct], [square, 3, palette.direct], [cross, 4.2, palette.error], [circle, 3.2, palette.probe]]
      .map(([shape, r, color]) => ({ shape, r, color, path: new Path2D() }));
    p.each(this.time, (i, t) => {
      const up = p.up[i] === 1;
      const from = this.clientX(p.client[i]);
      const to = this.center(Math.min(p.replica[i], this.frame.replicas - 1));
      const y0 = this.clientY(up);
      const y1 = this.tip(up, p.replica[i]);
      let x;
      let y;
      if (p.kind[i] === KIND.error) {
        const ease = t * t;
        x = Math.min(Math.max(to + 26 * p.spread[i] * t, GUTTER + 5), this.width - 5); // clear of the labels
        y = y1 + (y0 - y1) * (0.15 * t + 0.85 * ease);
      } else {
        const s = p.kind[i] === KIND.probe ? 1 - Math.abs(2 * t - 1) : t;
        x = from + (to - from) * s * s * (3 - 2 * s);
        y = y0 + (y1 - y0) * s;
      }
      const k = paths[p.kind[i]];
      k.shape(k.path, x, y, k.r);
    });
    paths.forEach((k, kind) => {
      if (kind === KIND.error || kind === KIND.probe) {
        c.strokeStyle = k.color;
        c.lineWidth = kind === KIND.error ? 2.2 : 1.3;
        c.stroke(k.path);
      } else {
        c.fillStyle = k.color;
        c.fill(k.path);
      }
    });
  }

  labels(c, t) {
    c.textBaseline = 'middle';
    beyond(c, this);
    if (t !== NONE) {
      c.font = `600 12px ${font}`;
      c.textAlign = 'right';
      c.fillStyle = palette.hot;
      for (const up of [true, false]) {
        const y = this.level(up, t);
        // Its owner is named: the inspector shows the threshold of an earlier instant.
        c.fillText(`client ${this.frame.decision.client}`, GUTTER - 8, y - 14);
        c.fillText('hot above', GUTTER - 8, y);
        c.fillText(String(t), GUTTER - 8, y + 14);
      }
    }
    this.marked(c);
  }

  // marked shows where the decision in the inspector went.
  marked(c) {
    const m = this.mark;
    if (m.replica < 0 || m.replica >= this.frame.replicas) return;
    const up = m.world === 0;
    const x = this.center(m.replica);
    const y = this.tip(up, m.replica) + (up ? -8 : 8);
    c.strokeStyle = palette.focus;
    c.lineWidth = 1.2;
    c.globalAlpha = 0.65;
    c.beginPath();
    c.moveTo(this.clientX(this.frame.decision.client), this.clientY(up));
    c.lineTo(x, y);
    c.stroke();
    c.globalAlpha = 1;
    c.lineWidth = 1.6;
    const w = this.columnWidth();
    c.strokeRect(this.column(m.replica) + 0.5, Math.min(this.base(up), this.tip(up, m.replica)), w - 1, Math.abs(this.base(up) - this.tip(up, m.replica)));
    const name = `r${m.replica}`;
    c.font = `600 13px ${font}`;
    c.textAlign = 'center';
    const width = c.measureText(name).width + 10;
    c.fillStyle = palette.focus;
    c.fillRect(x - width / 2, y + (up ? -17 : 0), width, 17);
    c.fillStyle = palette.page;
    c.fillText(name, x, y + (up ? -8 : 9));
  }
}
