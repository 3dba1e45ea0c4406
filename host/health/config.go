package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrConfig is a setting that cannot be used; its text names the setting, the value and the range.
var ErrConfig = errors.New("bad health setting")

// CheckFunc asks an endpoint whether it works; nil says that it does. It must return soon after
// its context ends, since it holds one of the checks that may run at once.
type CheckFunc func(ctx context.Context, name string) error

// Config chooses what a [Monitor] watches. A part that is nil is off; a field that is zero has the
// default written beside it. Shares are in percent.
type Config struct {
	Active    *Active
	Circuit   *Circuit
	Outlier   *Outlier
	SlowStart *SlowStart

	// WarmUp keeps endpoints out that come after the first set, for this long: 0 to 1 h, default 0.
	WarmUp time.Duration
	// Panic makes all endpoints eligible that no operator holds back, while fewer than this share of
	// them is fit: 1 to 100, default 50; negative for never.
	Panic int
	// Seed fixes all draws: the same seed, endpoints and instants give the same times.
	Seed uint64
	// Log hears of endpoints that begin to fail and that answer again; nil for nobody.
	Log *slog.Logger
}

// Active checks every endpoint at intervals.
type Active struct {
	Check       CheckFunc
	Interval    time.Duration // between checks: 10 ms to 1 h, default 5 s
	Confirm     time.Duration // between checks while results contradict what is believed: at most Interval, default Interval or 1 s
	Timeout     time.Duration // of one check: 1 ms to 1 min, default 1 s
	Jitter      int           // by how much intervals vary to either side: 1 to 50 %, default 10
	Healthy     int           // passed checks in a row that bring an endpoint back: 1 to 100, default 2; its first ever suffices alone
	Unhealthy   int           // failed checks in a row that take it out: 1 to 100, default 3
	Unproven    bool          // endpoints begin ineligible, until their first passed check
	Concurrency int           // checks that run at once: 1 to 10,000, default 256
}

// Circuit takes endpoints out whose queries fail, and lets trial queries find out when they work.
type Circuit struct {
	Consecutive int           // failures in a row that open it: 1 to 1,000,000, default 5; negative for never
	Ratio       int           // share of failures within Window that opens it: 1 to 100, default 50; negative for never
	Volume      int           // queries within Window below which Ratio says nothing: 1 to 1,000,000, default 20
	Window      time.Duration // 100 ms to 1 h, default 10 s
	Open        time.Duration // how long it stays open at first: 10 ms to 1 h, default 5 s; doubled each further time
	MaxOpen     time.Duration // and at most: Open to 24 h, default 5 min, or Open if that is more
	Jitter      int           // by how much it opens sooner, at random: 1 to 50 %, default 10
	Forgive     time.Duration // of good behaviour that undo one doubling: 100 ms to 24 h, default 1 min
	Trials      int           // trial queries at once: 1 to 1,000, default 1
	Successes   int           // trial queries that must succeed to close it: 1 to 1,000, default 2
}

// Outlier takes endpoints out whose queries fail more often than the fleet's do.
type Outlier struct {
	Interval   time.Duration // between looks: 100 ms to 1 h, default 10 s
	MinHosts   int           // endpoints with enough requests for a comparison: 3 to 1,000,000, default 5
	Requests   int           // what is enough, within Interval: 1 to 1,000,000, default 100
	Deviations int           // below the median, in robust standard deviations: 1 to 100, default 3
	Gap        int           // and at least: 1 to 100 percentage points, default 10
	MaxEjected int           // share of the fleet that may be out, rounded down, and never all: 1 to 100, default 50
	Time       time.Duration // out at first: 100 ms to 1 h, default 30 s; times the number of times
	MaxTime    time.Duration // and at most: Time to 24 h, default 5 min, or Time if that is more
}

// SlowStart gives endpoints that come into service less than their weight at first.
type SlowStart struct {
	Window     time.Duration // until it has all of it: 100 ms to 1 h, default 1 min
	Floor      int           // share it begins with: 1 to 100 %, default 10
	Aggression int           // 1 (a straight line, the default) to 4: the root of the elapsed share that counts
	Enough     int           // succeeded queries that end it early: 1 to 1,000,000, default 1,000; negative for never
}

// field is one setting, with its range.
type field struct {
	name        string
	value       any   // *int or *time.Duration
	unset       int64 // what zero stands for
	least, most int64
	negative    bool // negative turns it off
}

const (
	ms   = int64(time.Millisecond)
	sec  = int64(time.Second)
	hour = int64(time.Hour)
)

