package hosttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/abi"
)

// bent is a native guest with a fault. What is nil is as it should be.
type bent struct {
	native
	fleet   []engine.Candidate
	count   int // outside the block
	decide  func(b *bent, q *engine.Query, d *engine.Decision) error
	set     func(b *bent, now engine.Instant, cs []engine.Candidate) error
	report  func(b *bent, now engine.Instant, r engine.Report) error
	record  func(b *bent, rd engine.Reading) error
	restore func(b *bent, block []byte) error
	entries func(b *bent, now engine.Instant)
	probes  func(ids []engine.ID) []engine.ID
	spec    func() string
	memory  func(b *bent) int
	export  func(name string, args []uint64) int32
}

func (b *bent) Decide(q *engine.Query, d *engine.Decision) error {
	b.count++
	if b.decide != nil {
		return b.decide(b, q, d)
	}
	return b.native.Decide(q, d)
}

func (b *bent) SetCandidates(now engine.Instant, cs []engine.Candidate) (err error) {
	if b.set != nil {
		err = b.set(b, now, cs)
	} else {
		err = b.native.SetCandidates(now, cs)
	}
	if err == nil {
		b.fleet = slices.Clone(cs)
	}
	return err
}

func (b *bent) SetStatus(now engine.Instant, id engine.ID, s engine.Status) error {
	err := b.native.SetStatus(now, id, s)
	for i := range b.fleet {
		if err == nil && b.fleet[i].ID == id {
			b.fleet[i].Status = s
		}
	}
	return err
}

func (b *bent) Report(now engine.Instant, r engine.Report) error {
	if b.report != nil {
		return b.report(b, now, r)
	}
	return b.native.Report(now, r)
}

func (b *bent) Record(now engine.Instant, id engine.ID, rd engine.Reading) (engine.Admission, error) {
	if b.record != nil {
		if err := b.record(b, rd); err != nil {
			return 0, err
		}
	}
	return b.native.Record(now, id, rd)
}

func (b *bent) Restore(block []byte) error {
	if b.restore != nil {
		return b.restore(b, block)
	}
	return b.native.Restore(block)
}

func (b *bent) Entries(now engine.Instant, dst []engine.Entry) ([]engine.Entry, error) {
	if b.entries != nil {
		b.entries(b, now)
	}
	return b.native.Entries(now, dst)
}

func (b *bent) Probes(now engine.Instant, dst []engine.ID) ([]engine.ID, error) {
	ids, err := b.native.Probes(now, dst)
	if b.probes != nil {
		ids = b.probes(ids)
	}
	return ids, err
}

func (b *bent) Spec() string {
	if b.spec != nil {
		return b.spec()
	}
	return b.native.Spec()
}

func (b *bent) MemorySize() int {
	if b.memory != nil {
		return b.memory(b)
	}
	return 1 << 24
}

func (b *bent) Call(name string, args ...uint64) (uint64, error) {
	if b.export != nil {
		return uint64(uint32(b.export(name, args))), nil
	}
	return uint64(uint32(obedient(name, args))), nil
}

// obedient answers the raw calls of the laws as a guest should.
func obedient(name string, args []uint64) int32 {
	switch {
	case name == abi.FuncText:
		return 1
	case name == abi.FuncArena && uint32(args[0]) <= abi.ArenaMax:
		return 64
	case name == abi.FuncArena:
		return 0
	}
	return int32(abi.CodeOf(engine.ErrConfig))
}

// choose makes a decision of one's own, as every fault of decisions does.
func choose(pick func(b *bent, q *engine.Query) int) func(*bent, *engine.Query, *engine.Decision) error {
	return func(b *bent, q *engine.Query, d *engine.Decision) error {
		err := b.native.Decide(q, d)
		if err == nil {
			if i := pick(b, q); i >= 0 {
				d.Index, d.ID = uint32(i), b.fleet[i].ID
			}
		}
		return err
	}
}

