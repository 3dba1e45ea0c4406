package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the figures in testdata anew")

var never = math.Inf(1)

// linear and logarithmic axes, bands, rails, zeroes, published marks and a line that ends.
func ramp() Figure {
	loads := []float64{0.75, 0.83, 0.93, 1.03, 1.14, 1.27, 1.41, 1.57, 1.74}
	series := func(name string, lead bool, half float64, ys ...float64) Series {
		s := Series{Name: name, Lead: lead}
		for i, y := range ys {
			s.Points = append(s.Points, Point{loads[i], y, y * (1 - half), y * (1 + half), Nothing})
		}
		return s
	}
	f := Figure{
		Title: "Load ramp: what a fleet does beyond its allocation",
		About: "Nine loads, each 10/9 of the last, under the same queries. Weighted round robin keeps every replica equally busy, and loses queries as soon as neighbours take what it relied on.",
		Note:  "Medians of five seeds; the bands are 95 % intervals of the mean.",
		Panels: []Panel{
			{Title: "p99 latency, ms", X: Axis{Label: "load, of the allocation"}, Y: Axis{Log: true, Beyond: "timeout"}, Series: []Series{
				series("prequal", true, 0.05, 232, 240, 259, 295, 335, 388, 465, 565, 746),
				series("wrr", false, 0.1, 354, 900, never, never, never, never, never, never, never),
				series("c3", false, 0.05, 290, 297, 310, 360, 440, 600, 900, 1700),
			}},
			{Title: "queries that fail, %", X: Axis{Label: "load, of the allocation"}, Y: Axis{}, Series: []Series{
				series("prequal", true, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
				series("wrr", false, 0.08, 0, 0.01, 2.2, 8.1, 12.9, 17.3, 21.0, 24.5, 27.5),
				series("c3", false, 0.08, 0, 0, 0, 0, 0.2, 0.5, 1, 2),
			}},
		},
	}
	for i, v := range []float64{265, 265, 265, 335, 700, never} {
		f.Panels[0].Series[1].Points[i].Published = v
	}
	for i, v := range []float64{265, 266, 268, 270, 275, 290, 340, 430, 520} {
		f.Panels[0].Series[0].Points[i].Published = v
	}
	return f
}

// nine rules at two loads.
func nine() Figure {
	rows := []string{"round robin", "random", "wrr", "least loaded", "ll-po2c", "yarp-po2c", "linear", "c3", "prequal"}
	series := func(name string, lead bool, ours, paper []float64) Series {
		s := Series{Name: name, Lead: lead}
		for i, y := range ours {
			s.Points = append(s.Points, Point{float64(i), y, y * 0.93, y * 1.07, paper[i]})
		}
		return s
	}
	return Figure{
		Title: "Nine rules at 70 % and at 90 % load", About: "What a query waits under each rule, as we measure it and as the paper did.",
		Note: "Medians of five seeds; the bars are 95 % intervals of the mean. Published: Fig. 7.",
		Panels: []Panel{
			{Title: "p90 latency, ms", Rows: rows, Y: Axis{Log: true, Beyond: "timeout"}, Series: []Series{
				series("70 %", false, []float64{2166, 2164, 181, 424, 272, 194, 171, 169, 155}, []float64{4984, 294, 173, 343, 224, 210, 206, 161, 149}),
				series("90 %", true, []float64{3650, 3635, 2172, 392, 348, 259, 178, 175, 166}, []float64{never, never, 1667, 940, 623, 213, 245, 164, 152}),
			}},
			{Title: "p99 latency, ms", Rows: rows, Y: Axis{Log: true, Beyond: "timeout"}, Series: []Series{
				series("70 %", false, []float64{never, never, 325, 2150, 1153, 416, 297, 293, 227}, []float64{never, never, 314, 1804, 569, 2642, 698, 299, 281}),
				series("90 %", true, []float64{never, never, 4366, 2443, 1996, 634, 308, 300, 253}, []float64{never, never, never, 2654, 1918, 1169, 1036, 304, 286}),
			}},
			{Title: "CPU, cores", Rows: rows, Y: Axis{}, Series: []Series{
				series("70 %", false, []float64{5, 5, 5, 6, 6, 6, 6, 6, 6}, slices.Repeat([]float64{Nothing}, 9)),
				series("90 %", true, []float64{7, 7, 7, 7, 7.5, 7, 7, 7, 8}, slices.Repeat([]float64{Nothing}, 9)),
			}},
		},
	}
}

// many has more series than colours, zeroes on a logarithmic axis, and one panel.
func many() Figure {
	f := Figure{Title: "Many lines <&> \"signs\"", About: "Each has a shape and a dash.", Panels: []Panel{{
		Title: "something, %", X: Axis{Label: "probes per query", Log: true}, Y: Axis{Log: true, Beyond: "timeout"},
	}}}
	for i := range 10 {
		s := Series{Name: strings.Repeat("s", 1+i%3) + "eries " + string(rune('a'+i)), Lead: i == 4}
		for k := range 8 {
			y := math.Pow(1.6, float64(k)) * float64(i*i)
			s.Points = append(s.Points, Point{math.Pow(2, float64(k)/2-2), y, y * 0.9, y * 1.1, Nothing})
		}
		f.Panels[0].Series = append(f.Panels[0].Series, s)
	}
	return f
}

func TestFiguresStayAsTheyAre(t *testing.T) {
	for name, f := range map[string]Figure{"ramp": ramp(), "rules": nine(), "many": many()} {
		got := f.SVG()
		require.True(t, bytes.Equal(got, f.SVG()), "%s: the same bytes each time", name)
		wellFormed(t, got)
		path := "testdata/" + name + ".svg"
		if *update {
			require.NoError(t, os.WriteFile(path, got, 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), "%s differs from %s: look at it, then run with -update", name, path)
	}
}

// wellFormed parses a figure and gives its elements' names.
func wellFormed(t require.TestingT, svg []byte) (elements []string) {
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		require.NoError(t, err)
		if e, ok := tok.(xml.StartElement); ok {
			elements = append(elements, e.Name.Local)
		}
	}
}
