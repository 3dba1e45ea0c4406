package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// site is one place where one mutation can be made. File, Func, Text and Label name it in the
// list of reasons, whatever its line is by then.
type site struct {
	File  string // path from the module's root, with slashes
	Func  string // "(*Pool).remove", or "" outside functions
	Text  string // the source line, without its indentation
	Label string // what is done to it, with "#2" for a second such place in such a line
	Line  int

	start, end int // bytes that are replaced
	with       string
}

func (s *site) key() string { return s.File + "\n" + s.Func + "\n" + s.Text + "\n" + s.Label }

// mutated is the source with the mutation made.
func (s *site) mutated(src []byte) []byte {
	out := append([]byte(nil), src[:s.start]...)
	return append(append(out, s.with...), src[s.end:]...)
}

// diff shows the lines that the mutation touches, before and after.
func (s *site) diff(src []byte) string {
	from := strings.LastIndexByte(string(src[:s.start]), '\n') + 1
	to := len(src)
	if i := strings.IndexByte(string(src[s.end:]), '\n'); i >= 0 {
		to = s.end + i
	}
	was := string(src[from:to])
	is := string(src[from:s.start]) + s.with + string(src[s.end:to])
	return "-" + strings.ReplaceAll(was, "\n", "\n-") + "\n+" + strings.ReplaceAll(is, "\n", "\n+")
}

// swaps are the operators that stand in for each other: the neighbour that a slip would give.
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR, token.OR: token.AND,
	token.XOR: token.AND, token.AND_NOT: token.AND,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN,
	token.QUO_ASSIGN: token.MUL_ASSIGN, token.REM_ASSIGN: token.MUL_ASSIGN,
	token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN, token.AND_ASSIGN: token.OR_ASSIGN,
	token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN, token.AND_NOT_ASSIGN: token.AND_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC, token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

// words are the names that stand in for each other.
var words = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// finder walks a file and collects its sites.
type finder struct {
	fset  *token.FileSet
	file  string
	src   []byte
	lines []string
	fn    string
	types []*ast.FuncType // of the functions around
	seen  map[string]int
	found []site
}

// find lists every mutation of a file, in order of position within each kind of node.
func find(file string, src []byte) ([]site, error) {
	f := &finder{fset: token.NewFileSet(), file: file, src: src, lines: strings.Split(string(src), "\n"), seen: map[string]int{}}
	parsed, err := parser.ParseFile(f.fset, file, src, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.fn = nameOf(d)
			f.types = []*ast.FuncType{d.Type}
			if d.Body != nil {
				f.walk(d.Body)
			}
		case *ast.GenDecl:
			f.fn, f.types = "", nil
			if d.Tok != token.IMPORT {
				f.walk(d)
			}
		}
	}
	return f.found, nil
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	switch t := d.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		if id, ok := t.X.(*ast.Ident); ok {
			return "(*" + id.Name + ")." + d.Name.Name
		}
	case *ast.Ident:
		return t.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (f *finder) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.types = append(f.types, n.Type)
			f.walk(n.Body)
			f.types = f.types[:len(f.types)-1]
			return false
		case *ast.BinaryExpr:
			f.swap(n.OpPos, n.Op)
		case *ast.BranchStmt:
			if n.Label == nil {
				f.swap(n.TokPos, n.Tok)
			}
		case *ast.IncDecStmt:
			f.swap(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			f.swap(n.TokPos, n.Tok)
		case *ast.BasicLit:
			f.literal(n)
		case *ast.Ident:
			if to, ok := words[n.Name]; ok {
				f.add(n.Pos(), n.End(), to, n.Name+" becomes "+to)
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT || n.Op == token.SUB {
				f.add(n.OpPos, n.OpPos+1, "", n.Op.String()+" dropped")
			}
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.condition(n.Cond)
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.ReturnStmt:
			f.results(n)
		}
		return true
	})
}

func (f *finder) swap(at token.Pos, op token.Token) {
	if to, ok := swaps[op]; ok {
		f.add(at, at+token.Pos(len(op.String())), to.String(), op.String()+" becomes "+to.String())
	}
}

// literal moves a whole number by one, either way.
func (f *finder) literal(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	v, err := strconv.ParseUint(n.Value, 0, 64)
	if err != nil {
		return
	}
	if v+1 != 0 {
		f.add(n.Pos(), n.End(), strconv.FormatUint(v+1, 10), n.Value+" becomes "+strconv.FormatUint(v+1, 10))
	}
	if v > 0 {
		f.add(n.Pos(), n.End(), strconv.FormatUint(v-1, 10), n.Value+" becomes "+strconv.FormatUint(v-1, 10))
	}
}

// condition negates what no operator of its own stands for.
func (f *finder) condition(e ast.Expr) {
	switch e := e.(type) {
	case nil, *ast.BinaryExpr:
		return
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return
		}
	}
	f.add(e.Pos(), e.End(), "!("+f.text(e)+")", "condition negated")
}

// statements removes what can go without a trace: assignments, counts and calls.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blankOnly(s) {
				continue
			}
		case *ast.IncDecStmt, *ast.ExprStmt:
		default:
			continue
		}
		f.add(s.Pos(), s.End(), "", "removed")
	}
}

// blankOnly is an assignment to nothing: a hint to the compiler.
func blankOnly(s *ast.AssignStmt) bool {
	for _, l := range s.Lhs {
		if id, ok := l.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// results negates returned booleans and forgets returned errors.
func (f *finder) results(r *ast.ReturnStmt) {
	kinds := resultKinds(f.types)
	if len(r.Results) != len(kinds) {
		return
	}
	for i, e := range r.Results {
		id, name := e.(*ast.Ident)
		switch {
		case kinds[i] == "bool" && !(name && words[id.Name] != ""):
			f.add(e.Pos(), e.End(), "!("+f.text(e)+")", "result negated")
		case kinds[i] == "error" && !(name && id.Name == "nil"):
			f.add(e.Pos(), e.End(), "nil", "error forgotten")
		}
	}
}

func resultKinds(types []*ast.FuncType) (kinds []string) {
	if len(types) == 0 || types[len(types)-1].Results == nil {
		return nil
	}
	for _, field := range types[len(types)-1].Results.List {
		kind := ""
		if id, ok := field.Type.(*ast.Ident); ok {
			kind = id.Name
		}
		for range max(1, len(field.Names)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

func (f *finder) add(from, to token.Pos, with, label string) {
	start, end := f.fset.Position(from), f.fset.Position(to)
	s := site{
		File: f.file, Func: f.fn, Text: strings.TrimSpace(f.lines[start.Line-1]), Label: label, Line: start.Line,
		start: start.Offset, end: end.Offset, with: with,
	}
	f.seen[s.key()]++
	if n := f.seen[s.key()]; n > 1 {
		s.Label = fmt.Sprintf("%s #%d", label, n)
	}
	f.found = append(f.found, s)
}
