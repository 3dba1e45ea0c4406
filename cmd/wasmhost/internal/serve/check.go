package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"text/tabwriter"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Check says what a validated config would serve, or what is wrong with the files that it names.
func Check(ctx context.Context, c Config, out io.Writer) error {
	return c.lines.locate(check(ctx, c, out))
}

// check makes all that Run would make but listeners and connections.
func check(ctx context.Context, c Config, out io.Writer) error {
	front, err := edge.New(c.Edge, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
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
	printSettings(w, c, false)
	for i, r := range c.served() {
		if len(c.Routes) > 0 {
			fmt.Fprintf(w, "route\t%s\t%s\n", r.Name, r.Match)
		}
		if err := checkRoute(ctx, r.Config, w); err != nil && len(c.Routes) > 0 {
			return setting.At("routes."+strconv.Itoa(i), fmt.Errorf("route %q: %w", r.Name, err))
		} else if err != nil {
			return err
		}
	}
	return w.Flush()
}

// checkRoute makes a route's balancer.
func checkRoute(ctx context.Context, c Config, w io.Writer) (err error) {
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
		return setting.At("spec", err)
	}
	drawn, st := "", b.Stats()
	if st.Salt != 0 {
		drawn = "serve draws the seed at its start"
	}
	fmt.Fprintf(w, "policy\t%s\n", policyText(c.Spec, b.Spec(), drawn))
	for _, ep := range b.Endpoints() {
		fmt.Fprintf(w, "endpoint\t%s\t%s\n", ep.Name, ep.Addr)
	}
	printSettings(w, c, true)
	for _, text := range warnings(c, b.Spec(), st.Fit) {
		fmt.Fprintf(w, "warning\t%s\n", text)
	}
	return free()
}

func printSettings(w io.Writer, c Config, route bool) {
	for _, text := range changed(c, route) {
		fmt.Fprintf(w, "setting\t%s\n", text)
	}
}
