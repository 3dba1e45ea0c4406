package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
)

func TestAddresses(t *testing.T) {
	s := serve(t,
		"Www.Test. 50 IN CNAME edge.test.", "edge.test. 20 IN CNAME pop.test.",
		"pop.test. 90 IN A 10.0.0.2", "pop.test. 90 IN A 10.0.0.1", "pop.test. 90 IN A 10.0.0.1", "pop.test. 30 IN AAAA fd00::1")
	f := lookAt(t, Source{Name: "wWw.test", Port: 80, Scheme: "http"}, s.addr).look(t.Context())
	require.NoError(t, f.failed)
	require.NoError(t, f.negative)
	assert.ElementsMatch(t, []host.Endpoint{
		{Name: "10.0.0.1:80", Addr: "http://10.0.0.1:80"}, {Name: "10.0.0.2:80", Addr: "http://10.0.0.2:80"},
	}, f.endpoints)
	assert.Equal(t, 20*time.Second, f.ttl, "the alias expires first")
	f = lookAt(t, Source{Name: "www.test", Port: 80, Network: "ip6"}, s.addr).look(t.Context())
	assert.Equal(t, []string{"[fd00::1]:80"}, namesOf(f))
	f = lookAt(t, Source{Name: "www.test", Port: 80, Network: "ip"}, s.addr).look(t.Context())
	assert.Len(t, f.endpoints, 3)
}

// TestManyAddresses is more than a datagram holds: the answer comes over TCP.
func TestManyAddresses(t *testing.T) {
	var records []string
	for i := range 500 {
		records = append(records, fmt.Sprintf("a.test. 60 IN A 10.0.%d.%d", i/250, i%250+1))
	}
	s := serve(t, records...)
	f := lookAt(t, Source{Name: "a.test", Port: 80}, s.addr).look(t.Context())
	require.NoError(t, f.failed)
	require.Len(t, f.endpoints, 500)
	require.Equal(t, 1, s.count("udp a.test. A"))
	require.Equal(t, 1, s.count("tcp a.test. A"))
}

// TestTroublesAreToldApart holds that only a "no" is an empty answer.
func TestTroublesAreToldApart(t *testing.T) {
	soa := "test. 300 IN SOA ns.test. root.test. 1 1 1 1 7"
	s := serve(t, soa, "six.test. 60 IN AAAA fd00::1", "circle.test. 60 IN CNAME circle2.test.", "circle2.test. 60 IN CNAME circle.test.")
	s.fail("broken.test.", dns.RcodeServerFailure)
	s.fail("refused.test.", dns.RcodeRefused)
	s.fail("mute.test.", -1)
	for name, c := range map[string]struct {
		is       error
		negative bool
	}{
		"none.test":    {ErrNotFound, true},
		"six.test":     {ErrNoData, true},
		"broken.test":  {ErrServer, false},
		"refused.test": {ErrServer, false},
		"mute.test":    {ErrTimeout, false},
		"circle.test":  {ErrAnswer, false},
	} {
		f := lookAt(t, Source{Name: name, Port: 80}, s.addr).look(t.Context())
		assert.Empty(t, f.endpoints)
		if c.negative {
			assert.NoError(t, f.failed, name)
			assert.ErrorIs(t, f.negative, c.is, name)
			assert.Equal(t, 7*time.Second, f.ttl, "a no holds as long as the zone says")
		} else {
			assert.ErrorIs(t, f.failed, c.is, name)
		}
	}
	assert.Equal(t, 2, s.count("udp broken.test. A"), "each server is tried twice")

	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := closed.LocalAddr().String()
	require.NoError(t, closed.Close())
	r := lookAt(t, Source{Name: "a.test", Port: 80}, gone)
	first, second := r.look(t.Context()).failed, r.look(t.Context()).failed
	require.ErrorContains(t, first, "connection refused")
	require.EqualError(t, second, first.Error(), "the same words, so that it is logged once")

	// A second server makes good for the first.
	s.set(t, "a.test. 60 IN A 10.0.0.1")
	f := lookAt(t, Source{Name: "a.test", Port: 80}, gone, s.addr).look(t.Context())
	require.NoError(t, f.failed)
	require.Len(t, f.endpoints, 1)
}

