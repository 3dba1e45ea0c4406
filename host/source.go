package host

import (
	"context"

	"github.com/headroom-lb/headroom/engine"
)

// Parse makes a policy from its spec line; policy.Parse is one.
type Parse = func(spec string) (engine.Policy, error)

// Source says where a balancer's machines come from, and which spec they follow.
type Source struct {
	spec    string
	module  *Module
	guest   bool // its machines can fail
	foreign bool // and are not our own module's
	prepare func(ctx context.Context) (blank, error)
}

// blank is a machine that has no spec yet. Making one may take milliseconds, giving it a spec
// does not.
type blank interface {
	configured(spec string, salt uint64) (m engine.Machine, canonical string, err error)
	Close(ctx context.Context) error
}

// FromModule gives guests of a module.
func FromModule(m *Module, spec string) Source {
	return Source{spec: spec, module: m, guest: true, foreign: !m.builtIn(), prepare: func(ctx context.Context) (blank, error) {
		in, err := m.blank(ctx)
		if err != nil {
			return nil, err
		}
		return in, nil
	}}
}

// FromPolicies gives native engines of the policies that parse makes. One that panics is a machine that
// failed: another is started, and the trap handler told.
func FromPolicies(parse Parse, spec string) Source {
	return Source{spec: spec, prepare: func(context.Context) (blank, error) { return nativeBlank{parse}, nil }}
}

// Spec is the source's spec as it was given.
func (src Source) Spec() string { return src.spec }

// Module is the module that the source's machines are guests of; nil for native engines.
func (src Source) Module() *Module { return src.module }

// With is the same source with another spec.
func (src Source) With(spec string) Source {
	src.spec = spec
	return src
}

// start makes one machine at a stroke.
func (src *Source) start(ctx context.Context, salt uint64) (engine.Machine, string, error) {
	bl, err := src.prepare(ctx)
	if err != nil {
		return nil, "", err
	}
	m, canonical, err := bl.configured(src.spec, salt)
	if err != nil {
		_ = bl.Close(context.WithoutCancel(ctx))
		return nil, "", err
	}
	return m, canonical, nil
}

// closer is what a machine that holds resources has besides.
type closer interface {
	Close(ctx context.Context) error
}

func closeMachine(ctx context.Context, m engine.Machine) error {
	if c, ok := m.(closer); ok {
		return c.Close(ctx)
	}
	return nil
}
