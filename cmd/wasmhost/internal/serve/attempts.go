package serve

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host/lbhttp"
)

// Attempts is how often a request is sent. The YAML names are those of --config files.
type Attempts struct {
	Retries     int    `yaml:"retries" json:"retries"`           // of one request on other replicas; 0 for none
	RetryShare  int    `yaml:"retry_share" json:"retry_share"`   // percent of the requests that retries may be
	RetryLeast  int    `yaml:"retry_least" json:"retry_least"`   // retries a second that little traffic may have all the same
	RetryStatus []int  `yaml:"retry_status" json:"retry_status"` // answers that are retried, too, if the request is idempotent
	Hedge       string `yaml:"hedge" json:"hedge"`               // HedgeOff, hedge95th, or after how long one more attempt is made
	HedgeShare  int    `yaml:"hedge_share" json:"hedge_share"`   // percent of the requests that may be hedged
}

// HedgeOff is one attempt at a time; hedge95th waits as long as 95 of 100 requests do.
const (
	HedgeOff  = "off"
	hedge95th = "95p"
)

func attemptsDefaults() Attempts {
	return Attempts{
		Retries: lbhttp.DefaultRetries, RetryShare: lbhttp.DefaultRetryShare, RetryLeast: lbhttp.DefaultRetryLeast,
		RetryStatus: []int{}, Hedge: HedgeOff, HedgeShare: lbhttp.DefaultHedgeShare,
	}
}

const (
	leastHedge = time.Millisecond
	mostHedge  = time.Minute
)

// validate names the first setting that is out of range.
func (a Attempts) validate() error {
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"retries", a.Retries, 0, engine.MaxTried},
		{"retry_share", a.RetryShare, 0, 100},
		{"retry_least", a.RetryLeast, 0, 1_000_000},
		{"hedge_share", a.HedgeShare, 0, 100},
	} {
		if n.value < n.least || n.value > n.most {
			return setting.Errorf(n.name, "is %d: give %d to %d", n.value, n.least, n.most)
		}
	}
	for _, code := range a.RetryStatus {
		if code < 400 || code > 599 {
			return setting.Errorf("retry_status", "has %d: give statuses of 400 to 599, such as 502,503,504", code)
		}
	}
	if a.Hedge == HedgeOff || a.Hedge == hedge95th {
		return nil
	}
	if after, err := time.ParseDuration(a.Hedge); err != nil || after < leastHedge || after > mostHedge {
		return setting.Errorf("hedge", "is %q: give off, 95p, or a time of %s to %s", a.Hedge, leastHedge, mostHedge)
	}
	return nil
}

// options are the transport's. The settings are valid.
func (a Attempts) options() []lbhttp.Option {
	opts := []lbhttp.Option{
		lbhttp.WithRetries(a.Retries, nil), lbhttp.WithRetryBudget(a.RetryShare, a.RetryLeast), lbhttp.WithRetryStatus(a.RetryStatus...),
	}
	if a.Hedge == hedge95th {
		opts = append(opts, lbhttp.WithHedge(lbhttp.HedgeAt95th, a.HedgeShare))
	} else if after, err := time.ParseDuration(a.Hedge); err == nil {
		opts = append(opts, lbhttp.WithHedge(after, a.HedgeShare))
	}
	return opts
}

// attempts are the proxy's transport, and what it was told.
type attempts struct {
	settings  Attempts
	transport *lbhttp.Transport
}

// attemptsView is how often requests are sent, and were, of GET /pool.
type attemptsView struct {
	Attempts
	HedgeAfterMS   *float64 `json:"hedge_after_ms"` // null: not hedged, or too few requests to know
	Retried        int64    `json:"retried"`
	RetriesRefused int64    `json:"retries_refused"`
	HedgesWon      int64    `json:"hedges_won"`
	HedgesLost     int64    `json:"hedges_lost"`
	HedgesRefused  int64    `json:"hedges_refused"`
}

func (a *attempts) view() attemptsView {
	v := attemptsView{Attempts: a.settings}
	v.RetryStatus = append([]int{}, slices.Sorted(slices.Values(a.settings.RetryStatus))...)
	s := a.stats()
	v.Retried, v.RetriesRefused = s.Retries, s.RetriesRefused
	v.HedgesWon, v.HedgesLost, v.HedgesRefused = s.HedgesWon, s.HedgesLost, s.HedgesRefused
	if s.HedgeAfter > 0 {
		after := float64(s.HedgeAfter) / 1e6
		v.HedgeAfterMS = &after
	}
	return v
}

// stats are nothing before there is a proxy.
func (a *attempts) stats() (s lbhttp.Stats) {
	if a.transport != nil {
		s = a.transport.Stats()
	}
	return s
}

// attemptsCollector reads the transport's counts at each scrape.
type attemptsCollector struct{ a *attempts }

func (c attemptsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- retriesDesc
	ch <- hedgesDesc
}

func (c attemptsCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.a.stats()
	for _, m := range []struct {
		d      *prometheus.Desc
		result string
		n      int64
	}{
		{retriesDesc, "made", s.Retries},
		{retriesDesc, "refused", s.RetriesRefused},
		{hedgesDesc, "won", s.HedgesWon},
		{hedgesDesc, "lost", s.HedgesLost},
		{hedgesDesc, "refused", s.HedgesRefused},
	} {
		ch <- prometheus.MustNewConstMetric(m.d, prometheus.CounterValue, float64(m.n), m.result)
	}
}
