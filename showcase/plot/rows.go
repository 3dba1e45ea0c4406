package plot

import "math"

// rowPanels draws ranges in rows, panels side by side with the same rows, and gives where the
// next thing begins.
func (c *canvas) rowPanels(ps []Panel, y float64) float64 {
	left := 0.0
	for _, name := range ps[0].Rows {
		left = max(left, width(name, textSize))
	}
	across := min(len(ps), 3)
	w := (pageWidth - 2*margin - left - 14 - float64(across-1)*gap) / float64(across)
	for i := 0; i < len(ps); i += across {
		bottom := y
		for k, p := range ps[i:min(i+across, len(ps))] {
			x := margin + left + 14 + float64(k)*(w+gap)
			bottom = max(bottom, c.rowPanel(p, box{x, y, w, 0}, k == 0))
		}
		y = bottom + lineStep
	}
	return y
}

// laneStep is the height of one series in a row.
const laneStep = 15.0

func (c *canvas) rowPanel(p Panel, in box, named bool) float64 {
	var values []float64
	for _, s := range p.Series {
		for _, pt := range s.Points {
			values = append(values, pt.Y, pt.Published)
			if !math.IsInf(pt.High, 0) {
				values = append(values, pt.High)
			}
		}
	}
	const top = 28
	foot := 22.0
	if p.Y.Label != "" {
		foot = 40
	}
	rowStep := max(24, laneStep*float64(len(p.Series))+8)
	b := box{in.x, in.y + top, in.w, rowStep * float64(len(p.Rows))}
	s := measure(p.Y, values, b.x, b.x+b.w-6)
	c.text(in.x, in.y+14, textSize, "start", "name", p.Title)
	if s.rail {
		x := s.at(math.Inf(1))
		c.put(`<rect class="rail" x="%s" y="%s" width="20" height="%s" rx="4"/>`, px(x-10), px(b.y), px(b.h))
		c.text(min(x+14, b.x+b.w+4), b.y+b.h+18, smallSize, "end", "soft", p.Y.Beyond)
	}
	last := math.Inf(-1)
	for _, v := range s.ticks(46) {
		x := s.at(v)
		c.put(`<path class="grid" d="M%s %sv%s"/>`, px(x), px(b.y), px(b.h))
		room := s.rail && x+width(Number(v), smallSize)/2+6 > s.at(math.Inf(1))+14-width(p.Y.Beyond, smallSize)
		if half := width(Number(v), smallSize) / 2; x-half > last && !room {
			c.text(x, b.y+b.h+18, smallSize, "middle", "soft", Number(v))
			last = x + half + 4
		}
	}
	if s.zero {
		c.put(`<path class="grid" d="M%s %sv%s"/>`, px(s.at(0)), px(b.y), px(b.h))
		c.text(s.at(0), b.y+b.h+18, smallSize, "middle", "soft", "0")
	}
	c.text(b.x+b.w/2, b.y+b.h+36, smallSize, "middle", "soft", p.Y.Label)
	for i, name := range p.Rows {
		y := b.y + rowStep*float64(i)
		c.put(`<path class="grid" d="M%s %sH%s"/>`, px(b.x), px(y), px(b.x+b.w))
		if named {
			c.text(b.x-12, y+rowStep/2+5, textSize, "end", "plain", name)
		}
	}
	c.put(`<path class="base" d="M%s %sH%s"/>`, px(b.x), px(b.y+b.h), px(b.x+b.w))
	for k, series := range p.Series {
		for _, pt := range series.Points {
			lane := b.y + rowStep*pt.X + rowStep/2 + laneStep*(float64(k)-float64(len(p.Series)-1)/2)
			c.rangeOf(series, pt, s, lane)
		}
	}
	return b.y + b.h + foot
}

// rangeOf draws a measurement in its lane: a bar where the axis begins at 0, and the interval.
func (c *canvas) rangeOf(series Series, pt Point, s scale, y float64) {
	l := c.look[series.Name]
	if math.IsNaN(pt.Y) {
		return
	}
	x := s.at(pt.Y)
	low, high := x, x
	if !s.log {
		c.put(`<rect class="bar c%d" x="%s" y="%s" width="%s" height="9"/>`, l.colour(), px(s.from), px(y-4.5), px(x-s.from))
	}
	if !math.IsNaN(pt.Low) && !math.IsNaN(pt.High) && !math.IsInf(pt.Y, 0) {
		low, high = s.at(pt.Low), s.at(pt.High)
		c.put(`<path class="range c%d" stroke-width="2.4" d="M%s %sH%s"/>`, l.colour(), px(low), px(y), px(high))
	}
	paper := math.NaN()
	if !math.IsNaN(pt.Published) {
		paper = s.at(pt.Published)
		c.put(`<path class="range c%d" stroke-width="1" stroke-dasharray="2 3" d="M%s %sH%s"/>`, l.colour(), px(x), px(y), px(paper-math.Copysign(min(6, math.Abs(paper-x)), paper-x)))
		c.mark(l, paper, y, "hollow")
	}
	c.mark(l, x, y, "mark")
	if math.IsInf(pt.Y, 0) {
		return // the rail says it
	}
	c.beside(Number(pt.Y), low, high, paper, s, y)
}

// beside writes our value next to our mark, which reaches from low to high: where it does not
// cover the paper's mark, and is not taken for the paper's. Where there is no such place it is
// left out; the axis says it.
func (c *canvas) beside(text string, low, high, paper float64, s scale, y float64) {
	const size, away, near, radius = smallSize - 1, 10, 24, 7
	w := width(text, size) + away
	clear := func(from, to float64) bool { // of the paper's mark, and within the scale
		return from >= s.from && to <= s.to && !(paper+radius > from && paper-radius < to)
	}
	switch {
	case clear(high+away, high+w):
		c.text(high+away, y+4.3, size, "start", "soft halo", text)
	case s.log && clear(low-w, low-away):
		c.text(low-away, y+4.3, size, "end", "soft halo", text)
	case paper > high && paper < high+near && clear(paper+away, paper+w):
		c.text(paper+away, y+4.3, size, "start", "soft halo", text)
	case paper < low && paper > low-near && clear(paper-w, paper-away):
		c.text(paper-away, y+4.3, size, "end", "soft halo", text)
	}
}
