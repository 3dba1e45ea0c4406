package showcase

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func next(t *testing.T, m *mailbox) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	msg, err := m.next(ctx)
	return string(msg.data), err
}

func TestMailboxKeepsTheNewestFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailbox()
		m.offer([]byte("1"))
		m.offer([]byte("2"))
		m.put(message{data: []byte("first")})
		for _, want := range []string{"first", "2"} {
			got, err := next(t, m)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
		_, err := next(t, m)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestMailboxWaitsForAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailbox()
		send := func(s string) (string, error) {
			m.offer([]byte(s))
			return next(t, m)
		}
		for _, s := range []string{"1", "2"} {
			got, err := send(s)
			require.NoError(t, err)
			assert.Equal(t, s, got)
		}
		_, err := send("3")
		require.ErrorIs(t, err, context.DeadlineExceeded, "two frames are on their way")
		m.ack(7) // more than was sent: no one can have taken them
		_, err = send("4")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		m.ack(1)
		got, err := send("5")
		require.NoError(t, err)
		assert.Equal(t, "5", got, "the newest frame, not the ones that waited")
		m.put(message{data: []byte("text")}) // text does not wait
		got, err = next(t, m)
		require.NoError(t, err)
		assert.Equal(t, "text", got)
	})
}

func TestMailboxOfOneWhoDoesNotRead(t *testing.T) {
	m := newMailbox()
	for range maxQueued + 1 {
		m.put(message{data: []byte("x")})
	}
	_, err := next(t, m)
	assert.ErrorIs(t, err, errTooSlow)
}

func TestPace(t *testing.T) {
	var p paceMeter
	now := time.Now()
	for range 61 { // a room that needs two frames' time for each frame
		p.note(now, int64(frameSpan)/2, unit/2)
		now = now.Add(2 * frameSpan)
	}
	assert.InDelta(t, 500, p.value(), 10)
	p.rest()
	assert.InDelta(t, 500, p.value(), 10)
	assert.Equal(t, 1000, (&paceMeter{}).value())
}

func TestSocketsAreBounded(t *testing.T) {
	s := sockets{most: 3, mostFrom: 2, byAddress: map[string]int{}}
	first, ok := s.take("10.0.0.1:1")
	require.True(t, ok)
	_, ok = s.take("10.0.0.1:2")
	require.True(t, ok)
	_, ok = s.take("10.0.0.1:3")
	assert.False(t, ok, "two from one address")
	_, ok = s.take("10.0.0.2:1")
	require.True(t, ok)
	_, ok = s.take("10.0.0.3:1")
	assert.False(t, ok, "three in all")
	first()
	_, ok = s.take("10.0.0.1:4")
	assert.True(t, ok)
}
