package sim

// Kind is what a dot on the stage stands for. The first kinds are the engine's regimes.
type Kind uint8

const (
	KindDirect   Kind = iota // a decision of a policy without regimes
	KindCold                 // ... of the cold branch
	KindHot                  // ... of the hot branch
	KindFallback             // ... made blind
	KindSpill                // ... outside the preferred group
	KindPanic                // ... with health ignored
	KindError                // a query that failed
	KindProbe                // a probe of the focused client
)

// Dot is one event for the eye.
type Dot struct {
	At      int64
	Work    int64 // of a decision's query, ns of one core
	Replica int32
	Client  int32
	Kind    Kind
}

// Tape records the dots of a stretch of time. A nil tape records nothing.
type Tape struct{ Dots []Dot }

func (t *Tape) add(at int64, replica, client int32, k Kind, work int64) {
	if t != nil {
		t.Dots = append(t.Dots, Dot{at, work, replica, client, k})
	}
}

// Record makes the world write to a tape from now on; nil stops it.
func (w *World) Record(t *Tape) { w.tape = t }
