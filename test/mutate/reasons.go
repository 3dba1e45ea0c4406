package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reason says why a mutant may survive. The list is reviewed like code: a mutant that changes
// nothing that anybody can see is one; a test that nobody has written is not.
type reason struct {
	line int
	key  string
	why  string
}

// readReasons parses blocks set apart by blank lines; lines that start with # are comments:
//
//	engine/probe/use.go Later
//	if at > never-engine.Instant(d) {
//	> becomes >=
//	why nothing changes, on one line or more
func readReasons(path string) (map[string]*reason, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]*reason{}
	var block []string
	first := 0
	end := func() error {
		if len(block) == 0 {
			return nil
		}
		if len(block) < 4 {
			return fmt.Errorf("%s:%d: want file and function, line, mutation and reason", path, first)
		}
		file, fn, _ := strings.Cut(block[0], " ")
		r := &reason{line: first, key: strings.Join([]string{file, fn, block[1], block[2]}, "\n"), why: strings.Join(block[3:], " ")}
		if out[r.key] != nil {
			return fmt.Errorf("%s:%d: the same mutant as in line %d", path, first, out[r.key].line)
		}
		out[r.key], block = r, nil
		return nil
	}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			if err := end(); err != nil {
				return nil, err
			}
		case line[0] == '#':
		default:
			if len(block) == 0 {
				first = i + 1
			}
			block = append(block, line)
		}
	}
	return out, end()
}

// stale names the reasons for mutants that the sources no longer have. Files that are there and
// are not mutated this time say nothing.
func stale(root, path string, reasons map[string]*reason, all []*job) (bad []string) {
	have, files := map[string]bool{}, map[string]bool{}
	for _, j := range all {
		have[j.key()], files[j.File] = true, true
	}
	for _, r := range slices.SortedFunc(maps.Values(reasons), func(a, b *reason) int { return a.line - b.line }) {
		file, _, _ := strings.Cut(r.key, "\n")
		_, err := os.Stat(filepath.Join(root, file))
		if !have[r.key] && (files[file] || err != nil) {
			bad = append(bad, fmt.Sprintf("%s:%d: stale: no such mutant in %s any more", path, r.line, file))
		}
	}
	return bad
}
