package test_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/wasm/abi"
)

const generated = "generated from wasm/abi; go test ./test -run ABI -update writes it"

// The page and the header for authors in other languages say what the constants say.
func TestABIPageAndHeaderAreWhatTheConstantsSay(t *testing.T) {
	for path, text := range map[string]string{"../docs/abi.md": abiPage(), "../examples/guest-c/abi.h": abiHeader(), "../examples/guest-rust/abi.rs": abiRust()} {
		if flag.Lookup("update").Value.String() == "true" {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(have), "%s: %s", path, generated)
	}
}

// Every offset that the package has a constant for is told, and nothing else.
func TestABIRecordsTellEveryOffset(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../wasm/abi/abi.go", nil, 0)
	require.NoError(t, err)
	constants := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, name := range v.Names {
				constants[name.Name] = true
			}
		}
		return true
	})
	told := map[string]bool{}
	for _, r := range abi.Records() {
		end := 0
		for _, f := range r.Fields {
			require.GreaterOrEqual(t, f.Offset, end, "%s%s overlaps the one before it", r.Name, f.Name)
			require.Zero(t, f.Offset%bytesOf(f.Type), "%s%s is not aligned", r.Name, f.Name)
			end = f.Offset + bytesOf(f.Type)
			told[r.Name+f.Name] = true
		}
		require.LessOrEqual(t, end, r.Size, r.Name)
		for name := range constants {
			if strings.HasPrefix(name, r.Name) && name != r.Name+"Size" {
				require.True(t, told[name], "%s is told nowhere", name)
			}
		}
	}
}

func bytesOf(typ string) int { return map[string]int{"u8": 1, "u32": 4, "u64": 8, "i64": 8}[typ] }

func valueName(letter rune) string {
	if letter == 'l' {
		return "i64"
	}
	return "i32"
}

func abiPage() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("<!-- %s -->\n", generated)
	w("# The ABI\n\nWhat a module exports to be a guest, in any language. This is version %d.%d. A host refuses another major version and\n", abi.Major, abi.Minor)
	w(`accepts a higher minor one. [A policy of your own](custom-policy.md) shows guests in Go, C and Rust, and
` + "`wasmhost verify`" + ` tells whether a module keeps what this page asks.

## A guest's life

1. The host calls ` + "`_initialize`" + `, if there is one, and ` + "`lb_abi_version`" + `.
2. It asks for an arena, writes the spec line there, and calls ` + "`lb_configure`" + ` once. ` + "`lb_text`" + ` then tells the canonical spec.
3. ` + "`lb_decision`" + ` tells where decisions will stand, ` + "`lb_inspect`" + ` whether the policy probes for single queries.
4. ` + "`lb_candidates`" + ` sets the fleet, again whenever it changes, and ` + "`lb_status`" + ` one replica's status.
5. For each query the host calls ` + "`lb_decide`" + `, and ` + "`lb_report`" + ` when it has ended. Readings, load reports and failed probes
   come through ` + "`lb_record`, `lb_load` and `lb_forget`" + `; ` + "`lb_probes`" + ` says who is to be probed.
6. ` + "`lb_block`" + ` tells where the state stands. A host copies it after decisions, and when a guest has failed it puts the copy
   into a fresh guest with the same spec, fleet and statuses, by ` + "`lb_restore`" + `.

One call at a time. Instants are nanoseconds on the host's clock, from an origin that means nothing; one that is earlier
than the last counts as the last. A guest imports WASI and nothing else, and finds no clock and no randomness there: the
clock stands still, random bytes are zero. All state that a later answer depends on is in the block, so that the same block
and the same calls give the same answers. Integers are little-endian. An arena is good for the call that is made with it,
and a guest writes there only in the functions that say so.

A host checks the index and the eligibility of every decision. A guest that traps, loops or decides wrongly is thrown away,
and the query is placed without it.

## Exports

A module exports its memory as ` + "`" + abi.Memory + "`" + ` and these functions. Codes are 0 or one of the negative [codes](#codes).

| function | what it does |
| --- | --- |
`)
	for _, e := range abi.Exports() {
		names := strings.Fields(e.Args)
		params := make([]string, len(names))
		for i, l := range e.Params {
			params[i] = names[i] + " " + valueName(l)
		}
		opt := ""
		if e.Optional {
			opt = "optional, "
		}
		w("| `%s(%s) %s` | %s%s |\n", e.Name, strings.Join(params, ", "), valueName(rune(e.Results[0])), opt, strings.ReplaceAll(e.Doc, "|", `\|`))
	}
	w("\n## Bounds\n\n| name | value | of what |\n| --- | ---: | --- |\n")
	for _, x := range abi.Bounds() {
		w("| %s | %d | %s |\n", x.Name, x.Value, x.Doc)
	}
	w("\n## Records\n\nWhat no field covers is zero.\n")
	for _, r := range abi.Records() {
		w("\n### %s\n\n%d bytes: %s.\n\n| offset | type | field | meaning |\n| ---: | --- | --- | --- |\n", r.Name, r.Size, r.Doc)
		for _, f := range r.Fields {
			w("| %d | %s | %s | %s |\n", f.Offset, f.Type, f.Name, f.Doc)
		}
	}
	w("\n## Numbers with names\n")
	for _, e := range abi.Enums() {
		w("\n%s, %s:", e.Name, e.Doc)
		for i, v := range e.Values {
			w(" %d %s%s", i, v, map[bool]string{true: ".\n", false: ","}[i == len(e.Values)-1])
		}
	}
	w("\n## Codes\n\nA function that refuses leaves everything as it was, and `lb_text` tells why.\n\n| code | name | meaning |\n| ---: | --- | --- |\n")
	errs, codes, names := abi.Sentinels()
	for i := range errs {
		w("| %d | `%s` | %s |\n", codes[i], names[i], errs[i])
	}
	return b.String()
}

