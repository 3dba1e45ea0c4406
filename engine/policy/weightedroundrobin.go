package policy

import (
	"math/bits"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// WeightedRoundRobinConfig is everything that can be set of [WeightedRoundRobin]. Start from
// [DefaultWeightedRoundRobin]: every zero means zero.
type WeightedRoundRobinConfig struct {
	Seed         uint64
	Blackout     engine.Duration // a replica reports for this long before its weight counts: 0 to 1h
	Expiration   engine.Duration // a weight not renewed for this long counts no more: 1us to 1h
	Update       engine.Duration // weights in force are renewed after this long: 100ms to 1h
	ErrorPenalty uint64          // times the error rate, added to utilization, in parts per 10,000: 0 to 1000
}

// DefaultWeightedRoundRobin is gRPC's setting.
func DefaultWeightedRoundRobin(seed uint64) WeightedRoundRobinConfig {
	return WeightedRoundRobinConfig{Seed: seed, Blackout: 10 * engine.Second, Expiration: 180 * engine.Second, Update: engine.Second, ErrorPenalty: probe.Unit}
}

func (c *WeightedRoundRobinConfig) validate() error {
	v := bounds{policy: "weighted_round_robin"}
	v.span("blackout_period", c.Blackout, 0, mostAge)
	v.span("weight_expiration_period", c.Expiration, leastAge, mostAge)
	v.span("weight_update_period", c.Update, engine.Second/10, mostAge)
	v.parts("error_utilization_penalty", c.ErrorPenalty, 0, 1000*probe.Unit)
	return v.err()
}

func (s *settings) weightedRoundRobin() WeightedRoundRobinConfig {
	c := DefaultWeightedRoundRobin(s.uint64("seed", 0))
	c.Blackout = s.duration("blackout_period", c.Blackout)
	c.Expiration = s.duration("weight_expiration_period", c.Expiration)
	c.Update = s.duration("weight_update_period", c.Update)
	c.ErrorPenalty = s.parts("error_utilization_penalty", c.ErrorPenalty)
	return c
}

// WeightedRoundRobin takes the open candidates in turn and serves each in a part of its turns,
// by the weight that its load reports give it: queries served per second over utilization,
// errors counting as utilization (gRFC A58).
//
// Cost O(1) expected: ten visits on average, or, where one report dwarfs all others and is cut, at
// most a thousand; and O(n) once in each weight_update_period and after a change. A candidate without a usable weight has the mean of the others; with
// fewer than two usable weights it is a plain rotation. There are no ties. Starts are drawn, so
// that clients do not march in step. It fails only as the engine does, when no candidate is open.
type WeightedRoundRobin struct {
	engine.Base
	c     WeightedRoundRobinConfig
	fixed []uint64
	turn  cursor
}

// Fixed words, after those of the cursor.
const (
	reportedWeighed = cursorWords + iota // 1 if the weights in force are of this fleet
	reportedAt                           // when they were put in force
	reportedFixed
)

// Words of a candidate. The part of a turn is in force in the high half and saved up in the low
// one: with a whole turn saved up it is served.
const (
	reportedWeight  = iota // as last reported, in millionths of a query per second at full utilization; 0 if none
	reportedSince          // first report without a gap
	reportedUpdated        // last report
	reportedTurn
	reportedWords
)

const (
	wholeTurn    = 1 << 30
	maxReported  = 1 << 56
	mostOfMean   = 10  // weights are cut to this many means, which bounds the visits
	leastOfMean  = 100 // and raised to one of so many parts of it, so that nobody falls silent
	saved        = 1<<32 - 1
	inForceShift = 32
)

// NewWeightedRoundRobin makes the policy, or says what of its setting is out of range: an
// [engine.ConfigError].
func NewWeightedRoundRobin(c WeightedRoundRobinConfig) (*WeightedRoundRobin, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &WeightedRoundRobin{c: c}, nil
}

// Name is "weighted_round_robin".
func (*WeightedRoundRobin) Name() string { return "weighted_round_robin" }

// Seed starts the draws that place the start.
func (p *WeightedRoundRobin) Seed() uint64 { return p.c.Seed }

// Spec is the canonical line.
func (p *WeightedRoundRobin) Spec() string {
	d := DefaultWeightedRoundRobin(p.c.Seed)
	l := newLine(p.Name()).seed(p.c.Seed)
	l.span("blackout_period", p.c.Blackout, d.Blackout)
	l.span("weight_expiration_period", p.c.Expiration, d.Expiration)
	l.span("weight_update_period", p.c.Update, d.Update)
	l.parts("error_utilization_penalty", p.c.ErrorPenalty, d.ErrorPenalty)
	return l.String()
}

// Layout asks for the cursor, the renewal and four words per candidate.
func (*WeightedRoundRobin) Layout() engine.Layout {
	return engine.Layout{Fixed: reportedFixed, PerSlot: reportedWords}
}

// Bind attaches the words.
func (p *WeightedRoundRobin) Bind(fixed []uint64, s *engine.Set, _ bool) {
	p.Set, p.fixed = s, fixed
	p.turn.bind(fixed[:cursorWords])
}

// Moved keeps the turn with the replica that served last.
func (p *WeightedRoundRobin) Moved(remap []int32) { p.turn.moved(remap) }

// Changed drops the reports of those that may not serve, for whom a new blackout begins when
// they may again, and has the next decision put weights in force.
func (p *WeightedRoundRobin) Changed() {
	s := p.Set
	for slot := range uint32(s.Len()) {
		if !s.IsEligible(slot) {
			clear(s.Words(slot)[:reportedTurn])
		}
	}
	p.fixed[reportedWeighed] = 0
	p.turn.changed()
}

// RecordLoad keeps the weight that a report gives. A report without queries or utilization says
// nothing and is passed over.
func (p *WeightedRoundRobin) RecordLoad(now engine.Instant, slot uint32, l engine.LoadReport) {
	weight := p.weight(l)
	if weight == 0 || !p.Set.IsEligible(slot) {
		return
	}
	w := p.Set.Words(slot)
	if w[reportedWeight] == 0 || passed(w[reportedUpdated], now, p.c.Expiration) {
		w[reportedSince] = uint64(now)
	}
	w[reportedWeight], w[reportedUpdated] = weight, uint64(now)
}

// weight is qps / (utilization + eps/qps * penalty), which is qps² / (utilization*qps +
// eps*penalty); the factor settles the units.
func (p *WeightedRoundRobin) weight(l engine.LoadReport) uint64 {
	if l.QPS == 0 || l.Utilization == 0 {
		return 0
	}
	qps, used, failed := uint64(l.QPS), uint64(min(l.Utilization, 1<<31)), uint64(min(l.EPS, l.QPS))
	high, low := bits.Mul64(qps*qps, 10_000_000)
	weight, _ := bits.Div64(high, low, used*qps+failed*p.c.ErrorPenalty)
	return max(1, weight)
}

// passed reports whether a span has gone by since an instant that is not after now.
func passed(since uint64, now engine.Instant, span engine.Duration) bool {
	return uint64(now)-since >= uint64(span)
}

// usable is a candidate's weight, or 0 while it has none that counts.
func (p *WeightedRoundRobin) usable(now engine.Instant, w []uint64) uint64 {
	if w[reportedWeight] == 0 || passed(w[reportedUpdated], now, p.c.Expiration) || !passed(w[reportedSince], now, p.c.Blackout) {
		return 0
	}
	return w[reportedWeight]
}

// weigh puts the weights of now in force: the largest is a whole turn. One usable weight is its
// own mean, so that with fewer than two all are whole.
func (p *WeightedRoundRobin) weigh(now engine.Instant) {
	s := p.Set
	known, high, low, carry, largest := uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)
	for _, slot := range s.EligibleSlots() {
		if weight := p.usable(now, s.Words(slot)); weight != 0 {
			known++
			low, carry = bits.Add64(low, weight, 0)
			high += carry
			largest = max(largest, weight)
		}
	}
	mean := uint64(1)
	if known > 0 {
		mean, _ = bits.Div64(high, low, known)
	}
	largest = min(max(1, largest), mostOfMean*mean)
	for _, slot := range s.EligibleSlots() {
		w := s.Words(slot)
		weight := p.usable(now, w)
		if weight == 0 {
			weight = mean
		}
		weight = min(max(weight, mean/leastOfMean), largest)
		high, low := bits.Mul64(weight, wholeTurn)
		low, carry := bits.Add64(low, largest/2, 0)
		part, _ := bits.Div64(high+carry, low, largest)
		if w[reportedTurn] == 0 { // a newcomer
			w[reportedTurn] = uint64(s.Draw(wholeTurn))
		}
		w[reportedTurn] = part<<inForceShift | w[reportedTurn]&saved
	}
	p.fixed[reportedWeighed], p.fixed[reportedAt] = 1, uint64(now)
}

