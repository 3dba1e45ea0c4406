package replicaproc

import (
	"context"
	"sync"
)

// queue lets a number of holders in at a time; the others wait in order of arrival. The number may change.
type queue struct {
	mu      sync.Mutex
	slots   int
	held    int
	waiters []chan struct{}
}

// acquire waits for a slot. When ctx ends first, the place in the queue is given up.
func (q *queue) acquire(ctx context.Context) error {
	q.mu.Lock()
	if q.held < q.slots && len(q.waiters) == 0 {
		q.held++
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.waiters = append(q.waiters, turn)
	q.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiters {
		if w == turn {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			return ctx.Err()
		}
	}
	// The turn came while ctx ended: pass it on.
	q.held--
	q.admit()
	return ctx.Err()
}

func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held--
	q.admit()
}

// resize changes the number of slots; holders above it finish.
func (q *queue) resize(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slots = slots
	q.admit()
}

// admit gives free slots to those who waited longest. The caller holds the lock.
func (q *queue) admit() {
	for q.held < q.slots && len(q.waiters) > 0 {
		q.held++
		close(q.waiters[0])
		q.waiters = q.waiters[1:]
	}
}

// sizes tells how many hold a slot and how many wait for one.
func (q *queue) sizes() (held, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held, len(q.waiters)
}
