// Everything that can be turned: the form, the buttons, the keyboard. Without a script the form
// alone does the same by loading the page again with its query string.

const KEYS = {
  ' ': 'pause', '.': 'step', Home: 'restart', s: 'share', S: 'share', k: 'kill', K: 'kill', l: 'thirds', L: 'thirds',
  f: 'hold', F: 'hold', m: 'motion', M: 'motion', '?': 'help', '[': 'load-', ']': 'load+', '-': 'q-', '=': 'q+',
};

// twoThirdsLost tells whether the fleet is as "Lose two thirds" leaves it.
export const twoThirdsLost = (states = '') => states !== '' && [...states].every((s, i) => i % 3 === 0 || s === 'x');

export class Controls {
  // act is an object of functions: what the page does when something is turned.
  constructor(doc, act) {
    this.doc = doc;
    this.act = act;
    this.form = doc.getElementById('controls');
    this.state = null;
    this.mine = true;
    this.waiting = new Map();
    this.wireForm();
    this.wireButtons();
    this.wireKeys();
  }

  $(id) { return this.doc.getElementById(id); }
  input(name) { return this.form.elements.namedItem(name); }

  wireForm() {
    this.form.addEventListener('submit', (e) => e.preventDefault());
    for (const w of ['a', 'b']) {
      this.input(w).addEventListener('change', (e) => this.act.send('policy', { world: w, spec: e.target.value }));
    }
    // A knob that is dragged is sent at most four times a second, and its last value always.
    for (const [name, cmd] of [['load', 'load'], ['noisy', 'noisy'], ['q', 'quantile'], ['probe', 'probe']]) {
      this.input(name).addEventListener('input', (e) => {
        this.print(name, Number(e.target.value));
        this.later(cmd, Number(e.target.value));
      });
    }
    this.input('speed').addEventListener('change', (e) => this.act.send('speed', { value: Number(e.target.value) }));
    // Another scene or seed is another room.
    this.input('s').addEventListener('change', (e) => this.act.move({ s: e.target.value, load: null, noisy: null }));
    this.input('seed').addEventListener('change', (e) => {
      if (/^\d{1,20}$/.test(e.target.value)) this.act.move({ seed: e.target.value });
    });
    this.$('focus').addEventListener('change', (e) => this.act.send('focus', { value: Number(e.target.value) }));
  }

  later(cmd, value) {
    const waiting = this.waiting.get(cmd);
    this.waiting.set(cmd, { value });
    if (waiting) return;
    setTimeout(() => {
      const last = this.waiting.get(cmd);
      this.waiting.delete(cmd);
      this.act.send(cmd, { value: last.value });
    }, 250);
  }

  wireButtons() {
    for (const id of ['pause', 'step', 'restart', 'share', 'hold', 'thirds', 'kill']) {
      this.$(id).addEventListener('click', () => this.act[id]());
    }
    this.$('hold-hot').addEventListener('click', () => this.act.send('hold', { regime: 'hot' }));
    this.$('hold-fallback').addEventListener('click', () => this.act.send('hold', { regime: 'fallback' }));
    this.$('help-open').addEventListener('click', () => this.act.help());
  }

  wireKeys() {
    this.doc.addEventListener('keydown', (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || this.$('help').open) return;
      const tag = e.target.tagName;
      if (tag === 'INPUT' || tag === 'SELECT' || tag === 'TEXTAREA') return;
      if (tag === 'BUTTON' && (e.key === ' ' || e.key === 'Enter')) return; // the button's own
      if (e.target.id === 'stage' && (e.key === 'ArrowLeft' || e.key === 'ArrowRight')) {
        this.act.cursor(e.key === 'ArrowRight' ? 1 : -1);
        e.preventDefault();
        return;
      }
      const what = KEYS[e.key];
      if (!what) return;
      e.preventDefault();
      if (what === 'load-' || what === 'load+') this.nudge('load', what.endsWith('+'));
      else if (what === 'q-' || what === 'q+') this.nudge('q', what.endsWith('+'));
      else this.act[what]();
    });
  }

  nudge(name, up) {
    const input = this.input(name);
    if (input.disabled) return;
    if (up) input.stepUp(); else input.stepDown();
    input.dispatchEvent(new Event('input'));
  }

  // print shows a knob's value beside its name.
  print(name, v) {
    const text = { load: (x) => `${Math.round(100 * x)} %`, noisy: String, q: (x) => x.toFixed(2), probe: (x) => x.toFixed(2) };
    this.$(`out-${name}`).textContent = v < 0 ? '–' : text[name](v);
  }

  // apply shows what the room says its controls stand at.
  apply(s) {
    this.state = s;
    const set = (input, v) => { if (input !== this.doc.activeElement || input.type !== 'text') input.value = v; };
    for (const w of ['a', 'b']) {
      const select = this.input(w);
      if (![...select.options].some((o) => o.value === s[w])) select.add(new Option(s[w], s[w]));
      set(select, s[w]);
      select.title = w === 'a' ? s.specA : s.specB;
    }
    set(this.input('s'), s.scenario);
    set(this.input('seed'), s.seed);
    const speed = this.input('speed');
    if (![...speed.options].some((o) => Number(o.value) === s.speed)) speed.add(new Option(String(s.speed), String(s.speed)));
    set(speed, String(s.speed));
    for (const [name, cmd, v] of [['load', 'load', s.load], ['noisy', 'noisy', s.noisy], ['q', 'quantile', s.quantile], ['probe', 'probe', s.probe]]) {
      const input = this.input(name);
      input.disabled = v < 0 || !this.mine;
      if (this.waiting.has(cmd)) continue; // the hand is still on it
      input.value = v;
      this.print(name, v);
    }
    const focus = this.$('focus');
    if (focus.options.length !== s.clients) {
      focus.replaceChildren(...Array.from({ length: s.clients }, (_, i) => new Option(String(i), String(i))));
    }
    set(focus, String(s.focus));
    const pause = this.$('pause');
    pause.textContent = s.paused ? 'Go on' : 'Pause';
    pause.setAttribute('aria-pressed', String(s.paused));
    const lost = twoThirdsLost(s.states);
    this.$('thirds').setAttribute('aria-pressed', String(lost));
    this.$('thirds').textContent = lost ? 'Bring them back' : 'Lose two thirds';
  }

  // role says whether this page turns the room's controls or only watches.
  role(mine) {
    this.mine = mine;
    for (const id of ['pause', 'step', 'restart', 'hold', 'thirds', 'kill', 'hold-hot', 'hold-fallback', 'focus']) this.$(id).disabled = !mine;
    for (const name of ['a', 'b', 's', 'seed', 'speed']) this.input(name).disabled = !mine && name !== 's' && name !== 'seed';
    if (this.state) this.apply(this.state);
  }

  held(on) { this.$('hold').setAttribute('aria-pressed', String(on)); this.$('hold').textContent = on ? 'Let go' : 'Hold'; }
}
