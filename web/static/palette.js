// Colours for the canvases, read from the style sheet's tokens so that there is one palette.

const NAMES = ['page', 'panel', 'raised', 'grid', 'text', 'soft', 'cold', 'hot', 'fallback', 'error', 'direct', 'probe',
  'focus', 'bar-cold', 'bar-direct', 'bar-gone', 'heat-low', 'heat-mid', 'heat-hot', 'heat-top', 'on-hot'];

export const palette = {};

// font is the page's own; canvases set their size in front of it.
export let font = 'sans-serif';

const heard = [];

// whenChanged runs f now and whenever the colours have changed.
export function whenChanged(f) {
  heard.push(f);
  f();
}

function read() {
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) palette[name.replace(/-(.)/g, (_, c) => c.toUpperCase())] = style.getPropertyValue(`--${name}`).trim();
  font = style.getPropertyValue('--font').trim();
  for (const f of heard) f();
}

for (const query of ['(prefers-color-scheme: light)', '(prefers-contrast: more)']) {
  matchMedia(query).addEventListener('change', read);
}
read();

// mix is the colour a share t of the way from a to b, both #rrggbb.
export function mix(a, b, t) {
  const at = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
  return [0, 1, 2].map((i) => Math.round(at(a, i) + (at(b, i) - at(a, i)) * t));
}
