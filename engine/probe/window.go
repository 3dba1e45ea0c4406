package probe

import (
	"slices"

	"github.com/headroom-lb/headroom/engine"
)

// MaxWindow bounds a window.
const MaxWindow = 4096

// Unit is one, for every rate and share that is held as an integer in parts per 10,000.
const Unit = 10000

// Window is the last readings' RIFs, younger than an age, and their exact quantile. It is
// apart from the pool: a threshold ranked over the pool's own entries would always leave the
// pool's least RIF cold, and the hot branch could never run.
type Window struct {
	head *[windowHead]uint64
	at   []uint64 // receipt, a ring
	rif  []uint64
	max  int
	age  engine.Duration
	q    uint64 // quantile in parts per 10,000

	// Derived. The RIF of the rank asked for, and how many are less and equal: one reading more
	// or less seldom moves it, and then to a neighbour.
	pivot     uint64
	below     int
	equal     int
	index     int // of the rank, for the readings in force
	threshold uint32
	due       engine.Instant
	sorted    []uint64 // scratch
}

const (
	windowFirst = iota // position of the oldest
	windowLen
	windowHead
)

// Init makes a window of up to max readings younger than age, ranked at quantile q, in parts
// per 10,000. Bind it before use.
func (w *Window) Init(max int, age engine.Duration, q uint64) {
	*w = Window{max: max, age: age, q: q, sorted: make([]uint64, max)}
}

// Words is the size of the window's state.
func (w *Window) Words() int { return windowHead + 2*w.max }

// Bind attaches the window to its state words.
func (w *Window) Bind(words []uint64) {
	w.head = (*[windowHead]uint64)(words)
	w.at = words[windowHead : windowHead+w.max]
	w.rif = words[windowHead+w.max : w.Words()]
	w.below, w.equal, w.due = 0, 0, never // of no readings, whatever the pivot is
	if w.sound() {
		older, newer := w.live()
		w.sorted = append(append(w.sorted[:0], older...), newer...)
		slices.Sort(w.sorted)
		if w.count(); len(w.sorted) > 0 {
			w.pivot = w.sorted[w.index]
			w.below, _ = slices.BinarySearch(w.sorted, w.pivot)
			w.equal = occurrences(w.sorted, w.pivot)
		}
		w.arm()
		w.rank()
		return
	}
	w.threshold = engine.NoThreshold // a stranger's words, which Valid refuses
}

// live is the RIFs in force, the oldest first, in one or two pieces.
func (w *Window) live() (older, newer []uint64) {
	first := int(w.head[windowFirst])
	end := first + w.Len()
	return w.rif[first:min(end, w.max)], w.rif[:max(end-w.max, 0)]
}

// sound reports whether the ring lies within its words, as it does unless a stranger wrote
// them.
func (w *Window) sound() bool {
	return w.head[windowFirst] < uint64(w.max) && w.head[windowLen] <= uint64(w.max)
}

func (w *Window) arm() {
	w.due = never
	if w.Len() > 0 {
		w.due = Later(engine.Instant(w.at[w.head[windowFirst]]), w.age)
	}
}

// Len is the number of readings held.
func (w *Window) Len() int { return int(w.head[windowLen]) }

// Threshold is the RIF at the quantile by exact nearest rank, or engine.NoThreshold if the
// window is empty or the quantile is one.
func (w *Window) Threshold() uint32 { return w.threshold }

// At is what the threshold will be at an instant if nothing is added: readings that reach the
// age limit by then no longer count. It changes nothing; it is for display.
func (w *Window) At(now engine.Instant) uint32 {
	older, newer := w.live()
	w.sorted = append(append(w.sorted[:0], older...), newer...)
	gone := 0
	for ; gone < len(w.sorted); gone++ {
		at := (int(w.head[windowFirst]) + gone) % w.max
		if now < Later(engine.Instant(w.at[at]), w.age) {
			break
		}
	}
	rest := w.sorted[gone:]
	if len(rest) == 0 || w.q >= Unit {
		return engine.NoThreshold
	}
	slices.Sort(rest)
	return uint32(rest[w.rankOf(len(rest))])
}

