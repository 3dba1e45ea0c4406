package showcase

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

const assetPrefix = "/static/"

// assets are the page's files, served under a name that changes with their content, so that a
// browser keeps them for ever and never mixes two versions.
type assets struct {
	hash  string
	files map[string]asset
}

type asset struct {
	kind        string
	plain, gzip []byte
}

func loadAssets(files fs.FS) (*assets, error) {
	a := &assets{files: make(map[string]asset)}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum.Write([]byte(name))
		sum.Write(data)
		var small bytes.Buffer
		z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(data); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		kind := mime.TypeByExtension(path.Ext(name))
		if path.Ext(name) == ".js" { // some systems' tables know it by another name
			kind = "text/javascript; charset=utf-8"
		}
		a.files[name] = asset{kind: kind, plain: data, gzip: small.Bytes()}
		return nil
	})
	a.hash = hex.EncodeToString(sum.Sum(nil))[:12]
	return a, err
}

// url is the address of a file.
func (a *assets) url(name string) string { return assetPrefix + a.hash + "/" + name }

// modules are the addresses of all scripts, for the browser to fetch at once.
func (a *assets) modules() []string {
	var out []string
	for name := range a.files {
		if strings.HasSuffix(name, ".js") {
			out = append(out, a.url(name))
		}
	}
	slices.Sort(out)
	return out
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, assetPrefix), "/")
	f, ok := a.files[name]
	if !ok || hash != a.hash {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	_, _ = w.Write(body)
}
