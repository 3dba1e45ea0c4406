// The page's entry: joins the stream, the stage, the inspector, the charts and the controls.
import { NONE } from './frame.js';
import { Charts } from './charts.js';
import { Controls, twoThirdsLost } from './controls.js';
import { Governor } from './governor.js';
import { Inspector, ms } from './inspector.js';
import { Stage } from './stage.js';
import { connect } from './wire.js';

const $ = (id) => document.getElementById(id);
const still = matchMedia('(prefers-reduced-motion: reduce)');
const count = new Intl.NumberFormat('en');

const INSPECT = 700; // ms between decisions on show, so that they can be read
const NUMBERS = 200;
const SAY = 6000;
const TABLE = 1000;

const governor = new Governor(innerWidth, still.matches);
const stage = new Stage($('stage'), governor.cap);
const inspector = new Inspector(document);
const charts = new Charts(document);

let query = location.search.slice(1);
let state = null;
let newest = null;
let lastFrameAt = 0;
let refusal = ''; // why this link has no stream
let joined = [$('log').textContent].filter(Boolean); // what one should know on coming in
let stopAt = Infinity; // freezeAt
let onScreen = true;
const shownAt = { inspector: 0, numbers: 0, say: 0, table: 0, charts: 0, step: 0 };

const act = {
  send(cmd, args) {
    if (refusal && cmd === 'policy') { // no room to ask: another link may have one
      act.move({ [args.world]: args.spec });
      return;
    }
    if (!wire.send(cmd, args)) say('No connection: nothing was changed.');
  },
  pause() { act.send('pause', { on: !state?.paused }); },
  step() { act.send('step'); },
  restart() { act.send('restart'); },
  hold() { act.send('hold', { regime: newest?.decision.held ? '' : 'now' }); },
  thirds() { act.send('thirds', { on: !twoThirdsLost(state?.states) }); },
  kill() {
    const r = stage.cursor >= 0 ? stage.cursor : 0;
    act.send(state?.states[r] === 'x' ? 'restore' : 'kill', { replica: r });
  },
  cursor(step) {
    if (!newest) return;
    stage.cursor = (stage.cursor + step + newest.replicas) % newest.replicas;
    tip();
    say($('tip').textContent.replaceAll('\n', ', '));
  },
  motion() { setStill(!governor.still); },
  help() {
    $('help').showModal();
    $('help').scrollTop = 0;
  },
  async share() {
    const link = `${location.origin}/${query ? `?${query}` : ''}`;
    try {
      await navigator.clipboard.writeText(link);
      log('', 'link copied');
    } catch {
      log('', link); // no clipboard here: show it instead
    }
  },
  // move goes to another room: null takes a key out of the link.
  move(keys) {
    const q = new URLSearchParams(query);
    for (const [k, v] of Object.entries(keys)) v === null ? q.delete(k) : q.set(k, v);
    query = q.toString();
    history.replaceState(null, '', query ? `?${query}` : location.pathname);
    wire.redial();
  },
};

const controls = new Controls(document, act);

const wire = connect(() => query, {
  frame(f) {
    lastFrameAt = performance.now();
    curtain('');
    if (f.simMs >= stopAt && newest && newest.simMs >= stopAt) return;
    newest = f;
    charts.take(f.column);
    const step = performance.now() - shownAt.step > 500;
    if (!governor.still || step || f.paused) {
      shownAt.step = performance.now();
      stage.take(f, !governor.still && onScreen);
    }
    if (f.paused || f.decision.held) show(f); // a paused or held decision is shown at once
  },
  history(f) { charts.history(f.columns); },
  message(m) {
    switch (m.type) {
      case 'hello':
        stage.reset();
        newest = null;
        refusal = '';
        apply(m.state);
        if (m.since) joined.push(`running for ${m.since.toFixed(0)} s already; Restart begins anew`);
        break;
      case 'state': apply(m); break;
      case 'role':
        controls.role(m.controls);
        if (!m.controls) joined.push('someone else turns the knobs of this room');
        if (joined.length > 0) log('', joined.join('; '));
        joined = [];
        break;
      case 'log': log(m.at, m.text); break;
      case 'applied': if (m.error) log('', m.error, true); break;
      case 'refused':
        refusal = m.final ? `This link cannot be shown. ${m.text}` : m.text;
        curtain(refusal, m.final);
        set('headline', 'No run to show.');
        break;
    }
  },
  down() { if (!refusal) curtain('Reconnecting…'); },
});

