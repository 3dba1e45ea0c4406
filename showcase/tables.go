package showcase

import (
	"context"
	"sync"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// tables runs a setup to the end for the page that works without JavaScript, one run at a time,
// and keeps the last few.
type tables struct {
	span  int64
	maker sim.Maker
	turn  chan struct{}
	mu    sync.Mutex
	kept  map[string][]sim.Summary
	order []string
}

const tablesKept = 32

func newTables(span int64, mk sim.Maker) *tables {
	return &tables{span: span, maker: mk, turn: make(chan struct{}, 1), kept: make(map[string][]sim.Summary)}
}

func (t *tables) find(key string) []sim.Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept[key]
}

// get runs a setup, or finds its run. It waits its turn until ctx ends.
func (t *tables) get(ctx context.Context, s Setup) ([]sim.Summary, error) {
	s.Speed, s.Start, s.Focus, s.Room = unit, 0, 0, "" // they change nothing in the numbers
	key := s.Query()
	if got := t.find(key); got != nil {
		return got, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if got := t.find(key); got != nil {
		return got, nil
	}
	a, b, err := s.Specs()
	if err != nil {
		return nil, err
	}
	got, err := sim.Compare(s.Situation(), t.span, t.maker, a, b)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept[key] = got
	if t.order = append(t.order, key); len(t.order) > tablesKept {
		delete(t.kept, t.order[0])
		t.order = t.order[1:]
	}
	return got, nil
}
