package plot

import (
	"math"
	"slices"
	"strings"
)

// box is a rectangle.
type box struct{ x, y, w, h float64 }

// linePanels draws line charts one or two to a row, and gives where the next thing begins.
func (c *canvas) linePanels(ps []Panel, y float64, direct bool) float64 {
	w, h, across := float64(pageWidth-2*margin), 380.0, 1
	if len(ps) > 1 {
		w, h, across = (w-gap)/2, 310, 2
	}
	for i, p := range ps {
		c.linePanel(p, box{margin + float64(i%across)*(w+gap), y + float64(i/across)*(h+gap), w, h}, direct)
	}
	rows := (len(ps) + across - 1) / across
	return y + float64(rows)*(h+gap) - gap + lineStep
}

// inner is where the lines of a panel go: beside it are names and ticks.
func (p Panel) inner(in box, direct bool) box {
	right := 14.0
	if direct {
		for _, s := range p.Series {
			right = max(right, 26+width(s.Name, textSize))
		}
	}
	const left, top, bottom = 60, 30, 44
	return box{in.x + left, in.y + top, in.w - left - right, in.h - top - bottom}
}

func (c *canvas) linePanel(p Panel, in box, direct bool) {
	b := p.inner(in, direct)
	var xs, ys []float64
	for _, s := range p.Series {
		for _, pt := range s.Points {
			xs = append(xs, pt.X)
			ys = append(ys, pt.Y, pt.Published)
			if !math.IsInf(pt.High, 0) {
				ys = append(ys, pt.High)
			}
		}
	}
	sy := measure(p.Y, ys, b.y+b.h, b.y)
	sx := along(p.X, xs, b.x+10, b.x+b.w-10)
	c.text(in.x, in.y+14, textSize, "start", "name", p.Title)
	c.valueAxis(p.Y, sy, b)
	c.alongAxis(p.X, sx, xs, b)
	// What leads is drawn last, over the others.
	order := slices.Clone(p.Series)
	slices.SortStableFunc(order, func(a, b Series) int { return btoi(a.Lead) - btoi(b.Lead) })
	for _, s := range order {
		c.band(s, sx, sy)
	}
	for _, s := range order {
		c.series(s, sx, sy)
	}
	if direct {
		c.names(p.Series, sx, sy, b)
	}
}

// along is a scale that the given values just fit in.
func along(a Axis, xs []float64, from, to float64) scale {
	s := scale{log: a.Log, low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, x := range xs {
		if a.Log && x < tiny {
			s.zero = true
			continue
		}
		s.low, s.high = min(s.low, x), max(s.high, x)
	}
	if s.zero {
		s.from += 2 * zeroRoom
	}
	if s.low >= s.high {
		s.low, s.high = s.low-1, s.low+1
		if a.Log {
			s.low = s.high / 10
		}
	}
	return s
}

// valueAxis draws the ticks and the grid of an upright axis, with its rail.
func (c *canvas) valueAxis(a Axis, s scale, b box) {
	if s.rail {
		y := s.at(math.Inf(1))
		c.put(`<rect class="rail" x="%s" y="%s" width="%s" height="20" rx="4"/>`, px(b.x), px(y-10), px(b.w))
		c.text(b.x-8, y+4.5, smallSize, "end", "soft", a.Beyond)
	}
	for _, v := range s.ticks(34) {
		y := s.at(v)
		c.put(`<path class="grid" d="M%s %sH%s"/>`, px(b.x), px(y), px(b.x+b.w))
		c.text(b.x-8, y+4.5, smallSize, "end", "soft", Number(v))
	}
	if s.zero {
		c.text(b.x-8, s.at(0)+4.5, smallSize, "end", "soft", "0")
	}
}

// alongAxis draws the ticks of the axis below: the points' own values, as many as have room.
func (c *canvas) alongAxis(a Axis, s scale, xs []float64, b box) {
	floor := b.y + b.h
	c.put(`<path class="base" d="M%s %sH%s"/>`, px(b.x), px(floor), px(b.x+b.w))
	xs = slices.Compact(slices.Sorted(slices.Values(xs)))
	end := math.Inf(-1)
	for i, x := range xs {
		at, half := s.at(x), width(Number(x), smallSize)/2
		last := len(xs) - 1
		clear := at-half > end && (i == last || at+half+8 < s.at(xs[last])-width(Number(xs[last]), smallSize)/2)
		c.put(`<path class="base" d="M%s %sv%s"/>`, px(at), px(floor), px(4+2*float64(btoi(clear))))
		if clear {
			c.text(at, floor+19, smallSize, "middle", "soft", Number(x))
			end = at + half + 8
		}
	}
	c.text(b.x+b.w/2, floor+38, smallSize, "middle", "soft", a.Label)
}

// band is the interval about a line.
func (c *canvas) band(s Series, sx, sy scale) {
	var run []Point
	flush := func() {
		if len(run) > 1 {
			var d []string
			for _, p := range run {
				d = append(d, px(sx.at(p.X))+" "+px(sy.at(p.High)))
			}
			for _, p := range slices.Backward(run) {
				d = append(d, px(sx.at(p.X))+" "+px(sy.at(p.Low)))
			}
			c.put(`<path class="band c%d" d="M%sZ"/>`, c.look[s.Name].colour(), strings.Join(d, "L"))
		}
		run = nil
	}
	for _, p := range s.Points {
		if math.IsNaN(p.Low) || math.IsNaN(p.High) || math.IsInf(p.Y, 0) {
			flush()
			continue
		}
		run = append(run, p)
	}
	flush()
}

// series draws a line with its marks, and the published ones.
func (c *canvas) series(s Series, sx, sy scale) {
	l := c.look[s.Name]
	var d strings.Builder
	pen := "M"
	for _, p := range s.Points {
		if math.IsNaN(p.Y) {
			pen = "M"
			continue
		}
		d.WriteString(pen + px(sx.at(p.X)) + " " + px(sy.at(p.Y)))
		pen = "L"
	}
	c.put(`<path class="line c%d" stroke-width="%s"%s d="%s"/>`, l.colour(), px(l.stroke()), l.dash(), d.String())
	for _, p := range s.Points {
		if !math.IsNaN(p.Published) {
			c.mark(l, sx.at(p.X), sy.at(p.Published), "hollow")
		}
	}
	for _, p := range s.Points {
		if !math.IsNaN(p.Y) {
			c.mark(l, sx.at(p.X), sy.at(p.Y), "mark")
		}
	}
}

// names writes the names of series at the ends of their lines.
func (c *canvas) names(ss []Series, sx, sy scale, b box) {
	var at, ends []float64
	var of []Series
	for _, s := range ss {
		for _, p := range slices.Backward(s.Points) {
			if !math.IsNaN(p.Y) {
				at, ends = append(at, sy.at(p.Y)), append(ends, sx.at(p.X))
				of = append(of, s)
				break
			}
		}
	}
	for i, y := range spread(at, 17, b.y, b.y+b.h) {
		l := c.look[of[i].Name]
		x := b.x + b.w + 12
		c.put(`<path class="lead-to c%d" d="M%s %sL%s %s"/>`, l.colour(), px(ends[i]+7), px(at[i]), px(x-2), px(y))
		c.text(x+2, y+4.8, textSize, "start", l.class()+" label c"+string(rune('0'+l.colour())), of[i].Name)
	}
}
