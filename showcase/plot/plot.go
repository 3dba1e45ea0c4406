// Package plot draws figures of experiments as SVG: line charts, and ranges in rows. A figure is
// one file without scripts that is legible in light and dark, tells series apart by shape and dash
// too, and can be read aloud. The same figure gives the same bytes.
package plot

import "math"

// Figure is one file: a title, a sentence or two, and panels.
type Figure struct {
	Title  string
	About  string
	Note   string // at the foot, such as what the bands are
	Panels []Panel
}

// Panel is one pair of axes. With rows it shows ranges in rows, and X is not used; otherwise lines.
type Panel struct {
	Title  string
	Rows   []string
	X, Y   Axis
	Series []Series
}

// Axis is a scale. A linear one for measurements begins at 0; a logarithmic one has a place for 0.
type Axis struct {
	Label  string
	Log    bool
	Beyond string // what an infinity is called, on its rail
}

// Series is what has one colour, shape and dash. A series of the same name is drawn alike in
// every panel.
type Series struct {
	Name   string
	Lead   bool // the one to look at
	Points []Point
}

// Point is a measurement with its interval, and what was published for it. Of rows, X is the
// index. NaN is not there, and an infinity lies on the rail.
type Point struct {
	X            float64
	Y, Low, High float64
	Published    float64
}

// Nothing is a coordinate that is not there.
var Nothing = math.NaN()

// Sizes, in pixels of a figure that is as wide as pageWidth.
const (
	pageWidth = 960
	margin    = 24
	gap       = 28
	titleSize = 21
	textSize  = 14
	smallSize = 12.5
	lineStep  = 19
)

// SVG draws the figure.
func (f Figure) SVG() []byte {
	c := &canvas{look: f.looks()}
	y := 24.0
	y = c.lines(margin, y+titleSize-4, titleSize, "title", f.Title) + 4
	y = c.lines(margin, y, textSize, "soft", f.About)
	direct := f.direct()
	if !direct {
		y = c.legend(f, y+4)
	}
	y += 2
	if len(f.Panels) > 0 && f.Panels[0].Rows != nil {
		y = c.rowPanels(f.Panels, y)
	} else {
		y = c.linePanels(f.Panels, y, direct)
	}
	note := f.Note
	if direct && f.published() {
		note = "Hollow marks were published. " + note
	}
	y = c.lines(margin, y+8, smallSize, "soft", note)
	return c.finish(f, y)
}

// published reports whether any point has a published value.
func (f Figure) published() bool {
	for _, p := range f.Panels {
		for _, s := range p.Series {
			for _, pt := range s.Points {
				if !math.IsNaN(pt.Published) {
					return true
				}
			}
		}
	}
	return false
}

// direct reports whether names can stand at the ends of lines, instead of in a legend.
func (f Figure) direct() bool {
	for _, p := range f.Panels {
		if p.Rows != nil || len(p.Series) > mostDirect {
			return false
		}
	}
	return true
}

// mostDirect is how many names have room beside a panel.
const mostDirect = 10

// looks gives each name of a series its look, in the order of their first appearance; what leads
// gets the first.
func (f Figure) looks() map[string]look {
	out := map[string]look{}
	next := 1
	for _, p := range f.Panels {
		for _, s := range p.Series {
			if _, ok := out[s.Name]; ok {
				continue
			}
			if s.Lead {
				out[s.Name] = look{n: 0, lead: true}
				continue
			}
			out[s.Name] = look{n: next}
			next++
		}
	}
	return out
}
