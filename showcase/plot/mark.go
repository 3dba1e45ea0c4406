package plot

import (
	"fmt"
	"math"
	"strings"
)

// look is how a series is drawn: its number among all of the figure.
type look struct {
	n    int
	lead bool
}

const colours = 6

// dashes come round slower than colours do, and shapes run on, so that no two of the first
// twenty-four series have both alike.
var dashes = []string{"", "7 5", "2 4", "11 4 2 4"}

func (l look) colour() int { return l.n % colours }

// dash is the attribute of a line. Neighbours differ in it too.
func (l look) dash() string {
	if d := dashes[(l.n+l.n/colours)%len(dashes)]; d != "" {
		return ` stroke-dasharray="` + d + `"`
	}
	return ""
}

func (l look) stroke() float64 {
	if l.lead {
		return 3.2
	}
	return 2
}

func (l look) class() string {
	if l.lead {
		return "lead"
	}
	return "plain"
}

// mark draws the shape of a series about a point; class is mark or hollow.
func (c *canvas) mark(l look, x, y float64, class string) {
	r := 4.6
	if l.lead {
		r = 5.4
	}
	if class == "hollow" {
		r += 1.2 // so that it shows behind a full one
	}
	attrs := fmt.Sprintf(`class="%s c%d"`, class, l.colour())
	switch shape := l.n % shapes; shape {
	case 0:
		c.put(`<circle %s cx="%s" cy="%s" r="%s"/>`, attrs, px(x), px(y), px(r))
	default:
		c.put(`<path %s d="%s"/>`, attrs, polygon(corners[shape-1], x, y, r))
	}
}

const shapes = 8

// corners of the shapes after the circle, about a unit circle: diamond, triangle, square,
// triangle on its tip, cross, hexagon and star.
var corners = [shapes - 1][][2]float64{
	{{0, -1.35}, {1.35, 0}, {0, 1.35}, {-1.35, 0}},
	{{0, -1.3}, {1.2, 0.9}, {-1.2, 0.9}},
	{{-0.95, -0.95}, {0.95, -0.95}, {0.95, 0.95}, {-0.95, 0.95}},
	{{0, 1.3}, {1.2, -0.9}, {-1.2, -0.9}},
	{{-0.45, -1.3}, {0.45, -1.3}, {0.45, -0.45}, {1.3, -0.45}, {1.3, 0.45}, {0.45, 0.45}, {0.45, 1.3}, {-0.45, 1.3}, {-0.45, 0.45}, {-1.3, 0.45}, {-1.3, -0.45}, {-0.45, -0.45}},
	ring(6, 1.15, 1.15),
	ring(10, 1.5, 0.65),
}

// ring is so many corners on two radii in turn.
func ring(n int, outer, inner float64) [][2]float64 {
	out := make([][2]float64, n)
	for i := range out {
		r := outer
		if i%2 == 1 {
			r = inner
		}
		a := 2 * math.Pi * float64(i) / float64(n)
		out[i] = [2]float64{r * math.Sin(a), -r * math.Cos(a)}
	}
	return out
}

func polygon(ps [][2]float64, x, y, r float64) string {
	var b strings.Builder
	for i, p := range ps {
		b.WriteString([]string{"L", "M"}[btoi(i == 0)])
		b.WriteString(px(x+r*p[0]) + " " + px(y+r*p[1]))
	}
	return b.String() + "Z"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