// Decide visits the open candidates in turn until one has a whole turn saved up.
func (p *WeightedRoundRobin) Decide(now engine.Instant, _ engine.Key) error {
	s := p.Set
	if p.fixed[reportedWeighed] == 0 || passed(p.fixed[reportedAt], now, p.c.Update) {
		p.weigh(now)
	}
	tried := s.AnyTried()
	eligible := s.EligibleSlots()
	for i := p.turn.turn(s); ; {
		for range eligible {
			at, slot := i, eligible[i]
			if i++; i == len(eligible) {
				i = 0
			}
			if tried && !s.IsOpen(slot) {
				continue
			}
			w := &s.Words(slot)[reportedTurn]
			next := *w&saved + *w>>inForceShift
			if next >= wholeTurn {
				*w += *w>>inForceShift - wholeTurn
				s.Choose(p.turn.pass(s, at), engine.RegimeDirect)
				return nil
			}
			*w += *w >> inForceShift
		}
		p.leap()
	}
}

// leap saves up for all open candidates as many turns as pass before one of them is whole. After
// a round of visits that served nobody it takes their place: when those that a query avoids have
// most of the weight, hundreds of rounds would.
func (p *WeightedRoundRobin) leap() {
	s := p.Set
	least := uint64(wholeTurn)
	for _, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			least = min(least, visits(s.Words(slot)[reportedTurn])-1)
		}
	}
	for _, slot := range s.EligibleSlots() {
		if s.IsOpen(slot) {
			w := &s.Words(slot)[reportedTurn]
			*w += least * (*w >> inForceShift)
		}
	}
}

