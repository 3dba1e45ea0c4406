package host

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/headroom-lb/headroom/wasm/abi"
	"github.com/headroom-lb/headroom/wasm/dist"
)

const wasiModule = "wasi_snapshot_preview1"

// Module is a compiled guest whose ABI was checked. It is safe for concurrent use.
type Module struct {
	wz       wazero.Runtime
	compiled wazero.CompiledModule
	guard    Guard
	digest   [32]byte
	size     int
	version  Version
	policies []string
}

// Version is an ABI version.
type Version struct{ Major, Minor int }

// ABI is the version that the module was built for.
func (m *Module) ABI() Version { return m.version }

// Digest is the SHA-256 of the module's bytes.
func (m *Module) Digest() [32]byte { return m.digest }

// DigestText is Digest in hexadecimal.
func (m *Module) DigestText() string { return hex.EncodeToString(m.digest[:]) }

// Size is the length of the module in bytes.
func (m *Module) Size() int { return m.size }

// Policies are the names that the module's specs may start with, as it tells them.
func (m *Module) Policies() []string { return slices.Clone(m.policies) }

// builtIn tells the module that this program carries from those of others.
func (m *Module) builtIn() bool { return m.DigestText() == dist.Digest() }

// Exports lists the exported functions as name and signature, sorted.
func (m *Module) Exports() []string {
	var out []string
	for name, f := range m.compiled.ExportedFunctions() {
		out = append(out, name+signature(f.ParamTypes(), f.ResultTypes()))
	}
	slices.Sort(out)
	return out
}

// Imports lists the imported functions as module and name, sorted.
func (m *Module) Imports() []string {
	var out []string
	for _, f := range m.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		out = append(out, module+"."+name)
	}
	slices.Sort(out)
	return out
}

func signature(params, results []api.ValueType) string {
	names := func(ts []api.ValueType) string {
		out := make([]string, len(ts))
		for i, t := range ts {
			out[i] = api.ValueTypeName(t)
		}
		return strings.Join(out, " ")
	}
	return "(" + names(params) + ") -> (" + names(results) + ")"
}

func valueTypes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for i, c := range letters {
		types[i] = api.ValueTypeI32
		if c == 'l' {
			types[i] = api.ValueTypeI64
		}
	}
	return types
}

// check compares the module with the ABI, then starts it once, so that a module that cannot
// start is refused at load.
func (m *Module) check(ctx context.Context) error {
	for _, f := range m.compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); module != wasiModule {
			return fmt.Errorf("%w: imports %s.%s, but a guest may import %s only", ErrModule, module, name, wasiModule)
		}
	}
	if m.compiled.ExportedMemories()[abi.Memory] == nil {
		return fmt.Errorf("%w: exports no memory named %q", ErrModule, abi.Memory)
	}
	have := m.compiled.ExportedFunctions()
	for _, e := range abi.Exports() {
		f, ok := have[e.Name]
		if !ok {
			if e.Optional {
				continue
			}
			return fmt.Errorf("%w: does not export %s%s", ErrModule, e.Name, signature(valueTypes(e.Params), valueTypes(e.Results)))
		}
		got, want := signature(f.ParamTypes(), f.ResultTypes()), signature(valueTypes(e.Params), valueTypes(e.Results))
		if got != want {
			return fmt.Errorf("%w: exports %s%s, want %s", ErrModule, e.Name, got, want)
		}
	}
	in, err := m.start(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	defer in.Close(ctx)
	v, err := in.call(in.function(abi.FuncVersion))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModule, err)
	}
	m.version = Version{int(v >> 16), int(v & 0xffff)}
	if m.version.Major != abi.Major {
		return fmt.Errorf("%w: ABI %d.%d, this host speaks %d.x", ErrModule, m.version.Major, m.version.Minor, abi.Major)
	}
	if f := in.function(abi.FuncPolicies); f != nil {
		if err := in.open(abi.ArenaMin); err != nil {
			return fmt.Errorf("%w: %w", ErrModule, err)
		}
		text, err := in.readText(f)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrModule, err)
		}
		m.policies = strings.Fields(text)
	}
	return nil
}
