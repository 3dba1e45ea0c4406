package showcase

import "time"

// paceMeter measures how fast simulated time really runs: a room whose steps take longer than
// a frame slows simulated time down and skips nothing, and the page says so.
type paceMeter struct {
	since time.Time
	asked float64 // seconds of simulated time since then, at the asked speed one
	last  int
}

// note counts a step, and closes a measurement once a second.
func (p *paceMeter) note(now time.Time, span int64, speed int) {
	if p.since.IsZero() {
		p.since = now
		return
	}
	p.asked += float64(span) / 1e9 * unit / float64(speed)
	if wall := now.Sub(p.since).Seconds(); wall >= 1 {
		p.last = int(min(1, p.asked/wall)*1000 + 0.5)
		p.since, p.asked = now, 0
	}
}

// rest forgets a measurement that a pause has cut short.
func (p *paceMeter) rest() { p.since, p.asked = time.Time{}, 0 }

// value is the last measurement in thousandths; at first it is 1000.
func (p *paceMeter) value() int {
	if p.last == 0 {
		return 1000
	}
	return p.last
}