// openAt is the k-th open candidate, going round.
func (b *bent) openAt(q *engine.Query, k int) int {
	var open []int
	for i, c := range b.fleet {
		if c.Status.Eligible() && !slices.Contains(q.Tried, c.ID) {
			open = append(open, i)
		}
	}
	return open[k%len(open)]
}

var calls int // of all guests: what no guest can have, and a native one can

func plantedFaults() map[string]func(*bent) {
	trap := fmt.Errorf("%w: as planted", host.ErrTrap)
	return map[string]func(*bent){
		"no call traps": func(b *bent) {
			b.decide = func(b *bent, q *engine.Query, d *engine.Decision) error {
				if q.Key == 7 {
					return trap
				}
				return b.native.Decide(q, d)
			}
		},
		"a decision names a candidate and a regime": func(b *bent) {
			b.decide = func(b *bent, q *engine.Query, d *engine.Decision) error {
				err := b.native.Decide(q, d)
				d.Index = uint32(len(b.fleet))
				return err
			}
		},
		"a decision is for an eligible replica": func(b *bent) {
			b.decide = choose(func(b *bent, _ *engine.Query) int {
				return slices.IndexFunc(b.fleet, func(c engine.Candidate) bool { return c.Status == engine.StatusDraining })
			})
		},
		"a decision avoids the replicas tried": func(b *bent) {
			b.decide = func(b *bent, q *engine.Query, d *engine.Decision) error {
				return b.native.Decide(&engine.Query{Now: q.Now, Key: q.Key}, d)
			}
		},
		"a query is refused only for want of an open candidate, and by the precise error": func(b *bent) {
			b.decide = func(b *bent, q *engine.Query, d *engine.Decision) error {
				if err := b.native.Decide(q, d); err != nil {
					return engine.ErrNoCandidates
				}
				return nil
			}
		},
		"a decision's counts add up": func(b *bent) {
			b.decide = func(b *bent, q *engine.Query, d *engine.Decision) error {
				err := b.native.Decide(q, d)
				d.Cold++
				return err
			}
		},
		"a call about a replica that is not in the fleet is an unknown endpoint": func(b *bent) {
			b.report = func(b *bent, now engine.Instant, r engine.Report) error { _ = b.native.Report(now, r); return nil }
		},
		"a refusal has a code of the interface and a text": func(b *bent) {
			b.report = func(b *bent, now engine.Instant, r engine.Report) error {
				if b.native.Report(now, r) != nil {
					return abi.ErrInternal
				}
				return nil
			}
		},
		"a refused fleet or status changes nothing": func(b *bent) {
			b.set = func(b *bent, now engine.Instant, cs []engine.Candidate) error {
				err := b.native.SetCandidates(now, cs)
				if err != nil {
					_ = b.native.SetCandidates(now, nil)
				}
				return err
			}
		},
		"the same calls give the same answers": func(b *bent) {
			b.decide = choose(func(b *bent, q *engine.Query) int { calls++; return b.openAt(q, calls/3) })
		},
		"shifting all instants changes nothing": func(b *bent) {
			b.decide = choose(func(b *bent, q *engine.Query) int { return b.openAt(q, int(q.Now>>48)) })
		},
		"time that goes backwards stands still": func(b *bent) {
			b.decide = choose(func(b *bent, q *engine.Query) int { return b.openAt(q, int(uint64(q.Now)%7)) })
		},
		"snapshot and restore is the identity": func(b *bent) { b.restore = func(*bent, []byte) error { return nil } },
		"a block restored into a fresh guest carries on": func(b *bent) {
			b.decide = choose(func(b *bent, q *engine.Query) int { return b.openAt(q, b.count) })
		},
		"a damaged block is refused, or serves on": func(b *bent) {
			b.restore = func(b *bent, block []byte) error {
				if b.native.Restore(block) != nil {
					b.decide = func(*bent, *engine.Query, *engine.Decision) error { return trap }
				}
				return nil
			}
		},
		"a fleet set again, in any order, keeps what is known of each replica": func(b *bent) {
			b.set = func(b *bent, now engine.Instant, cs []engine.Candidate) error {
				if err := b.native.SetCandidates(now, cs); err != nil {
					return err
				}
				_ = b.native.SetCandidates(now, nil)
				return b.native.SetCandidates(now, cs)
			}
		},
		"looking changes nothing": func(b *bent) {
			b.entries = func(b *bent, now engine.Instant) { _ = b.native.Decide(&engine.Query{Now: now}, &engine.Decision{}) }
		},
		"probes go to eligible replicas, each once": func(b *bent) {
			b.probes = func(ids []engine.ID) []engine.ID { return append(ids, ids...) }
		},
		"strange numbers are survived": func(b *bent) {
			b.record = func(_ *bent, rd engine.Reading) error {
				if rd.RIF == 1<<32-1 {
					return trap
				}
				return nil
			}
		},
		"the canonical spec makes the same guest": func(b *bent) { b.spec = func() string { return "prequal seed=8" } },
		"the arena holds what was asked for, or says 0": func(b *bent) {
			b.export = func(name string, args []uint64) int32 {
				if name == abi.FuncArena {
					return 1<<24 - 100
				}
				return obedient(name, args)
			}
		},
		"counts out of range are refused": func(b *bent) {
			b.export = func(name string, args []uint64) int32 {
				if name == abi.FuncDecide {
					return 0
				}
				return obedient(name, args)
			}
		},
		"a large fleet is served, or refused by name": func(b *bent) {
			b.set = func(b *bent, now engine.Instant, cs []engine.Candidate) error {
				if len(cs) > 1000 {
					return trap
				}
				return b.native.SetCandidates(now, cs)
			}
		},
		"memory and state do not grow with the calls": func(b *bent) {
			b.memory = func(b *bent) int { return b.count / 2000 }
		},
	}
}

