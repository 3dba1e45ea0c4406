package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/internal/terminal"
)

func newRecordCmd() *cobra.Command {
	var output, token, route string
	var last, wait time.Duration
	cmd := &cobra.Command{
		Use:   "record ADMIN_URL",
		Short: "Fetch what a running proxy recorded, for replay",
		Long: `record fetches the last decisions of a running "wasmhost serve --record", with everything that they were made
of, as a file that "wasmhost replay" plays and explains. With --wait it first waits, and fetches what was recorded
meanwhile.`,
		Example: `  wasmhost record 127.0.0.1:9901 -o now.rec
  wasmhost record 127.0.0.1:9901 --last 10s -o now.rec
  wasmhost record 127.0.0.1:9901 --wait 20s -o next.rec
  wasmhost record 127.0.0.1:9901 | wasmhost replay -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newAdminClient(args[0], token, route)
			if err != nil {
				return err
			}
			if last < 0 || wait < 0 {
				return badInput("--last and --wait: give more than 0")
			}
			if output == "" && terminal.Is(cmd.OutOrStdout()) {
				return badInput("a recording is no text for a terminal: give -o FILE, or a pipe")
			}
			if wait > 0 {
				if err := sleep(cmd.Context(), wait); err != nil {
					return err
				}
				last = wait
			}
			query := url.Values{}
			if last > 0 {
				query.Set("last", last.String())
			}
			answer, err := c.call(cmd.Context(), "GET", "/record", query, "", nil)
			if err != nil {
				return err
			}
			defer answer.Close()
			if output == "" {
				_, err = io.Copy(cmd.OutOrStdout(), answer)
				return err
			}
			n, err := writeFile(output, answer)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes; play it with: wasmhost replay %s\n", output, n, output)
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "file to write; standard output without it")
	f.DurationVar(&last, "last", 0, "only what was recorded within the last so long")
	f.DurationVar(&wait, "wait", 0, "wait so long, then fetch what was recorded meanwhile")
	f.StringVar(&route, "route", "", "route that it is about, where the proxy has several")
	f.StringVar(&token, "token-file", "", "file with the admin listener's token")
	cmd.MarkFlagsMutuallyExclusive("last", "wait")
	complete(cmd, "route")
	return cmd
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeFile leaves no half of a file behind. Its errors name the file that was asked for.
func writeFile(name string, from io.Reader) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".recording-*")
	if err != nil {
		return 0, badInput("-o %s: %w", name, bare(err))
	}
	n, err := io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return 0, fmt.Errorf("-o %s: %w", name, bare(err))
	}
	return n, nil
}

// bare is an error of a file without the path: that is of the file beside the one asked for.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