// visits is how many visits from now serve a candidate.
func visits(turn uint64) uint64 {
	part := turn >> inForceShift
	return (wholeTurn - turn&saved + part - 1) / part
}

// Valid checks the cursor, that weights in force are parts of a turn, and that no report is from
// the future or of a candidate that is not eligible.
func (p *WeightedRoundRobin) Valid() bool {
	s := p.Set
	weighed := p.fixed[reportedWeighed] == 1
	if !p.turn.valid() || p.fixed[reportedWeighed] > 1 || weighed && engine.Instant(p.fixed[reportedAt]) > s.Last() {
		return false
	}
	for slot := range uint32(s.Len()) {
		w := s.Words(slot)
		eligible, since, updated := s.IsEligible(slot), engine.Instant(w[reportedSince]), engine.Instant(w[reportedUpdated])
		part := w[reportedTurn] >> inForceShift
		switch {
		case w[reportedTurn]&saved >= wholeTurn || part > wholeTurn || part == 0 && w[reportedTurn] != 0,
			weighed && eligible && part == 0,
			w[reportedWeight] == 0 && w[reportedSince]|w[reportedUpdated] != 0,
			w[reportedWeight] != 0 && (!eligible || w[reportedWeight] > maxReported || since > updated || updated > s.Last()):
			return false
		}
	}
	return true
}

// Explain shows how many visits are to come before each open candidate is served.
func (p *WeightedRoundRobin) Explain(now engine.Instant, _ engine.Key, x *engine.Explanation) {
	s := p.Set
	known := 0
	if p.fixed[reportedWeighed] == 0 || passed(p.fixed[reportedAt], now, p.c.Update) {
		p.weigh(now)
	}
	first := p.turn.turn(s)
	x.Unit = "visits before its turn"
	eligible := s.EligibleSlots()
	for i := range eligible {
		slot := eligible[(first+i)%len(eligible)]
		w := s.Words(slot)
		if p.usable(engine.Instant(p.fixed[reportedAt]), w) != 0 {
			known++
		}
		if s.IsOpen(slot) {
			x.Weigh(s, slot, (visits(w[reportedTurn])-1)*uint64(s.Open())+uint64(len(x.Weighed)))
			x.Weighed[len(x.Weighed)-1].Weight = max(1, uint32(w[reportedTurn]>>inForceShift*probe.Unit/wholeTurn))
		}
	}
	if known < 2 {
		x.Because = "is next in a plain rotation: " + itoa(known) + " of " + itoa(len(eligible)) + " weights usable, and it takes two"
		return
	}
	x.Because = "is the next whose part of a turn has come to a whole one"
	x.Notes = append(x.Notes, itoa(known)+" of "+itoa(len(eligible))+" weights are reported and usable; the others have their mean", "weights are parts of 10,000 of the largest")
}