func snake(s string) string {
	if strings.ToUpper(s) == s {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) {
			upperBefore := i > 0 && unicode.IsUpper(rune(s[i-1]))
			if i > 0 && !upperBefore {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

var cTypes = map[string]string{"u8": "uint8_t", "u32": "uint32_t", "u64": "uint64_t", "i64": "int64_t", "i32": "int32_t"}

func abiHeader() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("/* The boundary between a host and a guest, see docs/abi.md.\n   %s */\n", generated)
	w("#ifndef HEADROOM_ABI_H\n#define HEADROOM_ABI_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n")
	w("#define LB_VERSION (%d << 16 | %d)\n\n", abi.Major, abi.Minor)
	for _, x := range abi.Bounds() {
		w("#define LB_%s %d /* %s */\n", strings.ToUpper(snake(x.Name)), x.Value, x.Doc)
	}
	for _, r := range abi.Records() {
		name := "lb_" + snake(r.Name) + "_record"
		w("\n/* %s */\ntypedef struct {\n", r.Doc)
		end, pads := 0, 0
		pad := func(to int) {
			if to > end {
				w("\tuint8_t zero%d[%d];\n", pads, to-end)
				pads++
			}
		}
		for _, f := range r.Fields {
			pad(f.Offset)
			w("\t%s %s; /* %s */\n", cTypes[f.Type], snake(f.Name), f.Doc)
			end = f.Offset + bytesOf(f.Type)
		}
		pad(r.Size)
		w("} %s;\n_Static_assert(sizeof(%s) == %d, \"size of %s\");\n", name, name, r.Size, name)
		for _, f := range r.Fields {
			w("_Static_assert(offsetof(%s, %s) == %d, \"offset of %s\");\n", name, snake(f.Name), f.Offset, snake(f.Name))
		}
	}
	for _, e := range abi.Enums() {
		w("\n/* %s */\nenum {\n", e.Doc)
		for i, v := range e.Values {
			w("\tLB_%s_%s = %d,\n", strings.ToUpper(snake(e.Name)), strings.ToUpper(v), i)
		}
		w("};\n")
	}
	w("\n/* codes of errors */\nenum {\n")
	_, codes, names := abi.Sentinels()
	for i := range codes {
		w("\tLB_E_%s = %d,\n", strings.ToUpper(names[i]), codes[i])
	}
	w("};\n\n#define LB_EXPORT(name) __attribute__((export_name(#name))) name\n")
	for _, e := range abi.Exports() {
		args := strings.Fields(e.Args)
		params := make([]string, len(args))
		for i, l := range e.Params {
			params[i] = cTypes[valueName(l)] + " " + args[i]
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		opt := ""
		if e.Optional {
			opt = "optional, "
		}
		w("\n/* %s%s */\n%s %s(%s);\n", opt, e.Doc, cTypes[valueName(rune(e.Results[0]))], e.Name, strings.Join(params, ", "))
	}
	w("\n#endif\n")
	return b.String()
}

func abiRust() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("//! The boundary between a host and a guest, see docs/abi.md.\n//! %s\n#![allow(dead_code)]\n\n", generated)
	w("pub const VERSION: i32 = %d << 16 | %d;\n", abi.Major, abi.Minor)
	for _, x := range abi.Bounds() {
		w("pub const %s: usize = %d; // %s\n", strings.ToUpper(snake(x.Name)), x.Value, x.Doc)
	}
	for _, r := range abi.Records() {
		name := strings.ToUpper(snake(r.Name))
		w("\n// %s\npub const %s_SIZE: usize = %d;\n", r.Doc, name, r.Size)
		for _, f := range r.Fields {
			w("pub const %s_%s: usize = %d; // %s: %s\n", name, strings.ToUpper(snake(f.Name)), f.Offset, f.Type, f.Doc)
		}
	}
	for _, e := range abi.Enums() {
		w("\n// %s\n", e.Doc)
		for i, v := range e.Values {
			w("pub const %s_%s: i32 = %d;\n", strings.ToUpper(snake(e.Name)), strings.ToUpper(v), i)
		}
	}
	w("\n// codes of errors\n")
	_, codes, names := abi.Sentinels()
	for i := range codes {
		w("pub const E_%s: i32 = %d;\n", strings.ToUpper(names[i]), codes[i])
	}
	return b.String()
}
