package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/replay"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/trace"
)

func newReplayCmd() *cobra.Command {
	var module, expect string
	o := replay.Options{Explain: -1, Segment: -1}
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Play a trace or a recording and check every decision",
		Long: `replay makes the calls of a trace on a fresh policy and prints one JSON line for each decide and probes line.
TRACE is a file of JSON lines, or - for standard input. With --engine both, the native engine and the module
play in step, and the first difference ends the run with exit code 1.

TRACE may also be a recording of a running balancer (wasmhost record). Its machines are played from the states
they had, and replay says whether every answer is as recorded: exit code 1 if not. With --spec it is a
counterfactual run, which says where another policy would have gone another way.`,
		Example: `  wasmhost replay trace.jsonl
  wasmhost replay --engine both trace.jsonl
  wasmhost replay --expect golden.jsonl trace.jsonl
  wasmhost replay --spec 'prequal seed=7 quantile=0.5' --explain 12 trace.jsonl
  wasmhost replay --engine both today.rec
  wasmhost replay --spec least_loaded today.rec
  wasmhost replay --segment 3 today.rec > trace.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("give a TRACE: a file of JSON lines, or - for standard input")
			case len(args) > 1:
				return fmt.Errorf("%q is left over: give one TRACE", args[1])
			}
			return nil
		},
		ValidArgsFunction: filesFor(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch o.Engine {
			case "wasm", "native", "both":
			default:
				return badInput("--engine %s: want wasm, native or both", o.Engine)
			}
			if cmd.Flags().Changed("segment") && o.Segment < 0 {
				return badInput("--segment %d: segments are counted from 0", o.Segment)
			}
			if o.Fuel < host.LeastFuel || o.Fuel > host.MostFuel {
				return badInput("--fuel %d: want %d to %d", o.Fuel, host.LeastFuel, host.MostFuel)
			}
			if cmd.Flags().Changed("explain") && o.Explain < 0 {
				return badInput("--explain %d: placements are counted from 0", o.Explain)
			}
			in, err := open(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			if expect != "" {
				f, err := openFile(expect)
				if err != nil {
					return badInput("--expect: %w", err)
				}
				defer f.Close()
				o.Expect = f
			}
			if o.Module, err = readModule(module); err != nil {
				return err
			}
			o.File, o.Cache = args[0], cacheDir()
			err = replay.Run(cmd.Context(), in, cmd.OutOrStdout(), o)
			var line *trace.LineError
			var damaged *trace.RecordingError
			if errors.As(err, &line) || errors.As(err, &damaged) || errors.Is(err, replay.ErrNoSegment) || errors.Is(err, host.ErrModule) || errors.Is(err, replay.ErrNoPlacement) {
				return badInput("%w", err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Engine, "engine", "wasm", "wasm, native, or both in step")
	f.StringVar(&o.Spec, "spec", "", "policy and settings in place of the trace's own")
	f.StringVar(&module, "module", "", "file of a module to run instead of the one inside")
	f.Int64Var(&o.Fuel, "fuel", host.DefaultFuel, "with --module, loop iterations that one call may take")
	f.StringVar(&expect, "expect", "", "file that the output must equal, line by line")
	f.IntVar(&o.Explain, "explain", -1, "say in words why placement `N` fell as it did, instead of the output")
	f.IntVar(&o.Segment, "segment", -1, "print segment `N` of a recording as a trace, and play nothing")
	f.BoolVar(&o.Lines, "lines", false, "print every answer of a recording too")
	complete(cmd, "engine", "wasm", "native", "both")
	complete(cmd, "spec", policy.Names()...)
	return cmd
}

func open(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	f, err := openFile(name)
	if err != nil {
		return nil, badInput("%w", err)
	}
	return f, nil
}

// openFile opens what can be read: a folder can be opened, and only reading it would fail.
func openFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder: give a file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
