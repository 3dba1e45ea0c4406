package sim

import "testing"

func BenchmarkWorld(b *testing.B) {
	sc := Weather()
	w, err := NewWorld(sc, "prequal", native)
	if err != nil {
		b.Fatal(err)
	}
	w.Run(10 * Second)
	was := w.Totals
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.Run(w.now + 100*Millisecond)
	}
	n := (w.Totals.Arrivals-was.Arrivals)*4 + (w.Totals.ProbesSent-was.ProbesSent)*2
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mev/s")
}
