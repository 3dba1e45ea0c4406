package showcase

import (
	"encoding/binary"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// The stream's binary messages, little-endian. web/static/frame.js is the decoder; the golden
// bytes in testdata hold the two together.
//
//	header, 32 B    magic "PQ", version u8, type u8 (1 frame, 2 history), seq u32, simulated
//	                time us u64, replicas u16, worlds u8, flags u8 (1 paused, 2 running ahead),
//	                wall clock us u64, pace u16 (thousandths of the asked speed), clients u16
//
// A frame then holds, in this order:
//
//	world, each     totals u32 x 10: arrivals, direct, cold, hot, fallback, errors, completed,
//	                probes sent, probes lost, in flight; latency p50 p90 p99 p99.9 u16 in
//	                0.1 ms; threshold u16; flags u16 (1 the policy keeps a pool); offered and
//	                served u32 a second; traffic hash u32 (its low half)              = 64 B
//	  replica, each RIF u16, latency estimate u16 in 0.1 ms, neighbour u8 (0 or 255), state u8
//	                (0 up, 1 draining, 2 dead), utilisation u8 (percent of the allocation, 255
//	                and above cut), flags u8 (1 old machine)                          =  8 B
//	  dots          queries represented u32, dots n u16, errors represented u16, then n times
//	                client u8, kind u8 (sim.Kind), replica u16, offset in the tick u8 (256ths),
//	                service bucket u8 (8 ms of work)                                  =  6 B
//	decision        serial u32, instant us u64, client u16, replica u16, threshold u16, RIF
//	                u16, latency u16, age u16 in ms, regime u8, cause u8, world u8, flags u8 (1
//	                held), offered u8, cold u8, hot u8, rows u8                       = 32 B
//	  row, each     replica u16, RIF u16, RIF as reported u16, latency u16, age u16 in ms, uses
//	                left u8, verdict u8 (Verdict)                                     = 12 B
//	column          index u32, then for each world p50 p99 u16 in 0.1 ms, errors u16,
//	                threshold u16, and the mean RIF of each replica u8
//	texts           the decision in words, the comparison in words: each length u16, UTF-8
//
// A history holds columns n u16, 2 spare, and n columns, oldest first.
//
// Totals count from the start, so that a frame which is skipped loses nothing. In 16-bit
// fields 65535 is the value "none": no threshold, an unknown latency, a latency at or beyond
// the deadline; greater numbers are cut to 65534.
const (
	frameVersion = 1
	typeFrame    = 1
	typeHistory  = 2
	headerSize   = 32
	worldSize    = 64
	rowSize      = 12
	none         = 0xFFFF
)

// Flags of the header.
const (
	flagPaused = 1 << iota
	flagAhead
)

// Most dots of each sort that one world puts into a frame. At 30 frames a second a query flies
// 0.54 s, a cross 0.9 s and a probe 0.42 s on the page, so two worlds keep it within its cap of
// 900 moving things even when both fail.
const (
	maxDots, maxErrors, maxProbes = 15, 6, 3
)

// Frame is one instant of a room.
type Frame struct {
	Seq      uint32
	Sim      int64 // ns
	Wall     int64 // us since 1970
	Flags    uint8
	Pace     int // thousandths of the asked speed
	Clients  int
	Worlds   []WorldFrame
	Decision DecisionFrame
	Column   Column
	Why      string
	Verdict  string
}

// WorldFrame is one fleet in a frame. Latencies are in ns; -1 is at or beyond the deadline.
type WorldFrame struct {
	Totals    sim.Totals
	InFlight  int
	Quantiles [4]int64
	Threshold uint32
	Pool      bool
	Offered   int
	Served    int
	Traffic   uint64
	Replicas  []sim.ReplicaView
	Use       []uint8 // percent of the allocation, of each replica
	Queries   int     // that the dots stand for
	Failures  int     // that the crosses stand for
	Dots      []sim.Dot
	From      int64 // start of the tick, ns
}

// Append encodes a frame.
func (f *Frame) Append(b []byte) []byte {
	replicas := 0
	if len(f.Worlds) > 0 {
		replicas = len(f.Worlds[0].Replicas)
	}
	b = header(b, typeFrame, f, replicas)
	for i := range f.Worlds {
		b = f.Worlds[i].append(b, f.Sim)
	}
	b = f.Decision.append(b)
	b = f.Column.append(b)
	for _, s := range []string{f.Why, f.Verdict} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

func header(b []byte, kind byte, f *Frame, replicas int) []byte {
	le := binary.LittleEndian
	b = append(b, 'P', 'Q', frameVersion, kind)
	b = le.AppendUint32(b, f.Seq)
	b = le.AppendUint64(b, uint64(f.Sim/1000))
	b = le.AppendUint16(b, uint16(replicas))
	b = append(b, byte(len(f.Worlds)), f.Flags)
	b = le.AppendUint64(b, uint64(f.Wall))
	b = le.AppendUint16(b, u16(int64(f.Pace)))
	return le.AppendUint16(b, uint16(f.Clients))
}

func (w *WorldFrame) append(b []byte, now int64) []byte {
	le := binary.LittleEndian
	t := &w.Totals
	for _, v := range [...]uint64{t.Arrivals, t.ByRegime[0], t.ByRegime[1], t.ByRegime[2], t.ByRegime[3],
		t.Errors, t.Completed, t.ProbesSent, t.ProbesLost, uint64(w.InFlight)} {
		b = le.AppendUint32(b, uint32(v))
	}
	for _, q := range w.Quantiles {
		b = le.AppendUint16(b, tenths(q))
	}
	b = le.AppendUint16(b, threshold16(w.Threshold))
	flags := uint16(0)
	if w.Pool {
		flags = 1
	}
	b = le.AppendUint16(b, flags)
	b = le.AppendUint32(b, uint32(w.Offered))
	b = le.AppendUint32(b, uint32(w.Served))
	b = le.AppendUint32(b, uint32(w.Traffic))
	for i, r := range w.Replicas {
		b = le.AppendUint16(b, u16(int64(r.RIF)))
		b = le.AppendUint16(b, tenths(r.Latency))
		neighbour, old := byte(0), byte(0)
		if r.Busy {
			neighbour = 255
		}
		if r.Old {
			old = 1
		}
		b = append(b, neighbour, byte(r.State), w.Use[i], old)
	}
	b = le.AppendUint32(b, uint32(w.Queries))
	b = le.AppendUint16(b, uint16(len(w.Dots)))
	b = le.AppendUint16(b, u16(int64(w.Failures)))
	span := max(1, now-w.From)
	for _, d := range w.Dots {
		b = append(b, byte(d.Client), byte(d.Kind))
		b = le.AppendUint16(b, uint16(d.Replica))
		b = append(b, byte(min(255, max(0, d.At-w.From)*256/span)), byte(min(255, d.Work/(8*sim.Millisecond))))
	}
	return b
}

// u16 cuts a count to what a field holds.
func u16(v int64) uint16 { return uint16(min(max(v, 0), none-1)) }

// tenths is a latency in 0.1 ms; negative is none.
func tenths(ns int64) uint16 {
	if ns < 0 {
		return none
	}
	return u16(ns / (sim.Millisecond / 10))
}

func threshold16(t uint32) uint16 {
	if t == ^uint32(0) {
		return none
	}
	return u16(int64(t))
}
