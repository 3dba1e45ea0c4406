package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/discovery"
)

// server is a real DNS server on loopback, over UDP and TCP, with records as a zone file has them.
type server struct {
	addr  string
	mu    sync.Mutex
	rrs   []dns.RR
	rcode map[string]int // by name; -1 does not answer
	extra bool           // send the addresses of targets along
	asked map[string]int // by network, name and type
}

func serve(t *testing.T, records ...string) *server {
	s := &server{rcode: map[string]int{}, asked: map[string]int{}}
	s.set(t, records...)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = tcp.Addr().String()
	udp, err := net.ListenPacket("udp", s.addr)
	require.NoError(t, err)
	for _, srv := range []*dns.Server{{Listener: tcp, Handler: s}, {PacketConn: udp, Handler: s}} {
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go func() { _ = srv.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = srv.Shutdown() })
	}
	return s
}

func (s *server) set(t *testing.T, records ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rrs = nil
	for _, text := range records {
		rr, err := dns.NewRR(text)
		require.NoError(t, err)
		s.rrs = append(s.rrs, rr)
	}
}

// count is how often something was asked, such as "udp a.test. A".
func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *server) fail(name string, rcode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcode[name] = rcode
}

// ServeDNS answers as a resolver does: with aliases and where they lead, and an SOA record with a "no".
func (s *server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := dns.CanonicalName(q.Question[0].Name)
	network := w.LocalAddr().Network()
	s.asked[fmt.Sprint(network, " ", name, " ", dns.TypeToString[q.Question[0].Qtype])]++
	m := new(dns.Msg)
	m.SetReply(q)
	code, broken := s.rcode[name]
	if broken && code < 0 {
		return
	}
	m.Rcode = code
	exists := false
	for at, hops := name, 0; !broken && at != "" && hops < 20; hops++ {
		next := ""
		for _, rr := range s.rrs {
			h := rr.Header()
			if !strings.EqualFold(h.Name, at) || h.Rrtype == dns.TypeSOA {
				continue
			}
			exists = true
			if h.Rrtype == q.Question[0].Qtype || h.Rrtype == dns.TypeCNAME {
				m.Answer = append(m.Answer, rr)
			}
			if alias, ok := rr.(*dns.CNAME); ok {
				next = alias.Target
			}
		}
		at = next
	}
	if !broken && !exists {
		m.Rcode = dns.RcodeNameError
	}
	for _, rr := range s.rrs {
		if rr.Header().Rrtype == dns.TypeSOA && len(m.Answer) == 0 || s.extra && rr.Header().Rrtype == dns.TypeA {
			if rr.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, rr)
			} else if q.Question[0].Qtype == dns.TypeSRV {
				m.Extra = append(m.Extra, rr)
			}
		}
	}
	if network == "udp" {
		m.Truncate(int(q.IsEdns0().UDPSize()))
	}
	_ = w.WriteMsg(m)
}

// lookAt makes a resolver of a source with quick timeouts.
func lookAt(t *testing.T, s Source, servers ...string) *resolver {
	t.Helper()
	s.Servers = servers
	s.Timeout = 200 * time.Millisecond
	r, err := s.resolver()
	require.NoError(t, err)
	return r
}

func namesOf(f finding) []string {
	out := []string{}
	for _, ep := range f.endpoints {
		out = append(out, ep.Name)
	}
	return out
}

// TestWatch goes from a server through a keeper to what serves: addresses that flap in order, vanish, and a server
// that stops.
func TestWatch(t *testing.T) {
	s := serve(t, "a.test. 0 IN A 10.0.0.1", "a.test. 0 IN A 10.0.0.2")
	b := &balancer{}
	keeper := discovery.NewKeeper(b, discovery.Config{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- keeper.Follow(ctx, &Source{Name: "a.test", Port: 80, Servers: []string{s.addr}, MinTTL: time.Millisecond, Timeout: 200 * time.Millisecond})
	}()
	has := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return b.has() == want }, 10*time.Second, time.Millisecond, "want %s", want)
	}
	has("10.0.0.1:80 ready, 10.0.0.2:80 ready, ")
	looks := func(n int) {
		t.Helper()
		from := s.count("udp a.test. A")
		require.Eventually(t, func() bool { return s.count("udp a.test. A") >= from+n }, 10*time.Second, time.Millisecond)
	}
	s.set(t, "a.test. 0 IN A 10.0.0.2", "a.test. 0 IN A 10.0.0.1")
	looks(3)
	require.EqualValues(t, 1, keeper.Stats().Revision, "another order is no change")
	s.set(t, "a.test. 0 IN A 10.0.0.2", "a.test. 0 IN A 10.0.0.3")
	has("10.0.0.1:80 draining, 10.0.0.2:80 ready, 10.0.0.3:80 ready, ")
	s.set(t)
	require.Eventually(t, func() bool { return keeper.Stats().Holding }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return keeper.Stats().Failing != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, keeper.Stats().Failing, ErrNotFound)
	has("10.0.0.1:80 draining, 10.0.0.2:80 ready, 10.0.0.3:80 ready, ")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestWatchTellsWhatItFound has a target that cannot be found: the others serve, and the failure is reported.
func TestWatchTellsWhatItFound(t *testing.T) {
	s := serve(t, "_s._tcp.test. 60 IN SRV 1 1 80 a.test.", "_s._tcp.test. 60 IN SRV 1 1 80 b.test.", "b.test. 60 IN A 10.0.0.2")
	s.fail("a.test.", dns.RcodeServerFailure)
	b := &balancer{}
	keeper := discovery.NewKeeper(b, discovery.Config{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Follow(ctx, &Source{Name: "_s._tcp.test", Servers: []string{s.addr}}) }()
	require.Eventually(t, func() bool { return b.has() == "10.0.0.2:80 ready, " }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return errors.Is(keeper.Stats().Failing, ErrServer) }, 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

type balancer struct {
	mu  sync.Mutex
	eps []host.Endpoint
}

func (b *balancer) SetEndpoints(eps []host.Endpoint) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eps = eps
	return nil
}

func (b *balancer) has() (out string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ep := range b.eps {
		out += fmt.Sprintf("%s %s, ", ep.Name, ep.Status)
	}
	return out
}