// TestStaleAnswersStand keeps what was known of each question that nobody answers, and not longer than it is asked.
func TestStaleAnswersStand(t *testing.T) {
	s := serve(t, "a.test. 60 IN A 10.0.0.1")
	r := lookAt(t, Source{Name: "a.test", Port: 80}, s.addr)
	require.Len(t, r.look(t.Context()).endpoints, 1)
	s.fail("a.test.", dns.RcodeServerFailure)
	for range 3 {
		f := r.look(t.Context())
		require.ErrorIs(t, f.failed, ErrServer)
		require.Equal(t, []string{"10.0.0.1:80"}, namesOf(f))
	}

	s.set(t, "_s._tcp.test. 60 IN SRV 1 1 80 a.test.", "_s._tcp.test. 60 IN SRV 1 1 80 b.test.", "b.test. 60 IN A 10.0.0.2")
	r = lookAt(t, Source{Name: "_s._tcp.test"}, s.addr)
	f := r.look(t.Context())
	require.ErrorIs(t, f.failed, ErrServer)
	require.Equal(t, []string{"10.0.0.2:80"}, namesOf(f), "one target that cannot be found does not keep back the others")
	s.fail("b.test.", dns.RcodeServerFailure)
	require.Equal(t, []string{"10.0.0.2:80"}, namesOf(r.look(t.Context())))
	s.fail("_s._tcp.test.", -1)
	require.Equal(t, []string{"10.0.0.2:80"}, namesOf(r.look(t.Context())))
}

func TestServices(t *testing.T) {
	s := serve(t,
		"_s._tcp.test. 60 IN SRV 20 5 8080 One.test.", "_s._tcp.test. 60 IN SRV 10 0 80 two.test.",
		"_s._tcp.test. 60 IN SRV 65535 40 80 one.test.", "_s._tcp.test. 60 IN SRV 65535 30 80 ONE.test.",
		"_s._tcp.test. 60 IN SRV 20 5 1 gone.test.",
		"one.test. 30 IN A 10.0.0.1", "two.test. 30 IN A 10.0.0.2", "_no._tcp.test. 60 IN SRV 0 0 0 .")
	r := lookAt(t, Source{Name: "_s._tcp.test"}, s.addr)
	f := r.look(t.Context())
	require.NoError(t, f.failed)
	require.Equal(t, 0*time.Second, f.ttl, "gone.test may come back at any time")
	require.Equal(t, []host.Endpoint{
		{Name: "10.0.0.2:80", Addr: "10.0.0.2:80", Weight: 1, Priority: 0},
		{Name: "10.0.0.1:8080", Addr: "10.0.0.1:8080", Weight: 5, Priority: 1},
		{Name: "10.0.0.1:80", Addr: "10.0.0.1:80", Weight: 40, Priority: 2},
	}, f.endpoints)

	// Targets with several addresses share their weight among them.
	s.set(t, "_s._tcp.test. 60 IN SRV 1 6 80 one.test.", "_s._tcp.test. 60 IN SRV 1 3 80 two.test.",
		"one.test. 30 IN A 10.0.0.1", "one.test. 30 IN A 10.0.0.2", "two.test. 30 IN A 10.0.0.3")
	weights := map[string]uint32{}
	f = r.look(t.Context())
	for _, ep := range f.endpoints {
		weights[ep.Name] = ep.Weight
	}
	require.Equal(t, map[string]uint32{"10.0.0.1:80": 300, "10.0.0.2:80": 300, "10.0.0.3:80": 300}, weights)
	require.Equal(t, 30*time.Second, f.ttl)

	// Addresses that come along are not asked for.
	s.mu.Lock()
	s.extra = true
	s.mu.Unlock()
	before := s.count("udp one.test. A")
	require.Len(t, r.look(t.Context()).endpoints, 3)
	require.Equal(t, before, s.count("udp one.test. A"))

	s.set(t, "_no._tcp.test. 60 IN SRV 0 0 0 .")
	f = lookAt(t, Source{Name: "_no._tcp.test"}, s.addr).look(t.Context())
	require.ErrorIs(t, f.negative, ErrNoData)
	require.NoError(t, f.failed)
}

