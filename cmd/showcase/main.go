// Command showcase serves the live page: two balancers, the same queries, side by side.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/showcase"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "showcase:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// usageError is a mistake in the command line: exit 2.
type usageError struct{ error }

// engines are what may decide.
var engines = []string{"wasm", "native"}

// options are the command's flags.
type options struct {
	listen  string
	engine  string
	rooms   int
	viewers int
	origins []string
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "showcase",
		Short: "Serve the live page: two load balancers, the same queries, side by side",
		Long: "Serve the live page. Every query of a simulated fleet arrives twice, at the same instant: once for\n" +
			"policy A, once for policy B. The embedded WebAssembly engine decides; the page shows what becomes of it.",
		Example: "  showcase                                  serve on http://127.0.0.1:8080\n" +
			"  showcase simulate --list                  what else there is to see, without a page\n" +
			"  showcase --listen 127.0.0.1:0             on any free port\n" +
			"  showcase --listen :9000 --origin demo.example.com\n" +
			"  showcase --engine native                  decide without WebAssembly\n\n" +
			"A link holds a whole scene:\n" +
			"  http://127.0.0.1:8080/?a=prequal&b=random&load=1.2&noisy=6&q=0.5&seed=11",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q; see showcase --help", args[0])}
			}
			return nil
		},
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return run(c, o) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see showcase --help", err)}
	})
	c.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`address` to serve on")
	f.StringVar(&o.engine, "engine", "wasm", "what decides: "+strings.Join(engines, " or "))
	f.IntVar(&o.rooms, "rooms", 4, "most scenes at once; each takes up to a third of a core while it is watched")
	f.IntVar(&o.viewers, "viewers", 256, "most open pages at once")
	f.StringSliceVar(&o.origins, "origin", nil, "further `host` pattern whose pages may connect; repeatable")
	err := c.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(engines, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is defined above
	}
	c.AddCommand(newSimulateCmd())
	return c
}

// version names the build: the module's version where Go knows it, and the toolchain.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func run(c *cobra.Command, o options) error {
	ctx := c.Context()
	if o.rooms < 1 || o.viewers < 1 {
		return usageError{errors.New("--rooms and --viewers must be at least 1")}
	}
	if !slices.Contains(engines, o.engine) {
		return usageError{fmt.Errorf("--engine %s: must be %s", o.engine, strings.Join(engines, " or "))}
	}
	// The port first: a mistake there should not wait for the module to compile.
	l, err := net.Listen("tcp", o.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use; choose another address with --listen, for example --listen 127.0.0.1:0", o.listen)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; give an address of this machine with --listen host:port", o.listen, err)
	}
	defer l.Close()
	eng := showcase.NativeEngine()
	if o.engine == "wasm" {
		if eng, err = showcase.WasmEngine(ctx); err != nil {
			return err
		}
	}
	defer eng.Close()
	s, err := showcase.NewServer(showcase.Config{
		Engine: eng, Rooms: o.rooms, Sockets: o.viewers, PerHost: max(8, o.viewers/4), Origins: o.origins,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(c.OutOrStdout(), "Headroom showcase on http://%s/ (engine %s %.12s)\n", l.Addr(), eng.Kind, eng.Digest)
	return serve(ctx, l, s)
}

// serve answers until ctx ends, then lets open requests finish.
func serve(ctx context.Context, l net.Listener, s *showcase.Server) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.Close() // sockets first: they would keep the shutdown waiting
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return h.Shutdown(ctx)
}
