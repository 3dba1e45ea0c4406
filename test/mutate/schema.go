package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"sort"
	"strings"
)

// One build serves a whole file: beside each function stands a copy for each of its mutants,
// and the function hands over to the copy whose number the environment names. A build for
// each mutant would take most of the time.

// switchFile chooses the mutant in force.
const (
	switchName = "zz_mutant_in_force.go"
	switchVar  = "MUTANT"
	switchFile = `package %s

import (
	"os"
	"strconv"
)

var mutantInForce = func() int { n, _ := strconv.Atoi(os.Getenv("` + switchVar + `")); return n }()
`
)

// edit is a replacement of bytes.
type edit struct {
	start, end int
	with       string
}

func apply(src string, edits []edit) string {
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].start < edits[j].start })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(src[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.WriteString(src[at:])
	return b.String()
}

// schema is the file with the copies of all sites that lie in functions of the ordinary kind;
// numbered[i] is the number of site i, or 0 for one that needs a build of its own.
func schema(file string, src []byte, sites []*site) (text, pkg string, numbered []int, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		return "", "", nil, err
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	numbered = make([]int, len(sites))
	var edits []edit
	var copies strings.Builder
	number := 0
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Name.Name == "init" || fn.Name.Name == "main" || fn.Type.TypeParams != nil {
			continue
		}
		start, end := offset(fn.Pos()), offset(fn.End())
		naming, args := named(fn, offset)
		edits = append(edits, naming...)
		var cases strings.Builder
		for i, s := range sites {
			if s.start < start || s.end > end {
				continue
			}
			number++
			numbered[i] = number
			name := fmt.Sprintf("%s__%d", fn.Name.Name, number)
			own := append([]edit{{offset(fn.Name.Pos()), offset(fn.Name.End()), name}, {s.start, s.end, s.with}}, naming...)
			copies.WriteString("\n" + apply(string(src[:end]), own)[start:] + "\n")
			call := name + "(" + args + ")"
			if fn.Recv != nil {
				call = receiver(fn) + "." + call
			}
			if fn.Type.Results != nil {
				call = "return " + call
			} else {
				call += "; return"
			}
			fmt.Fprintf(&cases, "case %d: %s\n", number, call)
		}
		if cases.Len() > 0 {
			at := offset(fn.Body.Lbrace) + 1
			edits = append(edits, edit{at, at, "\nif mutantInForce != 0 {\nswitch mutantInForce {\n" + cases.String() + "}\n}\n"})
		}
	}
	return apply(string(src), edits) + copies.String(), parsed.Name.Name, numbered, nil
}

// named gives every parameter a name and lists them as arguments.
func named(fn *ast.FuncDecl, offset func(token.Pos) int) (edits []edit, args string) {
	var list []string
	blank := func(at, end int) string {
		name := fmt.Sprintf("blank%d", len(edits))
		with := name
		if at == end {
			with += " "
		}
		edits = append(edits, edit{at, end, with})
		return name
	}
	field := func(f *ast.Field) (names []string) {
		if len(f.Names) == 0 {
			at := offset(f.Type.Pos())
			return []string{blank(at, at)}
		}
		for _, id := range f.Names {
			name := id.Name
			if name == "_" {
				name = blank(offset(id.Pos()), offset(id.End()))
			}
			names = append(names, name)
		}
		return names
	}
	if fn.Recv != nil {
		field(fn.Recv.List[0]) // blank0, if it has no name
	}
	for _, f := range fn.Type.Params.List {
		names := field(f)
		if _, ok := f.Type.(*ast.Ellipsis); ok {
			names[0] += "..."
		}
		list = append(list, names...)
	}
	return edits, strings.Join(list, ", ")
}

func receiver(fn *ast.FuncDecl) string {
	if names := fn.Recv.List[0].Names; len(names) > 0 && names[0].Name != "_" {
		return names[0].Name
	}
	return "blank0"
}
