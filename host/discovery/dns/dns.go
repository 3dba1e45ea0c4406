// Package dns is a source of endpoints: the addresses of a name, or the targets of a service
// record, asked for again when they expire. It is a module of its own, for the standard library's
// resolver does not tell when that is.
//
//	source := &dns.Source{Name: "orders.shop.svc.cluster.local.", Port: 8080, Scheme: "http"}
//	err := discovery.NewKeeper(balancer, discovery.Config{}).Follow(ctx, source)
//
// An endpoint is named by its address and port. The order of an answer means nothing. A server
// that fails, or does not answer, leaves what it said last; a name that does not exist, or has no
// addresses, is an empty snapshot, with a warning that tells the two apart.
package dns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headroom-lb/headroom/host/discovery"
)

// What a look may meet. Others, such as a refused connection, are passed through.
var (
	ErrNotFound = errors.New("there is no such name")        // NXDOMAIN
	ErrNoData   = errors.New("the name has no such records") // an answer without any
	ErrServer   = errors.New("the server could not answer")  // SERVFAIL, REFUSED and their like
	ErrTimeout  = errors.New("no server answered in time")   // lost, or late
	ErrAnswer   = errors.New("the answer makes no sense")    // such as a chain of aliases that has no end
)

// Source asks for a name. The zero value of all but Name is good.
type Source struct {
	// Name is what to ask for. With a dot at its end it is taken as it is, else the search list of
	// /etc/resolv.conf applies, unless Servers are given. /etc/hosts is not read.
	Name string
	// Port is that of every address. Zero asks for service records (SRV), which bring ports along:
	// a name such as _http._tcp.orders.example.com.
	Port uint16
	// Network is "ip4", the default, "ip6", or "ip" for both. A replica that has an address of each
	// kind would be two endpoints.
	Network string
	// Scheme stands before addresses, such as http. Empty: an address is host:port alone.
	Scheme string
	// Servers are asked in turn, as host:port. None: those of /etc/resolv.conf.
	Servers []string
	// Timeout is for one try; each server is tried twice. Zero means 2 s.
	Timeout time.Duration
	// MinTTL and MaxTTL bound the time between looks, which is else that of the record that expires
	// first. Zero means 5 s and 5 min. Up to a tenth is added, so that clients drift apart.
	MinTTL, MaxTTL time.Duration
}

// A look that failed is repeated after firstRetry, and then ever later.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Watch implements [discovery.Source]. It fails at once if a setting is wrong.
func (s *Source) Watch(ctx context.Context, sink discovery.Sink) error {
	r, err := s.resolver()
	if err != nil {
		return err
	}
	changes := discovery.NewChanges(sink, "dns "+s.Name)
	retry := firstRetry
	for {
		f := r.look(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var wait time.Duration
		wait, retry = r.pause(f, retry)
		if f.failed != nil && len(f.endpoints) == 0 {
			changes.Fail(f.failed)
		} else {
			changes.Tell(f.endpoints, errors.Join(f.failed, f.negative))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// pause is how long to wait after a look, and after the next one if both failed.
func (r *resolver) pause(f finding, retry time.Duration) (wait, nextRetry time.Duration) {
	wait, nextRetry = min(max(f.ttl, r.source.MinTTL), r.source.MaxTTL), firstRetry
	if f.failed != nil {
		wait, nextRetry = retry, min(2*retry, lastRetry)
	}
	return wait + rand.N(wait/10+1), nextRetry
}

func (s *Source) resolver() (*resolver, error) {
	r := &resolver{source: *s, last: map[question]answer{}}
	set := func(d *time.Duration, unset time.Duration) {
		if *d == 0 {
			*d = unset
		}
	}
	set(&r.source.Timeout, 2*time.Second)
	set(&r.source.MinTTL, 5*time.Second)
	set(&r.source.MaxTTL, max(r.source.MinTTL, 5*time.Minute))
	switch {
	case s.Name == "":
		return nil, errors.New("dns source: Name must be set")
	case s.Network != "" && s.Network != "ip" && s.Network != "ip4" && s.Network != "ip6":
		return nil, fmt.Errorf("dns source: network %q: use ip4, ip6 or ip", s.Network)
	case r.source.Timeout < 0 || r.source.MinTTL < 0 || r.source.MaxTTL < r.source.MinTTL:
		return nil, fmt.Errorf("dns source: timeout %v, TTL from %v to %v: want them positive and in order",
			r.source.Timeout, r.source.MinTTL, r.source.MaxTTL)
	}
	return r, nil
}
