package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Check says what a validated config would serve, or what is wrong with the files that it names.
func Check(ctx context.Context, c Config, out io.Writer) error {
	return c.lines.locate(check(ctx, c, out))
}

// check makes all that Run would make but listeners and connections.
func check(ctx context.Context, c Config, out io.Writer) (err error) {
	front, err := edge.New(c.Edge, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if c.File != "" {
		if c.Endpoints, err = readEndpoints(c.File); err != nil {
			return setting.At("endpoints_file", err)
		}
	}
	b, _, free, err := newBalancer(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil && c.Module != "" {
		return setting.At("module", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "listen\t%s://%s\t%s\n", c.Edge.Scheme(), c.Listen, c.Edge.Protocols())
	if shown := front.Certificates(); shown != nil {
		fmt.Fprintf(w, "certificate\t%s\tuntil %s\n", c.Edge.TLSCert, shown.Expires().UTC().Format("2006-01-02 15:04 MST"))
	}
	if c.Admin == AdminOff {
		fmt.Fprint(w, "admin\toff\n")
	} else {
		fmt.Fprintf(w, "admin\thttp://%s\n", c.Admin)
	}
	fmt.Fprintf(w, "policy\t%s\n", policyText(c.Spec, b.Spec()))
	for _, ep := range b.Endpoints() {
		fmt.Fprintf(w, "endpoint\t%s\t%s\n", ep.Name, ep.Addr)
	}
	return w.Flush()
}
