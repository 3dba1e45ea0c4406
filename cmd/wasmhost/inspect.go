package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/wasm/dist"
)

// inspection is what inspect tells of a module.
type inspection struct {
	Module    string   `json:"module"`
	Size      int      `json:"size_bytes"`
	Digest    string   `json:"sha256"`
	ABI       string   `json:"abi"`
	Guard     string   `json:"guard"`
	Policies  []string `json:"policies"`
	Exports   []string `json:"exports"`
	Imports   []string `json:"imports"`
	Toolchain string   `json:"toolchain,omitempty"`
}

func newInspectCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect [MODULE]",
		Short: "Tell what a module is: ABI, guard, policies, size, digest, exports, imports",
		Long: `inspect loads a module as the proxy would, checks its ABI, and tells what it is, and what ends a call that would
go on for ever. Without MODULE it is the one inside this binary, which needs no such guard.`,
		Example: `  wasmhost inspect
  wasmhost inspect --json my-policy.wasm`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: filesFor(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, file := "built in", ""
			if len(args) == 1 {
				name, file = args[0], args[0]
			}
			wasm, err := readModule(file)
			if err != nil {
				return err
			}
			r, m, err := load(cmd.Context(), wasm)
			if errors.Is(err, host.ErrModule) {
				return badInput("%s: %w", name, err)
			}
			if err != nil {
				return err
			}
			defer r.Close(cmd.Context())
			i := inspection{
				Module: name, Size: m.Size(), Digest: m.DigestText(), ABI: fmt.Sprintf("%d.%d", m.ABI().Major, m.ABI().Minor),
				Guard: m.Guard().String(), Policies: m.Policies(), Exports: m.Exports(), Imports: m.Imports(),
			}
			if wasm == nil {
				i.Toolchain = dist.Toolchain()
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), i)
			}
			return i.write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (i *inspection) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "module     %s\nsize       %d bytes\nsha256     %s\nABI        %s\nguard      %s\npolicies   %s\n",
		i.Module, i.Size, i.Digest, i.ABI, i.Guard, strings.Join(i.Policies, " "))
	if err == nil && i.Toolchain != "" {
		_, err = fmt.Fprintf(w, "toolchain  %s\n", i.Toolchain)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "exports\n  %s\nimports\n  %s\n", strings.Join(i.Exports, "\n  "), strings.Join(i.Imports, "\n  "))
	}
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
