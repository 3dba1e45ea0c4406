package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/host"
)

// reload makes the routes those of a config. What is wrong with any changes none; what is the same in one is not touched.
func (f *fleet) reload(ctx context.Context, c Config) (done []string, err error) {
	var changes []*change
	var fresh []Route
	for _, r := range c.served() {
		rt := f.named(r.Name)
		if rt == nil {
			fresh = append(fresh, r)
			continue
		}
		ch, err := rt.plan(ctx, r.Config)
		if err != nil {
			return nil, f.in(r.Name, err)
		}
		changes = append(changes, ch)
	}
	added, err := beginAll(ctx, fresh, f)
	if err != nil {
		return nil, err
	}
	for i, ch := range changes {
		what, err := ch.apply(ctx)
		if err != nil {
			err = f.in(ch.rt.name, err)
			for _, before := range changes[:i] {
				err = errors.Join(err, f.in(before.rt.name, before.undo(ctx)))
			}
			for _, p := range added {
				err = errors.Join(err, p.stop())
			}
			return nil, err
		}
		for _, w := range what {
			if f.several {
				w = w + " of " + ch.rt.name
			}
			done = append(done, w)
		}
	}
	for _, ch := range changes {
		ch.keep()
	}
	return append(done, f.place(c, added)...), nil
}

// place puts the routes of a config into the table, and says which came, went or have other requests.
func (f *fleet) place(c Config, added []placed) (done []string) {
	next := slices.Clone(added)
	for _, p := range added {
		done = append(done, "route "+p.name+" added")
	}
	for _, p := range f.routes() {
		i := slices.IndexFunc(c.served(), func(r Route) bool { return r.Name == p.name })
		if i < 0 {
			done = append(done, "route "+p.name+" removed")
			continue
		}
		match := c.served()[i].Match
		if match != p.Match {
			done = append(done, "match of "+p.name)
		}
		next = append(next, placed{match, p.running})
	}
	if len(done) > 0 {
		f.serve(next, time.Duration(c.Drain))
	}
	return done
}

func (f *fleet) in(name string, err error) error {
	if err == nil || !f.several {
		return err
	}
	return fmt.Errorf("route %q: %w", name, err)
}

// change is what a reload changes of one route.
type change struct {
	rt     *running
	next   Config
	digest [sha256.Size]byte
	moved  bool // other endpoints
	swap   bool // another policy
	source host.Source
	taken  func()
}

// plan finds out what is to change, and whether it can be.
func (rt *running) plan(ctx context.Context, next Config) (*change, error) {
	if err := restart(needRestart(rt.fixed(rt.now), rt.fixed(next))); err != nil {
		return nil, err
	}
	digest, code := digestOf(next.Module)
	ch := &change{
		rt: rt, next: next, digest: digest,
		moved: rt.keeper != nil && !slices.Equal(next.Endpoints, rt.now.Endpoints),
		swap:  next.Spec != rt.now.Spec || next.Module != rt.now.Module || digest != rt.digest,
	}
	if !ch.swap {
		return ch, nil
	}
	var err error
	ch.source, ch.taken, err = rt.engines.source(ctx, next.Spec, code, next.Module == "")
	return ch, err
}

// fixed is a config with nothing in it but what is a route's own.
func (rt *running) fixed(c Config) Config {
	c.Listen, c.Admin, c.Drain, c.TokenFile, c.Edge = "", "", 0, "", rt.now.Edge
	return c
}

// apply changes the route, or nothing of it.
func (ch *change) apply(ctx context.Context) (done []string, err error) {
	rt := ch.rt
	if ch.moved {
		// The keeper learns of those that serve only now: it has an order of its own, and the operator's is nicer to look at.
		if err := errors.Join(rt.keeper.Update(snapshotOf(rt.now.Endpoints)), rt.keeper.Update(snapshotOf(ch.next.Endpoints))); err != nil {
			return nil, err
		}
		done = append(done, "endpoints")
	}
	if ch.swap {
		if err := rt.b.Swap(ctx, ch.source); err != nil {
			return nil, errors.Join(err, ch.moveBack())
		}
		done = append(done, "policy")
	}
	return done, nil
}

// undo takes back what apply did.
func (ch *change) undo(ctx context.Context) error {
	err := ch.moveBack()
	if ch.swap {
		err = errors.Join(err, ch.rt.b.Rollback(ctx))
	}
	return err
}

func (ch *change) moveBack() error {
	if !ch.moved {
		return nil
	}
	return ch.rt.keeper.Update(snapshotOf(ch.rt.now.Endpoints))
}

// keep makes the change what later ones are compared with.
func (ch *change) keep() {
	if ch.swap {
		ch.taken()
	}
	ch.rt.now, ch.rt.digest = ch.next, ch.digest
}
