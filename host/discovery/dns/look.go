package dns

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/headroom-lb/headroom/host"
)

// resolver is a source with what it was told last.
type resolver struct {
	source Source
	last   map[question]answer // of the last look
}

// finding is what a look found. With failed set, what it could not learn anew is as it was.
type finding struct {
	endpoints []host.Endpoint
	ttl       time.Duration
	failed    error // a question had no answer
	negative  error // ErrNotFound or ErrNoData: there are certainly no endpoints
}

// looking is one look: its questions may run at once.
type looking struct {
	*resolver
	servers []string
	mu      sync.Mutex
	next    map[question]answer // what is known after it
	found   finding
}

// look asks all there is to ask.
func (r *resolver) look(ctx context.Context) finding {
	l := &looking{resolver: r, servers: r.source.Servers, next: map[question]answer{}}
	l.found.ttl = r.source.MaxTTL
	names := []string{dns.Fqdn(r.source.Name)}
	if len(l.servers) == 0 {
		conf, err := dns.ClientConfigFromFile("/etc/resolv.conf")
		if err != nil {
			return finding{failed: err}
		}
		for _, s := range conf.Servers {
			l.servers = append(l.servers, net.JoinHostPort(s, conf.Port))
		}
		names = conf.NameList(r.source.Name)
	}
	for _, name := range names {
		l.found.endpoints, l.found.negative = nil, nil
		if r.source.Port == 0 {
			l.service(ctx, dns.CanonicalName(name))
		} else {
			addrs, err := l.addresses(ctx, dns.CanonicalName(name))
			l.found.negative = err
			for _, addr := range addrs {
				l.found.endpoints = append(l.found.endpoints, l.endpoint(addr, r.source.Port))
			}
		}
		if l.found.failed != nil || !errors.Is(l.found.negative, ErrNotFound) {
			break
		}
	}
	if l.found.failed == nil || len(l.found.endpoints) > 0 {
		r.last = l.next
	}
	return l.found
}

// known asks one question. When nobody answers, what was known stands; then the error is nil if
// there was something.
func (l *looking) known(ctx context.Context, q question) (answer, error) {
	a, err := l.ask(ctx, l.servers, q)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrNoData) {
		if l.found.failed == nil || err.Error() < l.found.failed.Error() { // the same of several each time
			l.found.failed = err
		}
		was, ok := l.last[q]
		if !ok {
			return answer{}, err
		}
		l.next[q] = was
		return was, nil
	}
	l.found.ttl = min(l.found.ttl, a.ttl)
	if err == nil {
		l.next[q] = a
	}
	return a, err
}

// families are the types of address records that are wanted.
func (l *looking) families() []uint16 {
	switch l.source.Network {
	case "ip6":
		return []uint16{dns.TypeAAAA}
	case "ip":
		return []uint16{dns.TypeA, dns.TypeAAAA}
	}
	return []uint16{dns.TypeA}
}

// addresses finds those of a name, of all families. The error says why there are none.
func (l *looking) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	var all []netip.Addr
	var none error
	for _, family := range l.families() {
		a, err := l.known(ctx, question{name, family})
		all = append(all, addrsOf(a.records)...)
		if err != nil && !errors.Is(none, ErrNotFound) {
			none = err
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, none
}

func addrsOf(records []dns.RR) []netip.Addr {
	var out []netip.Addr
	for _, rr := range records {
		var ip net.IP
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A
		case *dns.AAAA:
			ip = rr.AAAA
		}
		if addr, ok := netip.AddrFromSlice(ip); ok && !slices.Contains(out, addr.Unmap()) {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

func (l *looking) endpoint(addr netip.Addr, port uint16) host.Endpoint {
	name := net.JoinHostPort(addr.String(), strconv.Itoa(int(port)))
	ep := host.Endpoint{Name: name, Addr: name}
	if l.source.Scheme != "" {
		ep.Addr = l.source.Scheme + "://" + name
	}
	return ep
}

// atOnce bounds the questions that a look at service records asks at once.
const atOnce = 16

// service finds the targets of service records and their addresses.
func (l *looking) service(ctx context.Context, name string) {
	a, err := l.known(ctx, question{name, dns.TypeSRV})
	if err != nil {
		l.found.negative = err
		return
	}
	var targets []*dns.SRV
	for _, rr := range a.records {
		if srv, ok := rr.(*dns.SRV); ok && srv.Target != "." { // a dot: decidedly no service (RFC 2782)
			targets = append(targets, srv)
		}
	}
	if len(targets) == 0 {
		l.found.negative = ErrNoData
		return
	}
	// The best first: of an endpoint that stands twice the first counts.
	slices.SortFunc(targets, func(a, b *dns.SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Target, b.Target))
	})
	addrs := l.targets(ctx, targets, a.extra)
	split := slices.ContainsFunc(addrs, func(as []netip.Addr) bool { return len(as) > 1 })
	seen := map[string]bool{}
	var priorities []uint16
	for i, srv := range targets {
		if !slices.Contains(priorities, srv.Priority) {
			priorities = append(priorities, srv.Priority)
		}
		for _, addr := range addrs[i] {
			ep := l.endpoint(addr, srv.Port)
			if seen[ep.Name] {
				continue
			}
			seen[ep.Name] = true
			ep.Priority = uint8(min(len(priorities)-1, 255))
			ep.Weight = max(1, uint32(srv.Weight))
			if split {
				ep.Weight = max(1, ep.Weight*weightUnit/uint32(len(addrs[i])))
			}
			l.found.endpoints = append(l.found.endpoints, ep)
		}
	}
	if len(l.found.endpoints) == 0 {
		l.found.negative = ErrNoData
	}
}

// weightUnit is one of weight where a target has several addresses, which share what it has.
const weightUnit = 100

// targets finds the addresses of each. Those that came with the answer are taken; they are whole,
// for a set of records is sent whole or not at all (RFC 2181).
func (l *looking) targets(ctx context.Context, targets []*dns.SRV, extra []dns.RR) [][]netip.Addr {
	glue := map[string][]dns.RR{}
	for _, rr := range extra {
		if h := rr.Header(); slices.Contains(l.families(), h.Rrtype) {
			name := dns.CanonicalName(h.Name)
			glue[name] = append(glue[name], rr)
			l.found.ttl = min(l.found.ttl, time.Duration(h.Ttl)*time.Second)
		}
	}
	out := make([][]netip.Addr, len(targets))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, srv := range targets {
		name := dns.CanonicalName(srv.Target)
		if rrs := glue[name]; len(rrs) > 0 {
			out[i] = addrsOf(rrs)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i], _ = l.addresses(ctx, name) // a target without addresses is none
		})
	}
	wg.Wait()
	return out
}
