package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/engine"
)

// Exit codes of every command.
const (
	exitOK      = 0
	exitFailure = 1 // it was asked rightly and did not work
	exitInput   = 2 // it was asked wrongly: flags, settings or a file
)

// inputError marks an error as the caller's to mend: exit 2.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// badInput makes an [inputError]; %w works as in fmt.Errorf.
func badInput(format string, args ...any) error {
	return &inputError{fmt.Errorf(format, args...)}
}

// run executes one command line and returns the exit code. An error is one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false
	root := newRootCmd()
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Only after this would cobra look at flags that exclude each other, and those are a mistake of usage too.
		err := cmd.ValidateFlagGroups()
		started = err == nil
		return err
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	hint := ""
	if !started {
		hint = " (see " + cmd.CommandPath() + " --help)"
	}
	fmt.Fprintf(stderr, "wasmhost: %s%s\n", oneLine(err.Error()), hint)
	var input *inputError
	if !started || errors.As(err, &input) || errors.Is(err, engine.ErrConfig) {
		return exitInput
	}
	return exitFailure
}

// oneLine folds what a library wrote on several lines.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "wasmhost",
		Short: "Run load-balancing policies, compiled to WebAssembly, for real traffic",
		Long: `wasmhost runs Headroom's load-balancing policies. The policy engine is a WebAssembly module inside this
binary; every decision below is made by it.

Start with "wasmhost demo": it needs no set-up and compares the policies on real HTTP replicas.

Exit codes: 0 worked, 1 failed, 2 was asked wrongly.`,
		Example: `  wasmhost demo
  wasmhost replica --listen 127.0.0.1:9001
  wasmhost serve --endpoint http://127.0.0.1:9001 --endpoint http://127.0.0.1:9002`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(newDemoCmd(), newServeCmd(), newCheckCmd(), newReplicaCmd(), newReplayCmd(), newSwapCmd(), newRecordCmd(), newInspectCmd(),
		newVerifyCmd(), newBenchCmd())
	return root
}

// version names the build: the module's version where Go knows it, and the toolchain.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
