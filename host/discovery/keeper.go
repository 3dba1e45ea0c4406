package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// Balancer is what a keeper needs of a [host.Balancer]. On an error the old endpoints serve.
type Balancer interface {
	SetEndpoints(eps []host.Endpoint) error
}

// Config sets a keeper up. The zero value is good.
type Config struct {
	// Drain is the longest time for which an endpoint that vanished is kept, draining, for the
	// queries it still has. Zero means 30 s; negative removes at once.
	Drain time.Duration
	// InFlight tells how many queries an endpoint has open, so that one that has none is removed
	// before its time. Nil: not known. It must not call the keeper.
	InFlight func(endpoint string) int64
	// HoldEmpty is how long an empty snapshot must last before it is believed while endpoints
	// serve. Zero means 10 min; negative believes at once.
	HoldEmpty time.Duration
	// Most bounds the endpoints of a snapshot; a longer one is refused. Zero means 10,000. Those
	// that drain count too: when there is no room for them, the first to have vanished goes first.
	Most int
	// Serving are the endpoints that the balancer has already, given to it by its owner: the first
	// snapshot is a change of those. Nil: none.
	Serving []host.Endpoint
	// Log hears of changes and troubles, each once. Nil means slog.Default().
	Log *slog.Logger
}

// Keeper brings the snapshots of one source to one balancer. Meanwhile the endpoints are its to
// set: nobody else calls the balancer's SetEndpoints or SetStatus. It is safe for concurrent use.
type Keeper struct {
	b   Balancer
	cfg Config

	mu      sync.Mutex
	serving map[string]host.Endpoint // of the last snapshot that was taken
	leaving map[string]leaver        // vanished, and draining
	holds   map[string]engine.Status // by SetStatus, of either
	applied []host.Endpoint          // as the balancer has them
	empty   *Snapshot                // not believed yet
	since   time.Time                // when it came
	timer   *time.Timer
	stopped bool // a Follow has ended: no timer is set
	stats   Stats
}

// leaver is an endpoint that vanished.
type leaver struct {
	endpoint host.Endpoint
	since    time.Time
	idle     bool // it had nothing in flight when last looked at
}

// idleLook is how often a draining endpoint is asked after. It goes at the second look that finds
// it idle: a query may have been placed, and not be counted yet, at the first.
const idleLook = 250 * time.Millisecond

// NewKeeper makes a keeper for a balancer. The balancer keeps what it has
// until the first snapshot, which replaces it: at once, but for [Config.Serving].
func NewKeeper(b Balancer, cfg Config) *Keeper {
	if cfg.Drain == 0 {
		cfg.Drain = 30 * time.Second
	}
	if cfg.HoldEmpty == 0 {
		cfg.HoldEmpty = 10 * time.Minute
	}
	if cfg.Most == 0 {
		cfg.Most = 10_000
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	serving := make(map[string]host.Endpoint, len(cfg.Serving))
	for _, ep := range cfg.Serving {
		serving[ep.Name] = ep
	}
	return &Keeper{
		b: b, cfg: cfg,
		serving: serving, leaving: map[string]leaver{}, holds: map[string]engine.Status{},
	}
}

// Follow watches a source until the context ends, and returns what its Watch does. The balancer
// keeps the endpoints that it has then, draining ones included.
func (k *Keeper) Follow(ctx context.Context, src Source) error {
	k.setStopped(false)
	defer k.setStopped(true)
	return src.Watch(ctx, k)
}

// Update implements [Sink]. It refuses a snapshot that names an endpoint twice
// ([engine.ErrDuplicateID]) or not at all ([host.ErrEndpoint]), that is too long
// ([engine.ErrCapacity]), or that the balancer's policy refuses: what serves goes on serving.
func (k *Keeper) Update(s Snapshot) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.wake()
	if len(s.Endpoints) == 0 && len(k.serving) > 0 && k.cfg.HoldEmpty > 0 {
		k.stats.HeldEmpty++
		k.empty, k.since = &s, time.Now()
		k.cfg.Log.Warn("the source has no endpoints; the last ones go on serving",
			"revision", s.Revision, "endpoints", len(k.serving), "at_most", k.cfg.HoldEmpty)
		return nil
	}
	k.empty = nil
	return k.take(s)
}

