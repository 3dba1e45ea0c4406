// Package web embeds the browser's side of the showcase: plain ES modules and one style sheet,
// served as they are written.
package web

import (
	"embed"
	"io/fs"
)

//go:embed static
var static embed.FS

// Static is the tree of files.
func Static() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the embedded tree has that folder
	}
	return sub
}
