package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/replicaproc"
)

func newReplicaCmd() *cobra.Command {
	var (
		listen, name string
		seed         uint64
		drain        time.Duration
		s            = replicaproc.Defaults()
	)
	cmd := &cobra.Command{
		Use:   "replica",
		Short: "Serve as a controllable HTTP replica that answers probes",
		Long: `replica is a server to try balancers with. Queries wait in order of arrival for a free slot, then take the service
time: a fifth of the mean fixed, the rest exponential. It sleeps instead of computing, so that its queue and not the
machine's cores carries the load. A noisy neighbour can slow it in spells or always, and it can fail on request.

  GET  /prequal/probe   the load of the moment, for Prequal
  GET  /healthz         ok
  GET  /control         settings and counts
  POST /control         change settings while it runs: {"slots":2,"service":"80ms","slow_share":1}
  any other path        a query; the header X-Work-Us sets its service time`,
		Example: `  wasmhost replica --listen 127.0.0.1:9001
  wasmhost replica --listen 127.0.0.1:9002 --slow-share 0.2 --slow-factor 3
  curl -d '{"error_rate":0.5,"fail_fast":true}' http://127.0.0.1:9001/control`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := lifecycle.CheckAddr("--listen", listen); err != nil {
				return badInput("%w", err)
			}
			if name == "" {
				name = listen
			}
			if seed == 0 {
				seed = rand.Uint64()
			}
			r, err := replicaproc.New(name, s, seed)
			if err != nil {
				return badInput("%w", err)
			}
			ln, err := lifecycle.Listen("--listen", listen)
			if err != nil {
				return err
			}
			srv := lifecycle.Start(ln, r.Handler())
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			fmt.Fprintf(cmd.OutOrStdout(), "replica %s listens on http://%s\n", name, ln.Addr())
			select {
			case err := <-srv.Failed():
				return err
			case <-cmd.Context().Done():
			}
			log.Info("draining", "serving", r.State().Serving, "waiting", r.State().Waiting)
			if err := srv.Drain(drain); err != nil {
				return err
			}
			log.Info("stopped")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:9001", "address to serve on")
	f.StringVar(&name, "name", "", "name sent back with every answer (default: the address)")
	f.Uint64Var(&seed, "seed", 0, "seed of the service times and faults; 0 draws one")
	f.DurationVar(&drain, "drain", 10*time.Second, "longest wait for open queries after SIGTERM")
	f.IntVar(&s.Slots, "slots", s.Slots, "queries served at the same time")
	f.DurationVar((*time.Duration)(&s.Service), "service", time.Duration(s.Service), "mean service time")
	f.Float64Var(&s.SlowFactor, "slow-factor", s.SlowFactor, "how much longer service takes beside a noisy neighbour")
	f.Float64Var(&s.SlowShare, "slow-share", s.SlowShare, "share of the time that the neighbour is noisy")
	f.DurationVar((*time.Duration)(&s.SlowSpell), "slow-spell", time.Duration(s.SlowSpell), "mean length of a noisy spell")
	f.Float64Var(&s.ErrorRate, "error-rate", s.ErrorRate, "share of the queries that fail")
	f.IntVar(&s.ErrorStatus, "error-status", s.ErrorStatus, "status of the queries that fail")
	f.BoolVar(&s.FailFast, "fail-fast", s.FailFast, "fail at once, without waiting for a slot")
	return cmd
}
