package policy

import (
	"slices"
	"strconv"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/probe"
)

// LocalityConfig is everything that can be set of [Locality].
type LocalityConfig struct {
	GroupConfig
	Zone    string    // the caller's own locality, to be preferred; empty prefers none
	Callers []Callers // where the callers are, Zone included; empty: as many in each locality
}

// Callers is how many of a service's callers are in a locality, relative to the others.
type Callers struct {
	Zone  string
	Share uint32 // 1 to 1,000,000
}

const (
	mostCallers = 1000000
	mostZones   = 64
)

// NewLocality makes the policy, or an [engine.ConfigError].
func NewLocality(c LocalityConfig) (*Locality, error) {
	if err := c.validate("locality"); err != nil {
		return nil, err
	}
	if c.Zone != "" && !isZone(c.Zone) {
		return nil, badLocality("zone", c.Zone, zoneWanted)
	}
	common := gcd(c.Overprovision, probe.Unit)
	p := &Locality{
		g: groups{c: c.GroupConfig, byLocality: true}, zone: c.Zone, home: engine.LocalityOf(c.Zone),
		load: c.Overprovision / common, full: probe.Unit / common,
	}
	if len(c.Callers) > mostZones {
		return nil, badLocality("callers", itoa(len(c.Callers))+" zones", "at most "+itoa(mostZones))
	}
	for _, x := range c.Callers {
		switch {
		case !isZone(x.Zone):
			return nil, badLocality("callers", x.Zone, zoneWanted)
		case x.Share < 1 || x.Share > mostCallers:
			return nil, badLocality("callers", x.Zone+":"+utoa(uint64(x.Share)), "1 to "+itoa(mostCallers)+" callers")
		case p.callersIn(engine.LocalityOf(x.Zone)) != 0:
			return nil, badLocality("callers", x.Zone, "each zone once")
		}
		p.callers, p.people = append(p.callers, x), p.people+uint64(x.Share)
		p.numbers = append(p.numbers, engine.LocalityOf(x.Zone))
	}
	if len(p.callers) > 0 && p.callersIn(p.home) == 0 {
		return nil, badLocality("callers", callersText(p.callers), "the caller's own zone among them")
	}
	p.text = callersText(p.callers)
	return p, nil
}

// Copied into its callers it would add 7 KB to the module.
//
//go:noinline
func badLocality(key, value, want string) error {
	return &engine.ConfigError{Policy: "locality", Key: key, Value: clip(value), Reason: "want " + want}
}

const zoneWanted = "a name of 1 to 128 bytes without spaces, commas and colons"

func isZone(name string) bool {
	return name != "" && len(name) <= 128 && !slices.ContainsFunc([]byte(name), func(b byte) bool {
		return b <= ' ' || b == 0x7f || b == ',' || b == ':'
	})
}

// callersIn is the callers' share of a locality, 0 if it is not listed.
func (p *Locality) callersIn(locality uint32) uint64 {
	if i := slices.Index(p.numbers, locality); i >= 0 {
		return uint64(p.callers[i].Share)
	}
	return 0
}

// callersText is the list in the order of names: the canonical form.
func callersText(callers []Callers) (text string) {
	last := ""
	for range callers {
		next := -1
		for i, x := range callers {
			if x.Zone > last && (next < 0 || x.Zone < callers[next].Zone) {
				next = i
			}
		}
		if text != "" {
			text += ","
		}
		last = callers[next].Zone
		text += last + ":" + utoa(uint64(callers[next].Share))
	}
	return text
}

func (s *settings) locality() LocalityConfig {
	c := LocalityConfig{GroupConfig: s.groups()}
	c.Zone, _ = s.text("zone")
	list, given := s.text("callers")
	for given {
		item := list
		if comma := slices.Index([]byte(list), ','); comma >= 0 {
			item, list = list[:comma], list[comma+1:]
		} else {
			given = false
		}
		colon := max(0, slices.Index([]byte(item), ':'))
		n, err := strconv.ParseUint(item[min(colon+1, len(item)):], 10, 32)
		if err != nil {
			s.fail("callers", item, "zone:callers, as in eu-a:3,eu-b:1")
			break
		}
		c.Callers = append(c.Callers, Callers{item[:colon], uint32(n)})
	}
	return c
}
