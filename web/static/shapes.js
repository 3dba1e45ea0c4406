// Shapes carry what colour carries, for eyes and screens that do not tell colours apart.

export function circle(c, x, y, r) {
  c.moveTo(x + r, y);
  c.arc(x, y, r, 0, 2 * Math.PI);
}

export function diamond(c, x, y, r) {
  c.moveTo(x, y - r);
  c.lineTo(x + r, y);
  c.lineTo(x, y + r);
  c.lineTo(x - r, y);
  c.closePath();
}

export function triangle(c, x, y, r) {
  c.moveTo(x, y - r);
  c.lineTo(x + 0.9 * r, y + 0.7 * r);
  c.lineTo(x - 0.9 * r, y + 0.7 * r);
  c.closePath();
}

export function square(c, x, y, r) { c.rect(x - r, y - r, 2 * r, 2 * r); }

export function cross(c, x, y, r) {
  c.moveTo(x - r, y - r);
  c.lineTo(x + r, y + r);
  c.moveTo(x + r, y - r);
  c.lineTo(x - r, y + r);
}
