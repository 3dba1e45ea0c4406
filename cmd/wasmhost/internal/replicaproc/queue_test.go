package replicaproc

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{slots: 1}
		require.NoError(t, q.acquire(t.Context()))
		order := make(chan int, 5)
		for i := range 5 {
			go func() {
				if q.acquire(context.Background()) == nil {
					order <- i
					q.release()
				}
			}()
			synctest.Wait()
		}
		held, waiting := q.sizes()
		require.Equal(t, []int{1, 5}, []int{held, waiting})
		q.release()
		for i := range 5 {
			require.Equal(t, i, <-order)
		}
	})
}

func TestQueueForgetsThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{slots: 1}
		require.NoError(t, q.acquire(context.Background()))
		ctx, cancel := context.WithCancel(context.Background())
		left := make(chan error, 1)
		go func() { left <- q.acquire(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		q.release()
		held, waiting := q.sizes()
		require.Equal(t, []int{0, 0}, []int{held, waiting})
		require.NoError(t, q.acquire(context.Background()), "the slot is free again")
	})
}

// TestQueueNeverLeaksASlot races turns against cancellations.
func TestQueueNeverLeaksASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{slots: 3}
		for i := range 500 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%7)*time.Millisecond)
				defer cancel()
				if q.acquire(ctx) == nil {
					time.Sleep(time.Millisecond)
					q.release()
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		held, waiting := q.sizes()
		require.Equal(t, []int{0, 0}, []int{held, waiting})
	})
}

func TestQueueResizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{slots: 1}
		for range 4 {
			go func() {
				if q.acquire(context.Background()) == nil {
					time.Sleep(time.Second)
					q.release()
				}
			}()
		}
		synctest.Wait()
		q.resize(3)
		held, waiting := q.sizes()
		require.Equal(t, []int{3, 1}, []int{held, waiting})
		q.resize(1)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		held, waiting = q.sizes()
		require.Equal(t, []int{1, 0}, []int{held, waiting})
		time.Sleep(time.Second)
	})
}

func TestNeighbourKeepsItsShare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := Defaults()
	s.SlowShare, s.SlowSpell = 0.2, Duration(time.Second)
	var n neighbour
	now, noisy, turns, last := time.Unix(0, 0), 0, 0, false
	const steps = 400_000 // ten milliseconds each: about 800 spells, so the share deviates by about 0.008
	for range steps {
		now = now.Add(10 * time.Millisecond)
		is := n.at(now, s, r)
		if is {
			noisy++
		}
		if is != last {
			turns++
		}
		last = is
	}
	require.InDelta(t, 0.2, float64(noisy)/steps, 0.05)
	require.InDelta(t, 1600, turns, 300, "a spell lasts a second in the mean")

	s.SlowShare = 1
	require.True(t, n.at(now, s, r))
	s.SlowShare = 0
	require.False(t, n.at(now, s, r))
}
