package sim

// Summary is a run in numbers.
type Summary struct {
	Spec     string
	At       int64 // instant of the summary, ns
	Totals   Totals
	P50, P90 int64 // latency over the whole run, ns; a timeout counts as its deadline
	P99      int64
	P999     int64
	Offered  uint64 // queries a second
	Served   uint64
	InFlight int
	Traffic  uint64 // hash of the traffic
	Hash     uint64 // hash of the run
	Replicas []ReplicaView
}

// Summary sums up the world so far.
func (w *World) Summary() Summary {
	var buf [4]int64
	q := w.Overall(buf[:0], 5000, 9000, 9900, 9990)
	s := Summary{
		Spec: w.spec, At: w.now, Totals: w.Totals, P50: q[0], P90: q[1], P99: q[2], P999: q[3],
		InFlight: w.inFlight, Traffic: w.TrafficHash(), Hash: w.hash, Replicas: w.Replicas(nil),
	}
	if ms := uint64(w.now / Millisecond); ms > 0 {
		s.Offered = w.Totals.Arrivals * perMille / ms
		s.Served = w.Totals.Completed * perMille / ms
	}
	return s
}

// Compare runs one scenario under each spec, for a span of simulated time, and sums up.
func Compare(sc Scenario, span int64, mk Maker, specs ...string) ([]Summary, error) {
	out := make([]Summary, 0, len(specs))
	for _, spec := range specs {
		w, err := NewWorld(sc, spec, mk)
		if err != nil {
			return nil, err
		}
		err = w.Run(span)
		if err == nil {
			out = append(out, w.Summary())
		}
		w.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
