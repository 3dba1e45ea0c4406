package showcase

import (
	"encoding/binary"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// Charts have one column for each columnSpan of simulated time.
const (
	columnSpan  = 250 * sim.Millisecond
	columnsKept = 240
)

// Column is one column of the charts.
type Column struct {
	Index  uint32
	Worlds []WorldColumn
}

// WorldColumn is one fleet in a column.
type WorldColumn struct {
	P50, P99  int64 // ns over the last few seconds; -1 is at or beyond the deadline
	Errors    uint64
	Threshold uint32
	RIF       []uint8 // mean of each replica over the column
}

func (c *Column) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, c.Index)
	for i := range c.Worlds {
		w := &c.Worlds[i]
		b = le.AppendUint16(b, tenths(w.P50))
		b = le.AppendUint16(b, tenths(w.P99))
		b = le.AppendUint16(b, u16(int64(w.Errors)))
		b = le.AppendUint16(b, threshold16(w.Threshold))
		b = append(b, w.RIF...)
	}
	return b
}

// history encodes the columns kept, so that charts are full from the first moment.
func history(f *Frame, columns []Column) []byte {
	replicas := 0
	if len(f.Worlds) > 0 {
		replicas = len(f.Worlds[0].Replicas)
	}
	b := header(nil, typeHistory, f, replicas)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(columns)))
	b = append(b, 0, 0)
	for i := range columns {
		b = columns[i].append(b)
	}
	return b
}
