package plot

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// canvas collects the elements of a figure.
type canvas struct {
	b    bytes.Buffer
	look map[string]look
}

// style has the page's palette and type. Every colour of a figure comes from here.
const style = `
:root { color-scheme: light dark; --panel: #ffffff; --raised: #eef2f8; --grid: #cbd5e3; --text: #14202f; --soft: #4a5b72;
  --c0: #00705a; --c1: #b35900; --c2: #0067a8; --c3: #b3122b; --c4: #7d8796; --c5: #611059; }
@media (prefers-color-scheme: dark) {
  :root { --panel: #111b2d; --raised: #18243a; --grid: #263652; --text: #e8eef8; --soft: #a9b7cf;
    --c0: #7fe0c3; --c1: #f5a524; --c2: #56b4e9; --c3: #ff6b7a; --c4: #8290aa; --c5: #cdeedf; }
}
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--text); font-variant-numeric: tabular-nums; }
.title { font-weight: 600; } .name { font-weight: 600; } .soft { fill: var(--soft); }
.page { fill: var(--panel); stroke: var(--grid); } .grid { stroke: var(--grid); } .base { stroke: var(--soft); }
.rail { fill: var(--raised); } .lead { font-weight: 700; } .line { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4); } .c5 { --c: var(--c5); }
.line, .range { stroke: var(--c); } .band { fill: var(--c); fill-opacity: 0.18; } .bar { fill: var(--c); fill-opacity: 0.32; }
.mark { fill: var(--c); stroke: var(--panel); stroke-width: 1; } .hollow { fill: none; stroke: var(--c); stroke-width: 1.8; }
.label { fill: var(--c); } .label.c4 { fill: var(--soft); } .halo { stroke: var(--panel); stroke-width: 4; paint-order: stroke; stroke-linejoin: round; } .lead-to { stroke: var(--c); stroke-opacity: 0.6; }
@media (prefers-contrast: more) { :root { --grid: var(--soft); --soft: var(--text); } }
`

func (c *canvas) put(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// px writes a coordinate to a tenth of a pixel.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// text writes a line of text. Anchor is start, middle or end.
func (c *canvas) text(x, y, size float64, anchor, class, s string) {
	c.put(`<text x="%s" y="%s" font-size="%s" text-anchor="%s" class="%s">%s</text>`,
		px(x), px(y), px(size), anchor, class, escaper.Replace(s))
}

// lines writes text in lines as wide as the page, and gives where the next line would be.
func (c *canvas) lines(x, y, size float64, class, s string) float64 {
	for _, line := range wrap(s, size, pageWidth-2*margin) {
		c.text(x, y, size, "start", class, line)
		y += lineStep * size / textSize
	}
	return y
}

func wrap(s string, size, room float64) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && width(line+" "+word, size) > room {
			out = append(out, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// width estimates how wide a text is: fonts differ from machine to machine.
func width(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijlt.,:;'|!()[] ", r):
			w += 0.36
		case strings.ContainsRune("mwMW%@", r):
			w += 0.95
		default:
			w += 0.61
		}
	}
	return w * size
}

// legend names the series above the panels, and gives where they begin.
func (c *canvas) legend(f Figure, y float64) float64 {
	x := float64(margin)
	y += 6
	entry := func(w float64, draw func()) {
		if x+w > pageWidth-margin {
			x, y = margin, y+lineStep+3
		}
		draw()
		x += w + 22
	}
	seen := map[string]bool{}
	for _, p := range f.Panels {
		for _, s := range p.Series {
			if seen[s.Name] {
				continue
			}
			seen[s.Name] = true
			l := c.look[s.Name]
			entry(34+width(s.Name, textSize), func() {
				if p.Rows == nil {
					c.put(`<path class="line c%d" d="M%s %sH%s" stroke-width="%s"%s/>`, l.colour(), px(x), px(y-4.5), px(x+26), px(l.stroke()), l.dash())
				}
				c.mark(l, x+13, y-4.5, "mark")
				c.text(x+34, y, textSize, "start", l.class(), s.Name)
			})
		}
	}
	if f.published() {
		const what = "hollow: published"
		entry(24+width(what, textSize), func() {
			c.put(`<circle class="hollow" style="stroke: var(--soft)" cx="%s" cy="%s" r="5"/>`, px(x+8), px(y-4.5))
			c.text(x+22, y, textSize, "start", "soft", what)
		})
	}
	return y + lineStep - 2
}

// finish wraps what was drawn in a document of so much height.
func (c *canvas) finish(f Figure, height float64) []byte {
	height = math.Ceil(height)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s" role="img" aria-labelledby="title desc">`+"\n",
		pageWidth, px(height), pageWidth, px(height))
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", escaper.Replace(f.Title), escaper.Replace(f.describe()))
	fmt.Fprintf(&b, "<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="page" x="0.5" y="0.5" width="%d" height="%s" rx="10"/>`+"\n", pageWidth-1, px(height-1))
	b.Write(c.b.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// describe says in words what the figure shows.
func (f Figure) describe() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(f.About))
	value := func(p Panel, v float64) string {
		if math.IsInf(v, 0) {
			return p.Y.Beyond
		}
		return Number(v)
	}
	for _, p := range f.Panels {
		fmt.Fprintf(&b, " %s.", p.Title)
		for _, s := range p.Series {
			var parts []string
			for _, pt := range s.Points {
				if math.IsNaN(pt.Y) {
					continue
				}
				where := Number(pt.X)
				if p.Rows != nil {
					where = p.Rows[int(pt.X)]
				}
				text := value(p, pt.Y) + " at " + where
				if !math.IsNaN(pt.Published) {
					text += " (published " + value(p, pt.Published) + ")"
				}
				parts = append(parts, text)
			}
			if len(parts) > 0 {
				fmt.Fprintf(&b, " %s: %s.", s.Name, strings.Join(parts, ", "))
			}
		}
	}
	return strings.TrimSpace(b.String())
}
