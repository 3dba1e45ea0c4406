// Decodes the stream's binary messages. The layout is written down in showcase/frame.go; the
// golden bytes in showcase/testdata hold the two together.

export const NONE = 0xffff;
const VERSION = 1;
const WORLD = 64;
const REPLICA = 8;
const DOT = 6;
const ROW = 12;

const text = new TextDecoder();

// decode returns {type: 'frame', ...} or {type: 'history', ...}, and throws on anything else.
export function decode(buffer) {
  const view = new DataView(buffer);
  if (view.byteLength < 32 || view.getUint8(0) !== 0x50 || view.getUint8(1) !== 0x51) throw new Error('not a frame');
  if (view.getUint8(2) !== VERSION) throw new Error(`frame version ${view.getUint8(2)}, this page knows ${VERSION}`);
  const flags = view.getUint8(19);
  const head = {
    seq: view.getUint32(4, true),
    simMs: Number(view.getBigUint64(8, true)) / 1000,
    replicas: view.getUint16(16, true),
    worlds: view.getUint8(18),
    paused: (flags & 1) !== 0,
    ahead: (flags & 2) !== 0,
    wallMs: Number(view.getBigUint64(20, true)) / 1000,
    pace: view.getUint16(28, true) / 1000,
    clients: view.getUint16(30, true),
  };
  return view.getUint8(3) === 2 ? history(view, head) : frame(view, head);
}

function frame(view, f) {
  f.type = 'frame';
  let at = 32;
  const worlds = [];
  for (let w = 0; w < f.worlds; w++) {
    const [world, end] = readWorld(view, at, f.replicas);
    worlds.push(world);
    at = end;
  }
  f.worlds = worlds;
  [f.decision, at] = readDecision(view, at);
  [f.column, at] = readColumn(view, at, worlds.length, f.replicas);
  [f.why, at] = readText(view, at);
  [f.verdict, at] = readText(view, at);
  if (at !== view.byteLength) throw new Error(`${view.byteLength - at} bytes left over`);
  return f;
}

const TOTALS = ['arrivals', 'direct', 'cold', 'hot', 'fallback', 'errors', 'completed', 'probesSent', 'probesLost', 'inFlight'];

function readWorld(view, at, n) {
  const w = {};
  TOTALS.forEach((name, i) => { w[name] = view.getUint32(at + 4 * i, true); });
  ['p50', 'p90', 'p99', 'p999'].forEach((name, i) => { w[name] = view.getUint16(at + 40 + 2 * i, true); });
  w.threshold = view.getUint16(at + 48, true);
  w.pool = (view.getUint16(at + 50, true) & 1) !== 0;
  w.offered = view.getUint32(at + 52, true);
  w.served = view.getUint32(at + 56, true);
  w.traffic = view.getUint32(at + 60, true);
  at += WORLD;
  w.rif = new Uint16Array(n);
  w.latency = new Uint16Array(n);
  w.neighbour = new Uint8Array(n);
  w.state = new Uint8Array(n);
  w.use = new Uint8Array(n);
  w.old = new Uint8Array(n);
  for (let i = 0; i < n; i++, at += REPLICA) {
    w.rif[i] = view.getUint16(at, true);
    w.latency[i] = view.getUint16(at + 2, true);
    w.neighbour[i] = view.getUint8(at + 4);
    w.state[i] = view.getUint8(at + 5);
    w.use[i] = view.getUint8(at + 6);
    w.old[i] = view.getUint8(at + 7);
  }
  w.queries = view.getUint32(at, true);
  const dots = view.getUint16(at + 4, true);
  w.failures = view.getUint16(at + 6, true);
  at += 8;
  w.dots = [];
  for (let i = 0; i < dots; i++, at += DOT) {
    w.dots.push({
      client: view.getUint8(at), kind: view.getUint8(at + 1), replica: view.getUint16(at + 2, true),
      offset: view.getUint8(at + 4), work: view.getUint8(at + 5),
    });
  }
  return [w, at];
}

function readDecision(view, at) {
  const d = {
    serial: view.getUint32(at, true),
    atMs: Number(view.getBigUint64(at + 4, true)) / 1000,
    client: view.getUint16(at + 12, true),
    replica: view.getUint16(at + 14, true),
    threshold: view.getUint16(at + 16, true),
    rif: view.getUint16(at + 18, true),
    latency: view.getUint16(at + 20, true),
    age: view.getUint16(at + 22, true),
    regime: view.getUint8(at + 24),
    cause: view.getUint8(at + 25),
    world: view.getUint8(at + 26),
    held: view.getUint8(at + 27) === 1,
    offered: view.getUint8(at + 28),
    cold: view.getUint8(at + 29),
    hot: view.getUint8(at + 30),
    rows: [],
  };
  const n = view.getUint8(at + 31);
  at += 32;
  for (let i = 0; i < n; i++, at += ROW) {
    d.rows.push({
      replica: view.getUint16(at, true), rif: view.getUint16(at + 2, true), raw: view.getUint16(at + 4, true),
      latency: view.getUint16(at + 6, true), age: view.getUint16(at + 8, true),
      uses: view.getUint8(at + 10), verdict: view.getUint8(at + 11),
    });
  }
  return [d, at];
}

function readColumn(view, at, worlds, n) {
  const c = { index: view.getUint32(at, true), worlds: [] };
  at += 4;
  for (let w = 0; w < worlds; w++) {
    c.worlds.push({
      p50: view.getUint16(at, true), p99: view.getUint16(at + 2, true),
      errors: view.getUint16(at + 4, true), threshold: view.getUint16(at + 6, true),
      rif: new Uint8Array(view.buffer.slice(at + 8, at + 8 + n)),
    });
    at += 8 + n;
  }
  return [c, at];
}

function readText(view, at) {
  const n = view.getUint16(at, true);
  return [text.decode(new Uint8Array(view.buffer, at + 2, n)), at + 2 + n];
}

function history(view, f) {
  f.type = 'history';
  const n = view.getUint16(32, true);
  f.columns = [];
  let at = 36;
  for (let i = 0; i < n; i++) {
    let c;
    [c, at] = readColumn(view, at, f.worlds, f.replicas);
    f.columns.push(c);
  }
  return f;
}
