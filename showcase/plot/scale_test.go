package plot

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "0.001": 0.001, "0.0123": 0.012345, "0.75": 0.75, "1": 1, "1.74": 1.7399, "27.5": 27.5, "232": 232, "1,185": 1185.4,
		"12,345,678": 12345678, "-1,500": -1500, "1,000": 999.9, "-": math.NaN(),
	} {
		assert.Equal(t, want, Number(v))
	}
}

func TestTicks(t *testing.T) {
	linear := measure(Axis{}, []float64{3, 27.5, Nothing}, 400, 0)
	assert.Equal(t, []float64{0, 5, 10, 15, 20, 25, 30}, linear.ticks(34))
	assert.Equal(t, []float64{400, 0}, []float64{linear.at(0), linear.at(30)})
	log := measure(Axis{Log: true}, []float64{230, 1700}, 400, 0)
	assert.Equal(t, []float64{200, 500, 1000, 2000}, log.ticks(34))
	assert.InDelta(t, 0.3010*400/1+0, 400-log.at(200*math.Pow(10, 0.3010)), 1)
	wide := measure(Axis{Log: true}, []float64{1e-3, 1e5}, 300, 0)
	assert.Len(t, wide.ticks(34), 9, "where there is no room only decades are left")
}

// Every value is within the panel, in order, and what is infinite or zero has its own place.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 20).Draw(t, "values")
		if rapid.Bool().Draw(t, "never") {
			values = append(values, never)
		}
		from, to := 300.0, 0.0
		if rapid.Bool().Draw(t, "across") {
			from, to = to, from
		}
		s := measure(Axis{Log: rapid.Bool().Draw(t, "log")}, values, from, to)
		slices.Sort(values)
		last := from
		for _, v := range values {
			at := s.at(v)
			require.False(t, math.IsNaN(at))
			require.True(t, at >= -1e-6 && at <= 300+1e-6, "%v at %v", v, at)
			require.GreaterOrEqual(t, math.Abs(at-from), math.Abs(last-from)-1e-6)
			last = at
		}
		for _, v := range s.ticks(34) {
			require.True(t, s.at(v) >= -1e-6 && s.at(v) <= 300+1e-6)
		}
	})
}

// Labels keep their distance and their order, and nothing moves that need not.
func TestSpread(t *testing.T) {
	assert.Equal(t, []float64{50, 10}, spread([]float64{50, 10}, 17, 0, 100))
	assert.Equal(t, []float64{41.5, 58.5}, spread([]float64{50, 50}, 17, 0, 100))
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOfN(rapid.Float64Range(0, 300), 1, 12).Draw(t, "at")
		out := spread(at, 17, 0, 300)
		order := make([]int, len(at))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if at[a] < at[b] {
				return -1
			}
			if at[a] > at[b] {
				return 1
			}
			return 0
		})
		for k := 1; k < len(order); k++ {
			require.GreaterOrEqual(t, out[order[k]]-out[order[k-1]], 17-1e-6)
		}
		for _, y := range out {
			require.True(t, y > -1e-6 && y < 300+1e-6, "%v", y)
		}
	})
}

// Any figure is valid XML without scripts, with a title and a description, and says no NaN.
func TestAnyFigureIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(0, 1e5), rapid.SampledFrom([]float64{0, Nothing, never}))
		text := rapid.StringOf(rapid.SampledFrom([]rune(`az<>&"' é]`)))
		f := Figure{Title: text.Draw(t, "title"), About: text.Draw(t, "about")}
		rows := rapid.SliceOfN(text, 0, 4).Draw(t, "rows")
		for range rapid.IntRange(0, 4).Draw(t, "panels") {
			p := Panel{Title: "p", Y: Axis{Log: rapid.Bool().Draw(t, "log"), Beyond: "TO"}, X: Axis{Log: rapid.Bool().Draw(t, "logx")}}
			if len(rows) > 0 {
				p.Rows = rows
			}
			for range rapid.IntRange(0, 12).Draw(t, "series") {
				s := Series{Name: text.Draw(t, "name")}
				for i := range max(1, len(rows)) {
					s.Points = append(s.Points, Point{float64(i), number.Draw(t, "y"), number.Draw(t, "low"), number.Draw(t, "high"), number.Draw(t, "published")})
				}
				p.Series = append(p.Series, s)
			}
			f.Panels = append(f.Panels, p)
		}
		svg := f.SVG()
		elements := wellFormed(t, svg)
		require.Equal(t, []string{"svg", "title", "desc", "style"}, elements[:4])
		require.NotContains(t, elements, "script")
		require.NotRegexp(t, `="[^"]*(NaN|Inf)`, string(svg))
	})
}

var colourPattern = regexp.MustCompile(`--(c\d|panel|text|soft): (#[0-9a-f]{6})`)

// Both themes define every colour, and each stands out from the panel: 3:1 for marks, 4.5:1 for
// text.
func TestColoursHaveContrast(t *testing.T) {
	light, dark, ok := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	require.True(t, ok)
	for theme, css := range map[string]string{"light": light, "dark": dark} {
		colour := map[string]float64{}
		for _, m := range colourPattern.FindAllStringSubmatch(css, -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		require.Len(t, colour, colours+3, theme)
		for name, l := range colour {
			least := 3.0
			if name != "c4" { // which names are not written in
				least = 4.5
			}
			if name != "panel" {
				assert.Greater(t, (max(l, colour["panel"])+0.05)/(min(l, colour["panel"])+0.05), least, "%s, %s", theme, name)
			}
		}
	}
}

// luminance as the accessibility guidelines define it.
func luminance(t *testing.T, hex string) float64 {
	l := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// No two of the first twenty-four series have both shape and dash alike, so none needs its colour.
func TestLooksDiffer(t *testing.T) {
	seen := map[string]int{}
	for n := range 24 {
		l := look{n: n}
		key := strconv.Itoa(n%shapes) + l.dash()
		other, ok := seen[key]
		assert.False(t, ok, "%d looks like %d", n, other)
		seen[key] = n
	}
}