// take makes a snapshot the one that serves. The caller holds the lock.
func (k *Keeper) take(s Snapshot) error {
	next, err := k.check(s)
	if err != nil {
		k.stats.Refused++
		return err
	}
	now := time.Now()
	leaving := maps.Clone(k.leaving)
	change := change{revision: s.Revision, total: len(next)}
	for name, ep := range next {
		was, known := k.serving[name]
		if l, gone := leaving[name]; gone {
			delete(leaving, name)
			was, known = l.endpoint, true
			change.returned = append(change.returned, name)
		}
		switch {
		case !known:
			change.added = append(change.added, name)
		case was != ep:
			change.altered = append(change.altered, name)
		}
	}
	for name, ep := range k.serving {
		if _, stays := next[name]; !stays {
			change.vanished = append(change.vanished, name)
			if k.cfg.Drain > 0 {
				leaving[name] = leaver{endpoint: ep, since: now}
			}
		}
	}
	trim(leaving, k.cfg.Most-len(next))
	if err := k.apply(next, leaving); err != nil {
		// Those that drain may be what is too much for the policy: the fleet matters more.
		if len(leaving) == 0 || k.apply(next, map[string]leaver{}) != nil {
			k.stats.Refused++
			return err
		}
	}
	k.stats.Revision = s.Revision
	k.stats.add(&change)
	change.log(k.cfg.Log)
	return nil
}

// check turns a snapshot into a set.
func (k *Keeper) check(s Snapshot) (map[string]host.Endpoint, error) {
	if len(s.Endpoints) > k.cfg.Most {
		return nil, fmt.Errorf("%w: %d endpoints, at most %d", engine.ErrCapacity, len(s.Endpoints), k.cfg.Most)
	}
	next := make(map[string]host.Endpoint, len(s.Endpoints))
	for i, ep := range s.Endpoints {
		if ep.Name == "" {
			return nil, fmt.Errorf("%w: endpoint %d, with address %q, has no name", host.ErrEndpoint, i, ep.Addr)
		}
		if first, twice := next[ep.Name]; twice {
			return nil, fmt.Errorf("%w: %q stands twice, with addresses %q and %q", engine.ErrDuplicateID, ep.Name, first.Addr, ep.Addr)
		}
		next[ep.Name] = ep
	}
	return next, nil
}

// trim takes those out that vanished first until at most room are left.
func trim(leaving map[string]leaver, room int) {
	if len(leaving) <= room {
		return
	}
	names := slices.SortedFunc(maps.Keys(leaving), func(a, b string) int { return leaving[a].since.Compare(leaving[b].since) })
	for _, name := range names[:len(names)-max(room, 0)] {
		delete(leaving, name)
	}
}

// apply brings a set to the balancer, if it differs from what that has, and keeps it if it was
// taken. The caller holds the lock.
func (k *Keeper) apply(serving map[string]host.Endpoint, leaving map[string]leaver) error {
	eps := make([]host.Endpoint, 0, len(serving)+len(leaving)) // never nil
	for _, ep := range serving {
		eps = append(eps, k.held(ep))
	}
	for _, l := range leaving {
		ep := k.held(l.endpoint)
		ep.Status = max(ep.Status, engine.StatusDraining)
		eps = append(eps, ep)
	}
	slices.SortFunc(eps, compare)
	if k.applied == nil || !slices.Equal(eps, k.applied) {
		if err := k.b.SetEndpoints(eps); err != nil {
			return err
		}
	}
	k.applied, k.serving, k.leaving = eps, serving, leaving
	maps.DeleteFunc(k.holds, func(name string, _ engine.Status) bool {
		_, here := serving[name]
		_, going := leaving[name]
		return !here && !going
	})
	k.stats.Endpoints, k.stats.Draining = len(serving), len(leaving)
	return nil
}

// held is an endpoint under the status that SetStatus gave it, if that is the lesser.
func (k *Keeper) held(ep host.Endpoint) host.Endpoint {
	ep.Status = max(ep.Status, k.holds[ep.Name])
	return ep
}

// SetStatus holds an endpoint at a status, as [host.Balancer.SetStatus] would, until it is set
// anew or the endpoint is removed. New snapshots do not undo it. Of the source's status, this one
// and draining because it vanished, the least eligible counts; so ready only lifts what was set
// here before.
func (k *Keeper) SetStatus(name string, st engine.Status) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, here := k.serving[name]
	_, going := k.leaving[name]
	if !here && !going {
		return fmt.Errorf("%w: %q", engine.ErrUnknownID, name)
	}
	if st > engine.StatusUnavailable {
		return fmt.Errorf("%w: no such status", engine.ErrConfig)
	}
	was := k.holds[name]
	k.holds[name] = st
	if err := k.apply(k.serving, k.leaving); err != nil {
		k.holds[name] = was
		return err
	}
	return nil
}
