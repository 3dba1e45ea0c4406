package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/serve"
	"github.com/headroom-lb/headroom/engine/policy"
)

func newServeCmd() *cobra.Command {
	var (
		file      string
		endpoints []string
		flags     = serve.Defaults()
		level     slog.Level
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a reverse proxy whose policy is the WebAssembly module",
		Long: `serve is a reverse proxy. Each request is placed by the policy of --spec, which runs in the WebAssembly module
inside this binary, or in the one given with --module. Flags override the file given with --config.

The admin listener answers /metrics, /healthz, /readyz, /pool, /spec and POST /status; GET / lists them.
With routes in the file, each part of the requests has replicas, a policy and a pool of its own.
With --config, SIGHUP reads the file again: routes, endpoints, spec, module and certificate change under traffic, and a file that is wrong
changes nothing; without --config there is nothing to read, and the proxy serves on. SIGTERM closes the listener, waits for open requests, and exits 0.`,
		Example: `  wasmhost serve --endpoint http://127.0.0.1:9001 --endpoint http://127.0.0.1:9002
  wasmhost serve --listen :8080 --spec 'prequal quantile=0.9 probe_rate=2' --endpoint http://10.0.0.1:80
  wasmhost serve --endpoints-file endpoints.json
  wasmhost serve --config proxy.yaml
  curl -d '{"endpoint":"127.0.0.1:9001","status":"draining"}' http://127.0.0.1:9901/status`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is left over: give each replica as --endpoint URL", args[0])
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			read := func() (serve.Config, error) {
				c := serve.Defaults()
				if file != "" {
					if err := c.Load(file); err != nil {
						return c, err
					}
				}
				override(cmd, &c, flags, endpoints)
				c.Cache = cacheDir()
				return c, c.Validate()
			}
			c, err := read()
			if err != nil {
				return badInput("%w", err)
			}
			// SIGHUP is always caught: unheard it would end the proxy.
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			c.Hangup = hangup
			if file != "" || c.Edge.TLS() {
				c.Again = read
			}
			err = serve.Run(cmd.Context(), c, cmd.OutOrStdout(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})))
			var input *serve.InputError
			if errors.As(err, &input) {
				return badInput("%w", err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.TextVar(&level, "log-level", slog.LevelInfo, "debug, info, warn or error; debug has one decision in 100")
	f.StringVar(&file, "config", "", "YAML file of settings, named as their flags with _ for -; wasmhost check says what is wrong with one, and lists all")
	f.StringVar(&flags.Listen, "listen", flags.Listen, "address of the proxy")
	f.StringVar(&flags.Admin, "admin", flags.Admin, `address of the admin listener, or "off"`)
	f.StringArrayVar(&endpoints, "endpoint", nil, "base URL of a replica; give it once for each")
	f.StringVar(&flags.File, "endpoints-file", "", "JSON file with the replicas, watched for changes, instead of --endpoint")
	f.StringVar(&flags.Spec, "spec", flags.Spec, "policy and its settings")
	f.IntVar(&flags.Shards, "shards", flags.Shards, "policy instances, each a client with its own probes")
	f.StringVar(&flags.Engine, "engine", flags.Engine, "wasm or native")
	f.StringVar(&flags.Module, "module", "", "file of a module to run instead of the one inside")
	f.Int64Var(&flags.Fuel, "fuel", flags.Fuel, "with --module, loop iterations that one call may take")
	f.DurationVar((*time.Duration)(&flags.Drain), "drain", time.Duration(flags.Drain), "longest wait for open requests after SIGTERM")
	f.DurationVar((*time.Duration)(&flags.ProbeWait), "probe-wait", time.Duration(flags.ProbeWait), "with mode=sync, longest wait of a request for the answers to its probes")
	f.StringVar(&flags.Key, "key", "", "header of a request whose value is its key, for policies by key such as maglev")
	f.DurationVar((*time.Duration)(&flags.Record), "record", 0, "keep the decisions of the last so long for wasmhost record and replay, such as 30s")
	f.StringVar(&flags.TokenFile, "token-file", "", "file with a token that the admin listener asks of those who change something")
	f.StringVar(&flags.Hint, "hint", "", "with mode=sync, header of a request that its probes are told as x-prequal-hint")
	healthFlags(cmd, &flags.Health)
	attemptsFlags(cmd, &flags.Attempts)
	edgeFlags(cmd, &flags.Edge)
	complete(cmd, "engine", "wasm", "native")
	complete(cmd, "log-level", "debug", "info", "warn", "error")
	complete(cmd, "spec", policy.Names()...)
	for _, name := range []string{"listen", "admin", "endpoint", "shards", "fuel", "drain", "probe-wait", "key", "hint", "record"} {
		complete(cmd, name)
	}
	return cmd
}

// settingOf is the name in a file of what a flag gives.
func settingOf(flag string) string {
	if flag == "endpoint" {
		return "endpoints"
	}
	return strings.ReplaceAll(flag, "-", "_")
}

// override puts the flags that were given over the config.
func override(cmd *cobra.Command, c *serve.Config, flags serve.Config, endpoints []string) {
	all := map[string]func(){
		"listen":     func() { c.Listen = flags.Listen },
		"admin":      func() { c.Admin = flags.Admin },
		"spec":       func() { c.Spec = flags.Spec },
		"shards":     func() { c.Shards = flags.Shards },
		"engine":     func() { c.Engine = flags.Engine },
		"module":     func() { c.Module = flags.Module },
		"fuel":       func() { c.Fuel = flags.Fuel },
		"drain":      func() { c.Drain = flags.Drain },
		"key":        func() { c.Key = flags.Key },
		"hint":       func() { c.Hint = flags.Hint },
		"record":     func() { c.Record = flags.Record },
		"token-file": func() { c.TokenFile = flags.TokenFile },
		"probe-wait": func() { c.ProbeWait = flags.ProbeWait },
		"endpoint": func() {
			c.Endpoints = nil
			for _, url := range endpoints {
				c.Endpoints = append(c.Endpoints, serve.Endpoint{URL: url})
			}
		},
		"endpoints-file": func() { c.File = flags.File },
	}
	maps.Copy(all, healthOverrides(&c.Health, flags.Health))
	maps.Copy(all, attemptsOverrides(&c.Attempts, flags.Attempts))
	maps.Copy(all, edgeOverrides(&c.Edge, flags.Edge))
	for name, set := range all {
		if cmd.Flags().Changed(name) {
			set()
			c.Overridden(settingOf(name))
		}
	}
	// One flag overrides the file's other way to name the replicas; both flags are a mistake, which Validate finds.
	if one, other := cmd.Flags().Changed("endpoint"), cmd.Flags().Changed("endpoints-file"); one && !other {
		c.File = ""
	} else if other && !one {
		c.Endpoints = nil
	}
}
