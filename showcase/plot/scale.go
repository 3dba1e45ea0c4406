package plot

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// scale places values between two pixels.
type scale struct {
	log       bool
	low, high float64
	from, to  float64 // pixels of low and high
	zero      bool    // a logarithmic scale with a place for 0, before low
	rail      bool    // a place for what is infinite, after high
}

// Room that places beyond a scale take, in pixels.
const (
	zeroRoom = 26.0
	railRoom = 30.0
)

// tiny is what counts as 0 on a logarithmic scale: no measurement is less and not 0.
const tiny = 1e-9

// measure makes a scale of measurements: one that all finite values fit in.
func measure(a Axis, values []float64, from, to float64) scale {
	s := scale{log: a.Log, low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, v := range values {
		switch {
		case math.IsNaN(v):
		case math.IsInf(v, 0):
			s.rail = true
		case a.Log && v < tiny:
			s.zero = true
		default:
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	way := 1.0
	if to < from {
		way = -1
	}
	if s.zero {
		s.from += way * zeroRoom
	}
	if s.rail {
		s.to -= way * railRoom
	}
	if s.low > s.high { // nothing finite
		s.low, s.high = 1, 10
	}
	if a.Log {
		if s.low, s.high = below(s.low), above(s.high); s.low == s.high {
			s.low, s.high = s.low/2, s.high*2
		}
		return s
	}
	step := niceStep(max(s.high, 0) / 5)
	s.low, s.high = 0, max(math.Ceil(s.high/step-1e-9), 1)*step
	return s
}

// at is the pixel of a value. Infinities are on the rail, and zeroes in their place.
func (s scale) at(v float64) float64 {
	way := 1.0
	if s.to < s.from {
		way = -1
	}
	switch {
	case math.IsInf(v, 1):
		return s.to + way*railRoom*0.6
	case s.log && v < tiny && s.zero:
		return s.from - way*zeroRoom*0.6
	}
	v = min(max(v, s.low), s.high)
	if s.log {
		return s.from + (s.to-s.from)*math.Log(v/s.low)/math.Log(s.high/s.low)
	}
	return s.from + (s.to-s.from)*(v-s.low)/(s.high-s.low)
}

// ticks are round values within a scale, at least about so many pixels apart.
func (s scale) ticks(apart float64) []float64 {
	room := math.Abs(s.to-s.from) / apart
	var out []float64
	if !s.log {
		step := niceStep((s.high - s.low) / min(room, 6))
		for i := 0; float64(i)*step <= s.high*(1+1e-9); i++ {
			out = append(out, float64(i)*step)
		}
		return out
	}
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		out = nil
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, m := range mantissas {
				if v := m * math.Pow(10, e); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		if float64(len(out)) <= room+1 {
			break
		}
	}
	return out
}

// niceStep is 1, 2 or 5 times a power of ten, not below v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	return above(v)
}

// above and below round to 1, 2 or 5 times a power of ten.
func above(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= v*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

func below(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*base <= v*(1+1e-9) {
			return m * base
		}
	}
	return base
}

// Number writes a value in three significant digits, or in whole numbers, with commas between
// thousands.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0:
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', min(digits, 6), 64)
	whole, rest, point := strings.Cut(text, ".")
	if point {
		if rest = strings.TrimRight(rest, "0"); rest != "" {
			rest = "." + rest
		}
	}
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}

// spread moves positions apart, as little as it can, so that neighbours are at least so far from
// each other, and all between low and high.
func spread(at []float64, apart, low, high float64) []float64 {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case at[a] < at[b]:
			return -1
		case at[a] > at[b]:
			return 1
		}
		return 0
	})
	out := slices.Clone(at)
	// Groups that touch are centred where their members want to be.
	type group struct{ first, n int }
	var groups []group
	centre := func(g group) float64 {
		sum := 0.0
		for _, i := range order[g.first : g.first+g.n] {
			sum += at[i]
		}
		half := float64(g.n-1) * apart / 2
		return min(max(sum/float64(g.n), low+half), max(high-half, low+half))
	}
	for k := range order {
		groups = append(groups, group{k, 1})
		for len(groups) > 1 {
			a, b := groups[len(groups)-2], groups[len(groups)-1]
			if centre(b)-centre(a) >= float64(a.n+b.n)*apart/2 {
				break
			}
			groups = append(groups[:len(groups)-2], group{a.first, a.n + b.n})
		}
	}
	for _, g := range groups {
		for k := range g.n {
			out[order[g.first+k]] = centre(g) + (float64(k)-float64(g.n-1)/2)*apart
		}
	}
	return out
}
