// The socket: acknowledgements, commands, reconnection.
import { decode } from './frame.js';

const FIRST = 250;
const LAST = 8000;

// connect opens the stream of the room that query names and keeps it open. on.frame,
// on.history, on.message and on.down hear what happens.
export function connect(query, on) {
  const wire = { acked: 0, bytes: 0, frames: 0, reconnects: 0, open: false };
  let socket;
  let wait = FIRST;
  let nextID = 1;
  let ended = false;

  function dial() {
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    socket = new WebSocket(`${scheme}//${location.host}/ws?${query()}`);
    socket.binaryType = 'arraybuffer';
    let taken = 0;
    socket.onopen = () => {
      wire.open = true;
      if (document.hidden) wire.send('hidden', { on: true });
    };
    socket.onmessage = (e) => {
      if (typeof e.data === 'string') {
        const m = JSON.parse(e.data);
        if (m.type === 'hello') wait = FIRST;
        if (m.final) ended = true; // the same link would be refused again
        on.message(m);
        return;
      }
      wire.bytes = e.data.byteLength;
      wire.frames++;
      taken++;
      // A browser that cannot even send its acknowledgements gets no further frames.
      const ack = new DataView(new ArrayBuffer(4));
      ack.setUint32(0, taken, true);
      if (socket.bufferedAmount < 4096) socket.send(ack.buffer);
      wire.acked = taken;
      const f = decode(e.data);
      (f.type === 'history' ? on.history : on.frame)(f);
    };
    const mine = socket;
    socket.onclose = () => {
      if (mine !== socket) return; // there is a newer one
      wire.open = false;
      on.down();
      if (ended) return;
      wire.reconnects++;
      setTimeout(dial, wait * (0.5 + 0.5 * Math.random()));
      wait = Math.min(2 * wait, LAST);
    };
  }

  // send gives a command to the room and returns its number, 0 while there is no connection.
  wire.send = (cmd, args) => {
    if (!socket || socket.readyState !== WebSocket.OPEN) return 0;
    const id = nextID++;
    socket.send(JSON.stringify({ id, cmd, ...args }));
    return id;
  };
  // redial moves to the room that query names now.
  wire.redial = () => {
    wait = FIRST;
    if (!ended) {
      socket.close();
      return;
    }
    ended = false;
    dial();
  };

  document.addEventListener('visibilitychange', () => wire.send('hidden', { on: document.hidden }));
  dial();
  return wire;
}
