// The moving things: a fixed store in columns, with a stack of free slots. When it is full a
// new particle is shed and counted; a live one is never taken.

export const KIND = { direct: 0, cold: 1, hot: 2, fallback: 3, spill: 4, panic: 5, error: 6, probe: 7 };

export class Particles {
  constructor(cap) {
    this.shed = 0;
    this.resize(cap);
  }

  // resize changes the cap; what was flying is gone.
  resize(cap) {
    this.cap = cap;
    this.kind = new Uint8Array(cap);
    this.up = new Uint8Array(cap); // 1 in the upper world
    this.client = new Uint8Array(cap);
    this.replica = new Uint16Array(cap);
    this.spread = new Float32Array(cap); // -1 to 1
    this.birth = new Float64Array(cap); // stream time, ms
    this.life = new Float32Array(cap);
    this.alive = new Uint8Array(cap);
    this.free = Array.from({ length: cap }, (_, i) => cap - 1 - i);
    this.live = 0;
  }

  add(kind, up, client, replica, birth, life, spread) {
    if (this.free.length === 0) {
      this.shed++;
      return;
    }
    const i = this.free.pop();
    this.kind[i] = kind;
    this.up[i] = up;
    this.client[i] = client;
    this.replica[i] = replica;
    this.birth[i] = birth;
    this.life[i] = life;
    this.spread[i] = spread;
    this.alive[i] = 1;
    this.live++;
  }

  // each calls f(slot, progress) for what flies at an instant, and frees what has landed.
  each(now, f) {
    for (let i = 0; i < this.cap; i++) {
      if (!this.alive[i]) continue;
      const t = (now - this.birth[i]) / this.life[i];
      if (t >= 1) {
        this.alive[i] = 0;
        this.live--;
        this.free.push(i);
      } else if (t >= 0) {
        f(i, t);
      }
    }
  }

  clear() { this.resize(this.cap); }
}
