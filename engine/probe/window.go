package probe

import "github.com/headroom-lb/headroom/engine"

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

	sorted    ranked // derived: the RIFs in force, ascending
	threshold uint32 // derived
	due       engine.Instant
}

const (
	windowFirst = iota // position of the oldest
	windowLen
	windowHead
)

// Init makes a window of up to max readings younger than age, ranked at quantile q, in parts
// per 10,000. Bind it before use.
func (w *Window) Init(max int, age engine.Duration, q uint64) {
	*w = Window{max: max, age: age, q: q, sorted: newRanked(max)}
}

// Words is the size of the window's state.
func (w *Window) Words() int { return windowHead + 2*w.max }

// Bind attaches the window to its state words.
func (w *Window) Bind(words []uint64) {
	w.head = (*[windowHead]uint64)(words)
	w.at = words[windowHead : windowHead+w.max]
	w.rif = words[windowHead+w.max : w.Words()]
	w.sorted.clear()
	for i := range min(w.Len(), w.max) {
		w.sorted.insert(uint32(w.rif[(int(w.head[windowFirst]%uint64(w.max))+i)%w.max]))
	}
	w.rank()
	w.due = never
	if w.sound() {
		w.arm()
	}
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

// Add takes a reading's RIF. The oldest leaves a full window.
func (w *Window) Add(now engine.Instant, rif uint32) {
	w.shed(now)
	v := min(rif, engine.NoThreshold-1)
	first, n := int(w.head[windowFirst]), w.Len()
	if n < w.max {
		to := first + n
		if to >= w.max {
			to -= w.max
		}
		w.at[to], w.rif[to] = uint64(now), uint64(v)
		w.head[windowLen]++
		w.sorted.insert(v)
		w.rank()
		w.arm()
		return
	}
	old := uint32(w.rif[first])
	w.at[first], w.rif[first] = uint64(now), uint64(v)
	if first++; first == w.max {
		first = 0
	}
	w.head[windowFirst] = uint64(first)
	if old != v {
		w.sorted.swap(old, v)
		w.rank()
	}
	w.arm()
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
	w.sorted.remove(uint32(w.rif[first]))
	w.at[first], w.rif[first] = 0, 0
	if first++; first == uint64(w.max) {
		first = 0
	}
	w.head[windowFirst] = first
	w.head[windowLen]--
}

func (w *Window) rank() {
	w.threshold = engine.NoThreshold
	if k := uint64(w.sorted.n); k > 0 && w.q < Unit {
		w.threshold = w.sorted.at[max((w.q*k+Unit-1)/Unit, 1)-1]
	}
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