// The page of proofs tells every law.
func TestEveryLawOfGuestsIsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	require.NoError(t, err)
	for _, law := range generalLaws() {
		assert.Contains(t, string(page), "| "+law.name+" |")
	}
}

// Each law notices the fault that is planted against it, and says so in a few calls.
func TestEachLawOfGuestsNoticesItsFault(t *testing.T) {
	planted := plantedFaults()
	for _, law := range generalLaws() {
		if law.name == "a spec is refused with a reason, or taken" {
			continue // a fault of starting: TestTheLawOfSpecsNoticesItsFault
		}
		t.Run(law.name, func(t *testing.T) {
			plant, ok := planted[law.name]
			require.True(t, ok, "no fault is planted against this law")
			k, err := newKit(func(spec string) (guest, error) {
				g, err := natives(spec)
				if err != nil {
					return nil, err
				}
				b := &bent{native: g.(native)}
				plant(b)
				return b, nil
			}, nil, Options{Spec: "prequal seed=3 min_pool=2"})
			require.NoError(t, err)
			res := k.judge(t.Context(), task{law, General, true})
			require.Equal(t, Fail, res.Verdict)
			assert.NotEmpty(t, res.Reason)
			if law.generated {
				assert.LessOrEqual(t, len(res.Calls), 12, "%s", res.Calls)
			}
			t.Log(res.Reason, res.Calls)
		})
	}
}

func TestTheLawOfSpecsNoticesItsFault(t *testing.T) {
	for name, start := range map[string]func(spec string) (guest, error){
		"no code":   func(string) (guest, error) { return nil, errors.New("no") },
		"no reason": func(string) (guest, error) { return nil, engine.ErrConfig },
		"taken, dead": func(string) (guest, error) {
			g, _ := natives("random")
			return &bent{native: g.(native), decide: refuse}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Error(t, specsRefused(&trial{ctx: context.Background(), start: start, spec: "random"}))
		})
	}
}

func refuse(*bent, *engine.Query, *engine.Decision) error { return engine.ErrOverflow }
