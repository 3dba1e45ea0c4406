package showcase

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The sources that the figures of an experiment follow from, besides the engine's.
//
//go:embed sim/*.go experiment/*.go
var sources embed.FS

// judging are the files of the experiments that measure nothing: what is in them may change without
// making a journal of runs stale. So may what an experiment says about its figures, in a file
// whose name ends in _report.go.
var judging = []string{
	"claim.go", "experiment.go", "journal.go", "line.go", "output.go", "plot.go", "published.go", "registry.go", "result.go",
	"study.go", "work.go",
}

// SourcesDigest identifies what the simulator and the experiments in this program measure: the
// same on every machine and for every toolchain.
func SourcesDigest() string { return digest(sources) }

func digest(files fs.FS) string {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if dir, file := path.Split(name); dir == "experiment/" && (strings.HasSuffix(file, "_report.go") || slices.Contains(judging, file)) {
			return nil
		}
		text, err := fs.ReadFile(files, name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		return err
	})
	if err != nil {
		panic(err) // it is part of the program
	}
	return hex.EncodeToString(h.Sum(nil))
}