// TestManyTargets resolves five hundred targets, a few at a time.
func TestManyTargets(t *testing.T) {
	var records []string
	for i := range 500 {
		records = append(records, fmt.Sprintf("_s._tcp.test. 60 IN SRV 1 1 80 r%d.test.", i), fmt.Sprintf("r%d.test. 60 IN A 10.0.%d.%d", i, i/250, i%250+1))
	}
	s := serve(t, records...)
	r := lookAt(t, Source{Name: "_s._tcp.test"}, s.addr)
	r.source.Timeout = 5 * time.Second
	f := r.look(t.Context())
	require.NoError(t, f.failed)
	require.Len(t, f.endpoints, 500)
}

// TestDanglingAlias asks on where a server answers with an alias alone.
func TestDanglingAlias(t *testing.T) {
	s := serve(t, "far.test. 60 IN A 10.0.0.1")
	mux := dns.NewServeMux()
	mux.HandleFunc("a.test.", func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		rr, _ := dns.NewRR("a.test. 9 IN CNAME far.test.")
		m.Answer = append(m.Answer, rr)
		_ = w.WriteMsg(m)
	})
	mux.Handle(".", s)
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &dns.Server{PacketConn: pc, Handler: mux}
	go func() { _ = srv.ActivateAndServe() }()
	t.Cleanup(func() { _ = pc.Close() })
	f := lookAt(t, Source{Name: "a.test", Port: 80}, pc.LocalAddr().String()).look(t.Context())
	require.NoError(t, f.failed)
	require.Equal(t, []string{"10.0.0.1:80"}, namesOf(f))
	require.Equal(t, 9*time.Second, f.ttl)
}

// TestPause holds the time between looks to its bounds, and failures to an ever longer wait.
func TestPause(t *testing.T) {
	r := lookAt(t, Source{Name: "a.test", Port: 80, MinTTL: 10 * time.Second, MaxTTL: 100 * time.Second})
	for ttl, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 50 * time.Second: 50 * time.Second, time.Hour: 100 * time.Second} {
		jitter := map[time.Duration]bool{}
		for range 100 {
			wait, retry := r.pause(finding{ttl: ttl}, lastRetry)
			require.Equal(t, firstRetry, retry)
			require.GreaterOrEqual(t, wait, want)
			require.LessOrEqual(t, wait, want+want/10)
			jitter[wait] = true
		}
		require.Greater(t, len(jitter), 50)
	}
	retry, total := firstRetry, time.Duration(0)
	for range 6 {
		var wait time.Duration
		wait, retry = r.pause(finding{failed: ErrTimeout}, retry)
		total += wait
	}
	require.Equal(t, lastRetry, retry)
	require.InDelta(t, 61*1.05, total.Seconds(), 61*0.051)
}

func TestSettings(t *testing.T) {
	for _, s := range []Source{{}, {Name: "a", Network: "tcp"}, {Name: "a", Timeout: -1}, {Name: "a", MinTTL: 2, MaxTTL: 1}, {Name: "a", MinTTL: -1}} {
		err := s.Watch(context.Background(), nil)
		require.ErrorContains(t, err, "dns source: ")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, errors.Is((&Source{Name: "a", Servers: []string{"127.0.0.1:1"}}).Watch(ctx, nil), context.Canceled))
}