function apply(s) {
  state = s;
  query = s.query;
  history.replaceState(null, '', query ? `?${query}` : location.pathname);
  controls.apply(s);
  document.title = `Headroom: ${s.titleA} against ${s.titleB}`;
  document.querySelector('.score.a h2').textContent = s.titleA;
  document.querySelector('.score.b h2').textContent = s.titleB;
}

// curtain covers the stage with a text; with a way out, if waiting will not help.
function curtain(text, out) {
  const el = $('curtain');
  if (el.firstChild?.textContent === text) return;
  el.textContent = text;
  el.hidden = !text;
  if (!out) return;
  const a = document.createElement('a');
  a.href = '/';
  a.textContent = 'Open the usual scene';
  el.append(a);
}

function say(text) { if ($('say').textContent !== text) $('say').textContent = text; }

function log(at, text, bad) {
  $('log').textContent = at ? `${at}: ${text}` : text;
  $('log').style.color = bad ? 'var(--error)' : '';
}

function setStill(on) {
  governor.still = on;
  stage.particles.resize(governor.cap);
  log('', on ? 'motion off' : 'motion on');
  stage.dirty = true;
}
still.addEventListener('change', () => setStill(still.matches));

// show puts a frame's decision into the inspector and marks it on the stage.
function show(f) {
  shownAt.inspector = performance.now();
  controls.held(f.decision.held);
  inspector.show(f);
  stage.mark = { replica: f.decision.replica === NONE ? -1 : f.decision.replica, world: f.decision.world };
  stage.dirty = true;
}

function set(id, text) { const el = $(id); if (el.textContent !== text) el.textContent = text; }

// quantile prints a latency of the last seconds; 0 means that there was no answer.
function quantile(tenths) { return tenths === 0 ? '–' : tenths === NONE ? 'timeout' : ms(tenths); }

function numbers(f) {
  f.worlds.forEach((w, i) => {
    const k = i === 0 ? 'a' : 'b';
    const p99 = $(`p99-${k}`);
    set(p99.id, quantile(w.p99));
    set(`what-${k}`, w.p99 === NONE ? 'at least 1 % timed out' : w.p99 === 0 ? 'no answers yet' : '99 % answered within');
    p99.className = w.p99 >= 10000 ? 'bad' : '';
    set(`lost-${k}`, count.format(w.errors));
    $(`lost-${k}`).className = w.errors > 0 ? 'bad' : 'good';
    set(`p50-${k}`, quantile(w.p50));
    set(`arrivals-${k}`, count.format(w.arrivals));
    set(`rif-${k}`, count.format(w.rif.reduce((a, b) => a + b, 0)));
  });
  const w = f.worlds[f.decision.world];
  for (const name of ['cold', 'hot', 'fallback']) set(`n-${name}`, count.format(w[name]));
  const placed = Math.max(1, w.cold + w.hot + w.fallback + w.direct);
  for (const i of $('regime-bar').children) i.style.width = `${(100 * w[i.className]) / placed}%`;
  set('headline', f.verdict);
  set('n-probes', w.arrivals ? (w.probesSent / w.arrivals).toFixed(2) : '0');
  const same = f.worlds.every((x) => x.traffic === f.worlds[0].traffic);
  set('traffic', `${same ? 'same traffic' : 'TRAFFIC DIFFERS'} ${f.worlds[0].traffic.toString(16).padStart(8, '0')}`);
  const slow = f.pace < 0.9 && !f.paused ? `, ${f.pace.toFixed(2)}x (server busy)` : '';
  set('clock', `${(f.simMs / 1000).toFixed(1)} s, ${count.format(f.worlds[0].offered)} queries/s${slow}`);
  const p = stage.particles;
  set('per-dot', p.cap === 0 ? 'motion is off' : `1 dot = ${Math.max(1, Math.round(stage.perDot))} ${stage.perDot < 1.5 ? 'query' : 'queries'}`);
  set('dots', `${p.live}/${p.cap} drawn`);
}

// table keeps the fleet table that the server rendered up to date, while it can be seen.
function table(f) {
  const body = document.querySelector('#fleet tbody');
  if (!body || body.getBoundingClientRect().top > innerHeight || body.rows.length !== f.replicas) return;
  $('fleet').caption.textContent = `Every replica at ${(f.simMs / 1000).toFixed(1)} s of the live run; cores over the last quarter second`;
  for (let i = 0; i < f.replicas; i++) {
    const cells = body.rows[i].cells;
    f.worlds.forEach((w, k) => {
      cells[2 + 3 * k].textContent = w.rif[i];
      cells[2 + 3 * k].className = f.worlds[0].threshold !== NONE && w.rif[i] > f.worlds[0].threshold ? 'over' : '';
      cells[3 + 3 * k].textContent = w.latency[i] === NONE ? '–' : ms(w.latency[i]);
      cells[4 + 3 * k].textContent = ((w.use[i] * 8) / 100).toFixed(1);
    });
  }
}

