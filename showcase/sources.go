package showcase

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// The sources that the figures of an experiment follow from, besides the engine's.
//
//go:embed sim/*.go experiment/*.go
var sources embed.FS

// SourcesDigest identifies the simulator and the experiments in this program: the same on every
// machine and for every toolchain, whatever the tests say.
func SourcesDigest() string {
	h := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		panic(err) // it is part of the program
	}
	return hex.EncodeToString(h.Sum(nil))
}
