package host

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
)

// full is a disk with room for so many bytes.
type full struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.Len()+len(b) > f.room {
		return 0, errFull
	}
	return f.Buffer.Write(b)
}

func TestASinkGetsWhatIsSampledUntilItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &full{room: 30_000}
		rec := &Recorder{Sample: 4, Sink: sink}
		b := nativeOf(t, "prequal seed=3", WithRecorder(rec))
		traffic(t, b, 6000, func(int) {})
		synctest.Wait()
		assert.ErrorIs(t, rec.Stats().SinkError, errFull)
		assert.Positive(t, rec.Stats().SinkLost)
		segments, met := replayAll(t, sink.Bytes())
		assert.Positive(t, met)
		for i, s := range segments {
			assert.EqualValues(t, 4*i, s.Number)
		}
		assert.NotZero(t, rec.Stats().Kept, "what is kept in memory goes on")
	})
}

// hanging is a disk that answers when it is let.
type hanging struct {
	bytes.Buffer
	let chan struct{}
}

func (h *hanging) Write(b []byte) (int, error) {
	<-h.let
	return h.Buffer.Write(b)
}

// While its sink hangs a recorder neither holds up decisions nor grows; what the sink gets at last are whole segments, in order.
func TestASinkThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &hanging{let: make(chan struct{})}
		rec := &Recorder{Sink: sink, MaxBytes: 40_000}
		b := nativeOf(t, "prequal seed=3", WithRecorder(rec))
		second := func() {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			time.Sleep(time.Second)
		}
		for range 300 {
			began := time.Now()
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			assert.Zero(t, time.Since(began))
			second()
		}
		rec.mu.Lock()
		assert.LessOrEqual(t, rec.outbox.bytes, 40_000)
		rec.mu.Unlock()
		hung := rec.Stats()
		require.Positive(t, hung.SinkLost)
		assert.NoError(t, hung.SinkError)
		assert.Zero(t, sink.Len())
		close(sink.let)
		synctest.Wait()
		for range 100 {
			second()
		}
		assert.Equal(t, hung.SinkLost, rec.Stats().SinkLost, "it keeps up again")
		require.NoError(t, b.Close(ctx))
		segments, _ := replayAll(t, sink.Bytes())
		st := rec.Stats()
		assert.EqualValues(t, st.Segments, uint64(len(segments))+st.SinkLost)
		last := int64(-1)
		for _, s := range segments {
			assert.Greater(t, int64(s.Number), last)
			last = int64(s.Number)
		}
		assert.EqualValues(t, st.Segments-1, last, "the last one, which Close ended")
	})
}

// slow is a disk that takes a second for each write.
type slow struct{ bytes.Buffer }

func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Buffer.Write(b)
}

func TestCloseWaitsForTheSinkButNotForEver(t *testing.T) {
	play := func(t *testing.T, rec *Recorder) (took time.Duration, err error) {
		b := nativeOf(t, "prequal seed=3", WithRecorder(rec), WithShards(1))
		for range 3 {
			decide(t, b, Query{}).Done(engine.OutcomeSuccess)
			require.NoError(t, b.Dump(io.Discard, 0)) // ends the segment
		}
		began := time.Now()
		err = b.Close(ctx)
		return time.Since(began), err
	}
	synctest.Test(t, func(t *testing.T) {
		sink := &slow{}
		took, err := play(t, &Recorder{Sink: sink})
		require.NoError(t, err)
		assert.Equal(t, 4*time.Second, took, "the first bytes and three segments")
		segments, _ := replayAll(t, sink.Bytes())
		assert.Len(t, segments, 3)
	})
	synctest.Test(t, func(t *testing.T) {
		sink := &hanging{let: make(chan struct{})}
		rec := &Recorder{Sink: sink}
		took, err := play(t, rec)
		assert.ErrorContains(t, err, "the recorder's sink hangs: 3 segments were not written within 5s")
		assert.Equal(t, sinkPatience, took)
		assert.EqualValues(t, 2, rec.Stats().SinkLost, "and one is in its hands")
		took, err = play(t, rec)
		assert.ErrorContains(t, err, "4 segments", "another balancer finds the sink as it is")
		assert.Equal(t, sinkPatience, took)
		close(sink.let)
		synctest.Wait()
		segments, _ := replayAll(t, sink.Bytes())
		assert.Len(t, segments, 1, "never two writes at once")
	})
}
