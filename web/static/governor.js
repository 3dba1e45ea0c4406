// The governor keeps the page within a budget: it measures frame rate and script time, and takes
// pixels first, then particles, from a machine that does not keep up.

const CAPS = [900, 450, 300];

export class Governor {
  constructor(width, still) {
    this.still = still; // the viewer asked for no motion
    this.level = width < 700 ? 2 : width < 1100 ? 1 : 0;
    this.dprLimit = 1.5;
    this.fps = 0;
    this.mean = 0;
    this.worst = 0;
    this.slow = 0;
    this.begin(performance.now());
  }

  begin(now) {
    this.since = now;
    this.n = 0;
    this.sum = 0;
    this.max = 0;
  }

  get cap() { return this.still ? 0 : CAPS[this.level]; }
  get dpr() { return Math.min(devicePixelRatio || 1, this.dprLimit); }

  // note takes one drawn frame's script time; true if the budget has changed.
  note(now, spent) {
    this.n++;
    this.sum += spent;
    this.max = Math.max(this.max, spent);
    if (now - this.since < 1000) return false;
    this.fps = (1000 * this.n) / (now - this.since);
    this.mean = this.sum / this.n;
    this.worst = this.max;
    this.begin(now);
    this.slow = this.fps < 28 ? this.slow + 1 : 0;
    if (this.slow < 4) return false;
    this.slow = 0;
    if (this.dprLimit > 1) {
      this.dprLimit = 1;
      return true;
    }
    if (this.level < CAPS.length - 1) {
      this.level++;
      return true;
    }
    return false;
  }
}
