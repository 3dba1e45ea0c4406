package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/dist"
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
	moved  bool // other endpoints
	swap   bool // another policy
	source host.Source
	before host.Source
}

// plan finds out what is to change, and whether it can be.
func (rt *running) plan(ctx context.Context, next Config) (*change, error) {
	if err := restart(needRestart(rt.fixed(rt.now), rt.fixed(next))); err != nil {
		return nil, err
	}
	src, err := rt.source(ctx, next)
	if err != nil {
		return nil, err
	}
	// What is live may be another's doing: a swap or a rollback through the admin listener. The file is what is asked for.
	live := rt.b.Source()
	return &change{
		rt: rt, next: next, source: src, before: live,
		moved: rt.keeper != nil && !slices.Equal(next.Endpoints, rt.now.Endpoints),
		swap:  src.Spec() != live.Spec() || src.Module() != live.Module(),
	}, nil
}

// source is what the configuration asks for: the live one's module where that is the same.
func (rt *running) source(ctx context.Context, c Config) (host.Source, error) {
	code, err := c.readModule()
	if err != nil {
		return host.Source{}, err
	}
	if code == nil && c.Engine != "native" {
		code = dist.Engine
	}
	src, err := rt.engines.source(ctx, c.Spec, code)
	if err != nil && c.Module != "" {
		err = fmt.Errorf("--module %s: %w", c.Module, err)
	}
	return src, err
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
		if err := rt.keeper.Update(snapshotOf(ch.next.Endpoints)); err != nil {
			return nil, err
		}
		done = append(done, "endpoints")
	}
	if ch.swap {
		if err := rt.b.Swap(ctx, ch.source); err != nil {
			return nil, errors.Join(fmt.Errorf("--spec %q: %w", ch.next.Spec, err), ch.moveBack())
		}
		done = append(done, "policy")
	}
	return done, nil
}

// undo takes back what apply did.
func (ch *change) undo(ctx context.Context) error {
	err := ch.moveBack()
	if ch.swap { // no rollback: it would end the canary if one runs
		err = errors.Join(err, ch.rt.b.Swap(ctx, ch.before))
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
func (ch *change) keep() { ch.rt.now = ch.next }