// filled returns the config with its defaults, or the first setting that is out of range. What it
// was made from stays as it is.
func (c Config) filled() (Config, error) {
	if c.Active != nil {
		if c.Active.Check == nil {
			return c, fmt.Errorf("%w: Active without Check: give the function that checks an endpoint", ErrConfig)
		}
		part := *c.Active
		c.Active = &part
	}
	if c.Circuit != nil {
		part := *c.Circuit
		c.Circuit = &part
	}
	if c.Outlier != nil {
		part := *c.Outlier
		c.Outlier = &part
	}
	if c.SlowStart != nil {
		part := *c.SlowStart
		c.SlowStart = &part
	}
	for _, fields := range []func() []field{c.fields, c.bounded} {
		for _, f := range fields() {
			if err := f.fill(); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// fields are the settings of the parts that are on.
func (c *Config) fields() []field {
	fields := []field{
		{name: "Panic", value: &c.Panic, unset: 50, least: 1, most: 100, negative: true},
		{name: "WarmUp", value: &c.WarmUp, least: 0, most: hour},
	}
	if a := c.Active; a != nil {
		fields = append(fields,
			field{name: "Active.Interval", value: &a.Interval, unset: 5 * sec, least: 10 * ms, most: hour},
			field{name: "Active.Timeout", value: &a.Timeout, unset: sec, least: ms, most: 60 * sec},
			field{name: "Active.Jitter", value: &a.Jitter, unset: 10, least: 1, most: 50},
			field{name: "Active.Healthy", value: &a.Healthy, unset: 2, least: 1, most: 100},
			field{name: "Active.Unhealthy", value: &a.Unhealthy, unset: 3, least: 1, most: 100},
			field{name: "Active.Concurrency", value: &a.Concurrency, unset: 256, least: 1, most: 10_000})
	}
	if k := c.Circuit; k != nil {
		fields = append(fields,
			field{name: "Circuit.Consecutive", value: &k.Consecutive, unset: 5, least: 1, most: 1e6, negative: true},
			field{name: "Circuit.Ratio", value: &k.Ratio, unset: 50, least: 1, most: 100, negative: true},
			field{name: "Circuit.Volume", value: &k.Volume, unset: 20, least: 1, most: 1e6},
			field{name: "Circuit.Window", value: &k.Window, unset: 10 * sec, least: 100 * ms, most: hour},
			field{name: "Circuit.Open", value: &k.Open, unset: 5 * sec, least: 10 * ms, most: hour},
			field{name: "Circuit.Jitter", value: &k.Jitter, unset: 10, least: 1, most: 50},
			field{name: "Circuit.Forgive", value: &k.Forgive, unset: 60 * sec, least: 100 * ms, most: 24 * hour},
			field{name: "Circuit.Trials", value: &k.Trials, unset: 1, least: 1, most: 1000},
			field{name: "Circuit.Successes", value: &k.Successes, unset: 2, least: 1, most: 1000})
	}
	if o := c.Outlier; o != nil {
		fields = append(fields,
			field{name: "Outlier.Interval", value: &o.Interval, unset: 10 * sec, least: 100 * ms, most: hour},
			field{name: "Outlier.MinHosts", value: &o.MinHosts, unset: 5, least: 3, most: 1e6},
			field{name: "Outlier.Requests", value: &o.Requests, unset: 100, least: 1, most: 1e6},
			field{name: "Outlier.Deviations", value: &o.Deviations, unset: 3, least: 1, most: 100},
			field{name: "Outlier.Gap", value: &o.Gap, unset: 10, least: 1, most: 100},
			field{name: "Outlier.MaxEjected", value: &o.MaxEjected, unset: 50, least: 1, most: 100},
			field{name: "Outlier.Time", value: &o.Time, unset: 30 * sec, least: 100 * ms, most: hour})
	}
	if s := c.SlowStart; s != nil {
		fields = append(fields,
			field{name: "SlowStart.Window", value: &s.Window, unset: 60 * sec, least: 100 * ms, most: hour},
			field{name: "SlowStart.Floor", value: &s.Floor, unset: 10, least: 1, most: 100},
			field{name: "SlowStart.Aggression", value: &s.Aggression, unset: 1, least: 1, most: 4},
			field{name: "SlowStart.Enough", value: &s.Enough, unset: 1000, least: 1, most: 1e6, negative: true})
	}
	return fields
}

// bounded are the settings whose range depends on another.
func (c *Config) bounded() (fields []field) {
	if a := c.Active; a != nil {
		fields = append(fields, field{name: "Active.Confirm", value: &a.Confirm, unset: min(sec, int64(a.Interval)), least: 10 * ms, most: int64(a.Interval)})
	}
	if k := c.Circuit; k != nil {
		fields = append(fields, field{name: "Circuit.MaxOpen", value: &k.MaxOpen, unset: max(300*sec, int64(k.Open)), least: int64(k.Open), most: 24 * hour})
	}
	if o := c.Outlier; o != nil {
		fields = append(fields, field{name: "Outlier.MaxTime", value: &o.MaxTime, unset: max(300*sec, int64(o.Time)), least: int64(o.Time), most: 24 * hour})
	}
	return fields
}

func (f field) fill() error {
	switch v := f.value.(type) {
	case *int:
		if *v == 0 {
			*v = int(f.unset)
		}
		if f.negative && *v < 0 {
			*v = 0 // off
		} else if int64(*v) < f.least || int64(*v) > f.most {
			return fmt.Errorf("%w: %s is %d: give %d to %d", ErrConfig, f.name, *v, f.least, f.most)
		}
	case *time.Duration:
		if *v == 0 {
			*v = time.Duration(f.unset)
		}
		if int64(*v) < f.least || int64(*v) > f.most {
			return fmt.Errorf("%w: %s is %v: give %v to %v", ErrConfig, f.name, *v, time.Duration(f.least), time.Duration(f.most))
		}
	}
	return nil
}
