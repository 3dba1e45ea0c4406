package replica

import (
	"math"
	"math/bits"
	"net/http"

	"github.com/headroom-lb/headroom/engine"
)

// MaxHint is the length of the longest hint, in bytes.
const MaxHint = 256

// Scales of a reported load, in parts per 10,000.
const (
	ScaleSame  = 10_000       // as it is
	ScaleLeast = 100          // a hundredth
	ScaleMost  = 100 * 10_000 // a hundredfold
)

// WithHints lets the replica answer a probe for the query that the probe is sent for. f is told
// the probe's hint and returns the scale of the load that this probe reports, in parts per 10,000:
// 1,000 attracts a query whose data are at hand, as a tenth of the load would; 50,000 turns away
// one whose data would have to be fetched; [ScaleSame] changes nothing. A scale outside [ScaleLeast]
// to [ScaleMost] counts as the nearer of the two, so that no answer to a hint can hide the load
// altogether. Probes without a hint, or with one that is not [ValidHint], report the load as it is.
//
// f is called from many goroutines, and a query waits for it: it has microseconds.
func WithHints(f func(hint string) int) Option { return func(m *Monitor) { m.hints = f } }

// ValidHint reports whether a hint can be sent: 1 to MaxHint bytes of printable ASCII, without a
// space at either end.
func ValidHint(hint string) bool {
	if hint == "" || len(hint) > MaxHint || hint[0] == ' ' || hint[len(hint)-1] == ' ' {
		return false
	}
	for i := range len(hint) {
		if hint[i] < ' ' || hint[i] > '~' {
			return false
		}
	}
	return true
}

// hinted is the reading for a probe.
func (m *Monitor) hinted(r *http.Request) engine.Reading {
	rd := m.Reading()
	if m.hints == nil {
		return rd
	}
	if vs := r.Header[HeaderHint]; len(vs) == 1 && ValidHint(vs[0]) {
		return Scale(rd, m.hints(vs[0]))
	}
	return rd
}

// Scale is a reading with its load scaled by parts per 10,000, within [ScaleLeast] and
// [ScaleMost]. RIF and latency are rounded up, so that a busy replica never reports to be idle;
// an unknown latency stays unknown.
func Scale(rd engine.Reading, parts int) engine.Reading {
	by := uint64(min(max(parts, ScaleLeast), ScaleMost))
	scaled := func(v, most uint64) uint64 {
		hi, lo := bits.Mul64(v, by)
		lo, carry := bits.Add64(lo, ScaleSame-1, 0)
		if hi += carry; hi >= ScaleSame {
			return most
		}
		q, _ := bits.Div64(hi, lo, ScaleSame)
		return min(q, most)
	}
	rd.RIF = uint32(scaled(uint64(rd.RIF), math.MaxUint32))
	if rd.Latency >= 0 {
		rd.Latency = engine.Duration(scaled(uint64(rd.Latency), uint64(engine.MaxLatency)))
	}
	return rd
}
