package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
)

type question struct {
	name  string // canonical: lower case, with its dot
	qtype uint16
}

// answer is the records at the end of a chain of aliases, and when the first of all expires.
type answer struct {
	records []dns.RR
	extra   []dns.RR
	ttl     time.Duration
}

const (
	// udpSize is what passes everywhere without fragments; more comes over TCP.
	udpSize = 1232
	// mostAliases bounds a chain, within an answer or over several.
	mostAliases = 8
)

// ask gets the answer to one question. ErrNotFound and ErrNoData come with how long they hold.
func (r *resolver) ask(ctx context.Context, servers []string, q question) (answer, error) {
	var seen answer
	first := true
	for range mostAliases {
		msg, err := r.exchange(ctx, servers, q)
		if err != nil {
			return answer{}, err
		}
		a, end, err := follow(msg, q)
		if !first {
			a.ttl = min(a.ttl, seen.ttl)
		}
		seen, first = a, false
		switch {
		case err != nil:
			return answer{}, err
		case len(a.records) > 0:
			return a, nil
		case msg.Rcode == dns.RcodeNameError:
			return a, ErrNotFound
		case end == q.name || hasSOA(msg):
			return a, ErrNoData
		}
		q.name = end // the server knew where the chain leads, and not what is there
	}
	return answer{}, fmt.Errorf("%w: more than %d aliases", ErrAnswer, mostAliases)
}

// follow walks the aliases of an answer to its end.
func follow(msg *dns.Msg, q question) (a answer, end string, err error) {
	a = answer{extra: msg.Extra, ttl: time.Duration(1<<63 - 1)}
	expires := func(seconds uint32) { a.ttl = min(a.ttl, time.Duration(seconds)*time.Second) }
	end = q.name
	for range mostAliases + 1 {
		next := ""
		for _, rr := range msg.Answer {
			h := rr.Header()
			if dns.CanonicalName(h.Name) != end {
				continue
			}
			if h.Rrtype == q.qtype {
				a.records = append(a.records, rr)
				expires(h.Ttl)
			} else if alias, ok := rr.(*dns.CNAME); ok {
				next = dns.CanonicalName(alias.Target)
				expires(h.Ttl)
			}
		}
		if len(a.records) > 0 {
			return a, end, nil
		}
		if next == "" {
			// How long a "no" holds is in the zone's SOA record (RFC 2308); without one, not at all.
			held := false
			for _, rr := range msg.Ns {
				if soa, ok := rr.(*dns.SOA); ok {
					expires(min(soa.Hdr.Ttl, soa.Minttl))
					held = true
				}
			}
			if !held && end == q.name {
				a.ttl = 0
			}
			return a, end, nil
		}
		end = next
	}
	return a, end, fmt.Errorf("%w: the aliases of %s lead in a circle", ErrAnswer, q.name)
}

func hasSOA(msg *dns.Msg) bool {
	for _, rr := range msg.Ns {
		if rr.Header().Rrtype == dns.TypeSOA {
			return true
		}
	}
	return false
}

// exchange asks the servers in turn, each twice, until one knows.
func (r *resolver) exchange(ctx context.Context, servers []string, q question) (*dns.Msg, error) {
	var failed error
	for range 2 {
		for _, server := range servers {
			msg, err := r.once(ctx, server, q)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				failed = unanswered(server, err)
			case msg.Rcode == dns.RcodeSuccess || msg.Rcode == dns.RcodeNameError:
				return msg, nil
			default:
				failed = fmt.Errorf("%w: %s says %s", ErrServer, server, dns.RcodeToString[msg.Rcode])
			}
		}
	}
	return nil, fmt.Errorf("%s %s: %w", q.name, dns.TypeToString[q.qtype], failed)
}

// unanswered is an error without the port that was drawn at random: the same words for the same
// trouble.
func unanswered(server string, err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("%w: %s", ErrTimeout, server)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("%s: %w", server, err)
}

func (r *resolver) once(ctx context.Context, server string, q question) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.qtype)
	m.SetEdns0(udpSize, false)
	c := dns.Client{Timeout: r.source.Timeout}
	msg, _, err := c.ExchangeContext(ctx, m, server)
	if err == nil && msg.Truncated || errors.Is(err, dns.ErrBuf) {
		c.Net = "tcp"
		msg, _, err = c.ExchangeContext(ctx, m, server)
	}
	if err != nil {
		return nil, err
	}
	if len(msg.Question) != 1 || dns.CanonicalName(msg.Question[0].Name) != q.name || msg.Question[0].Qtype != q.qtype {
		return nil, fmt.Errorf("%w: it is to another question", ErrAnswer)
	}
	return msg, nil
}
