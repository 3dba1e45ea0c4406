package loadgen

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Result is how one query ended.
type Result uint8

const (
	OK     Result = iota
	Failed        // answered with an error
	Lost          // not answered at all
)

// Report is what a run measured. Latencies are in microseconds, from the intended instant, of answered queries.
type Report struct {
	Sent, OK, Failed, Lost int64
	Latency                *hdr.Histogram
	Lag                    *hdr.Histogram // how late the generator itself was
	Elapsed                time.Duration  // until the last answer
}

// NewReport is an empty report, ready to merge others into.
func NewReport() *Report {
	return &Report{Latency: hdr.New(1, 120e6, 3), Lag: hdr.New(1, 120e6, 3)}
}

// Merge adds another report to this one.
func (r *Report) Merge(o *Report) {
	r.Sent, r.OK, r.Failed, r.Lost = r.Sent+o.Sent, r.OK+o.OK, r.Failed+o.Failed, r.Lost+o.Lost
	r.Latency.Merge(o.Latency)
	r.Lag.Merge(o.Lag)
	r.Elapsed += o.Elapsed
}

// Progress is what can be watched while a run goes on.
type Progress struct{ Sent, Done atomic.Int64 }

// Run sends the plan and waits for every answer. At most limit queries are open at once: what would exceed it is
// lost, so that an overloaded system cannot take the generator's memory with it. When ctx ends, nothing more is
// sent, and what is open has a context that ended.
func Run(ctx context.Context, plan []Arrival, limit int, p *Progress, send func(context.Context, Arrival) Result) *Report {
	rep := NewReport()
	var mu sync.Mutex // guards rep: answers come from many goroutines
	var wg sync.WaitGroup
	slots := make(chan struct{}, limit)
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C

	for _, a := range plan {
		if wait := time.Until(start.Add(a.At)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
		lag := time.Since(start.Add(a.At))
		p.Sent.Add(1)
		mu.Lock()
		rep.Sent++
		record(rep.Lag, lag)
		mu.Unlock()
		select {
		case slots <- struct{}{}:
		default:
			mu.Lock()
			rep.Lost++
			mu.Unlock()
			continue
		}
		wg.Go(func() {
			res := send(ctx, a)
			took := time.Since(start.Add(a.At))
			<-slots
			p.Done.Add(1)
			mu.Lock()
			defer mu.Unlock()
			switch res {
			case OK:
				rep.OK++
			case Failed:
				rep.Failed++
			case Lost:
				rep.Lost++
				return
			}
			record(rep.Latency, took)
		})
	}
	wg.Wait()
	rep.Elapsed = time.Since(start)
	return rep
}

// record adds a duration in whole microseconds; the histogram's ends stand for what lies beyond them.
func record(h *hdr.Histogram, d time.Duration) {
	us := min(max(d.Microseconds(), h.LowestTrackableValue()), h.HighestTrackableValue())
	// The value is inside the range, which is the only reason for an error.
	_ = h.RecordValue(us)
}
