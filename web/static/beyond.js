// Bars that go on beyond the scale: a wide one says how far, a narrow one that it does.
import { palette, font } from './palette.js';

const NUMBER = 12; // the width of a bar that holds a number, px

// beyond marks the tips of a stage's bars that do not fit.
export function beyond(c, stage) {
  c.font = `600 12px ${font}`;
  const f = stage.frame;
  const mark = stage.columnWidth() >= NUMBER ? number : arrow;
  f.worlds.forEach((world, k) => {
    for (let i = 0; i < f.replicas; i++) {
      if (stage.shown[k * f.replicas + i] > 1.06 * stage.scale) mark(c, stage, i, k === 0, world.rif[i]);
    }
  });
}

function number(c, stage, i, up, rif) {
  c.save();
  c.translate(stage.center(i), stage.tip(up, i) + (up ? 6 : -6));
  c.rotate(-Math.PI / 2);
  c.fillStyle = palette.onHot;
  c.strokeStyle = palette.hot; // the hot part may be shorter than the number
  c.lineWidth = 4;
  c.textAlign = up ? 'right' : 'left';
  c.strokeText(String(rif), 0, 0.5);
  c.fillText(String(rif), 0, 0.5);
  c.restore();
}

// arrow is a cut through the bar and a tip that points on.
function arrow(c, stage, i, up) {
  const x = stage.center(i);
  const y = stage.tip(up, i);
  const half = Math.max(2.5, stage.columnWidth() / 2 - 0.5);
  const out = up ? -1 : 1;
  c.fillStyle = palette.panel;
  c.fillRect(x - half, y - out * 8 - 1, 2 * half, 2);
  c.fillStyle = palette.hot;
  c.beginPath();
  c.moveTo(x - half, y + out * 2);
  c.lineTo(x + half, y + out * 2);
  c.lineTo(x, y + out * 8);
  c.fill();
}