const STATES = ['up', 'draining', 'dead'];

function tip() {
  const f = newest;
  const i = stage.cursor;
  $('tip').hidden = i < 0 || !f;
  if ($('tip').hidden) return;
  const of = (w, name) => `${name}  RIF ${w.rif[i]}, ${w.latency[i] === NONE ? 'latency unknown' : `about ${ms(w.latency[i])}`}`;
  const machine = [STATES[f.worlds[0].state[i]], f.worlds[0].neighbour[i] ? 'noisy neighbour' : 'quiet machine', f.worlds[0].old[i] ? 'old' : ''];
  $('tip').textContent = `r${i}  ${machine.filter(Boolean).join(', ')}\n${of(f.worlds[0], 'A')}\n${of(f.worlds[1], 'B')}`;
  const x = stage.center(i);
  $('tip').style.left = `${Math.min(Math.max(x + 14, 4), stage.width - $('tip').offsetWidth - 6)}px`;
  $('tip').style.top = `${stage.height / 2 - stage.full() * 0.5 - $('tip').offsetHeight / 2}px`;
}

$('stage').addEventListener('pointermove', (e) => { stage.cursor = stage.replicaAt(e.offsetX); stage.dirty = true; tip(); });
$('stage').addEventListener('pointerdown', (e) => { stage.cursor = stage.replicaAt(e.offsetX); stage.dirty = true; tip(); });
$('stage').addEventListener('pointerleave', () => { stage.cursor = -1; stage.dirty = true; tip(); });

new IntersectionObserver((es) => {
  onScreen = es[0].isIntersecting;
  stage.particles.clear(); // what flew while no one looked is gone
}).observe($('stage'));

let lastDraw = performance.now();
function loop(now) {
  requestAnimationFrame(loop);
  const dt = now - lastDraw;
  lastDraw = now;
  if (document.hidden) return;
  const began = performance.now();
  if (lastFrameAt && !refusal && !state?.paused && began - lastFrameAt > 1000) curtain('Reconnecting…');
  const f = newest;
  const due = (what, every) => {
    if (now - shownAt[what] < every) return false;
    shownAt[what] = now;
    return true;
  };
  if (f) {
    // The inspector before the stage, which marks its decision.
    if (!f.decision.held && !f.paused && due('inspector', INSPECT)) show(f);
    if (onScreen) {
      const moved = stage.advance(Math.min(dt, 100)) && !governor.still;
      if (stage.resize(governor.dpr) || moved || stage.dirty) stage.draw(!governor.still && !f.paused); // at rest, bars are exact
    }
    if (due('numbers', NUMBERS)) { numbers(f); if (stage.cursor >= 0) tip(); }
    if (due('charts', governor.still ? 1000 : 200)) charts.draw();
    if (due('say', SAY)) say(f.verdict);
    if (due('table', TABLE)) table(f);
  } else if (stage.resize(governor.dpr)) {
    stage.draw(false); // the empty stage, in the page's colour
  }
  if (governor.note(now, performance.now() - began)) stage.particles.resize(governor.cap);
}
requestAnimationFrame(loop);

addEventListener('resize', () => { charts.stale = true; inspector.draw(); });

// Hooks for tests and for the curious. Only freezeAt changes anything: from the first frame at
// or after that simulated instant the page stands still; no argument lets it go on.
window.__show = {
  get stats() {
    return {
      fps: governor.fps, jsMean: governor.mean, jsMax: governor.worst, drawn: stage.particles.live, shed: stage.particles.shed,
      cap: stage.particles.cap, dpr: stage.dpr, seq: newest?.seq ?? 0, simMs: newest?.simMs ?? 0,
      lagMs: newest ? Date.now() - newest.wallMs : -1, acked: wire.acked, bytes: wire.bytes, frames: wire.frames,
      reconnects: wire.reconnects, paused: !!state?.paused,
    };
  },
  get state() { return newest; },
  get controls() { return state; },
  get lastDecision() { return inspector.shown; },
  freezeAt(simMs = Infinity) { stopAt = simMs; },
  async hash() {
    const pixels = stage.context.getImageData(0, 0, stage.canvas.width, stage.canvas.height).data;
    const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', pixels));
    return Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('');
  },
};
