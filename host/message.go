package host

import "github.com/headroom-lb/headroom/engine"

// message is what a machine is told and does not answer. It is data, where a closure would be an
// allocation for each: who is told may be one machine or two, now or later.
type message struct {
	kind    messageKind
	at      engine.Instant
	id      engine.ID
	status  engine.Status
	load    engine.LoadReport
	asked   engine.Instant
	reading engine.Reading
}

type messageKind uint8

const (
	tellStatus messageKind = iota
	tellReading
	tellLoad
	tellForget
	tellProbes // that it was asked who is due: only a machine beside hears it so
)

func (m message) tell(to engine.Machine) (err error) {
	switch m.kind {
	case tellStatus:
		return to.SetStatus(m.at, m.id, m.status)
	case tellReading:
		_, err = to.Record(m.at, m.id, m.reading)
	case tellLoad:
		return to.RecordLoad(m.at, m.id, m.load)
	case tellForget:
		return to.Forget(m.at, m.id, m.asked)
	case tellProbes:
		_, err = to.Probes(m.at, nil)
	}
	return err
}