// Add takes a reading's RIF. The oldest leaves a full window.
func (w *Window) Add(now engine.Instant, rif uint32) {
	w.shed(now)
	v := uint64(min(rif, engine.NoThreshold-1))
	first, n := int(w.head[windowFirst]), w.Len()
	if n < w.max {
		to := first + n
		if to >= w.max {
			to -= w.max
		}
		w.at[to], w.rif[to] = uint64(now), v
		w.head[windowLen]++
		w.count()
	} else {
		w.tally(w.rif[first], -1)
		w.at[first], w.rif[first] = uint64(now), v
		if first++; first == w.max {
			first = 0
		}
		w.head[windowFirst] = uint64(first)
	}
	w.tally(v, 1)
	w.rank()
	w.arm()
}

// tally counts a RIF that comes or goes on its side of the pivot.
func (w *Window) tally(v uint64, one int) {
	w.below += one * lessKey(v, w.pivot)
	w.equal += one * (1 - lessKey(v, w.pivot) - lessKey(w.pivot, v))
}

// Due is the instant at which the oldest reading reaches the age limit.
func (w *Window) Due() engine.Instant { return w.due }

// Expire forgets the readings that have reached the age limit.
func (w *Window) Expire(now engine.Instant) {
	w.shed(now)
	w.rank()
}

func (w *Window) shed(now engine.Instant) {
	for now >= w.due && w.Len() > 0 {
		w.drop()
		w.arm()
	}
}

func (w *Window) drop() {
	first := w.head[windowFirst]
	w.tally(w.rif[first], -1)
	w.at[first], w.rif[first] = 0, 0
	if first++; first == uint64(w.max) {
		first = 0
	}
	w.head[windowFirst] = first
	w.head[windowLen]--
	w.count()
}

// count follows a change of how many readings are in force.
func (w *Window) count() { w.index = w.rankOf(w.Len()) }

// rankOf is the index of the quantile by nearest rank among so many.
func (w *Window) rankOf(n int) int { return max(int((w.q*uint64(n)+Unit-1)/Unit), 1) - 1 }

// rank moves the pivot to the rank asked for.
func (w *Window) rank() {
	if w.Len() == 0 || w.q >= Unit {
		w.threshold = engine.NoThreshold
		return
	}
	if w.below > w.index || w.below+w.equal <= w.index {
		w.seek()
	}
	w.threshold = uint32(w.pivot)
}

func (w *Window) seek() {
	older, newer := w.live()
	for w.below > w.index {
		next := uint64(0)
		for _, part := range [...][]uint64{older, newer} {
			for _, v := range part {
				if v < w.pivot {
					next = max(next, v)
				}
			}
		}
		w.pivot, w.equal = next, occurrences(older, next)+occurrences(newer, next)
		w.below -= w.equal
	}
	for w.below+w.equal <= w.index {
		next := blank
		for _, part := range [...][]uint64{older, newer} {
			for _, v := range part {
				if v > w.pivot {
					next = min(next, v)
				}
			}
		}
		w.below += w.equal
		w.pivot, w.equal = next, occurrences(older, next)+occurrences(newer, next)
	}
}

func occurrences(in []uint64, of uint64) (n int) {
	for _, v := range in {
		if v == of {
			n++
		}
	}
	return n
}

// Valid reports whether the state words are a state this window could have made.
func (w *Window) Valid(now engine.Instant) bool {
	if !w.sound() {
		return false
	}
	last := engine.Instant(-1 << 63)
	for i := range w.Len() {
		at := (int(w.head[windowFirst]) + i) % w.max
		if t := engine.Instant(w.at[at]); t < last || t > now || w.rif[at] >= uint64(engine.NoThreshold) {
			return false
		} else {
			last = t
		}
	}
	return true
}
