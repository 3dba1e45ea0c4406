package lbhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
	"github.com/headroom-lb/headroom/host/replica"
)

// ProbeURL probes a replica by GET of a path under its address; the empty path is the default of
// package replica. It understands the probe protocol, ORCA load reports in TEXT and JSON form,
// and the headers and JSON members of other programs that answer probes, each in its own unit. A
// latency of zero counts as unknown. A probe for one query carries its [host.Hint]. An answer other than 200, one without RIF, one with a number
// that makes no sense, or one longer than 4 KB is an error.
//
// The context bounds a probe in time. A nil client is one of our own, which keeps up to four idle
// connections to each replica, follows no redirect, and reads at most 8 KB of headers.
func ProbeURL(client *http.Client, path string) host.ProbeFunc {
	if client == nil {
		client = probeClient()
	}
	if path == "" {
		path = replica.DefaultPath
	}
	want := url.URL{Path: slashed(path)}
	return func(ctx context.Context, ep host.Endpoint) (engine.Reading, error) {
		target := want
		if err := address(&target, ep.Addr); err != nil {
			return engine.Reading{}, err
		}
		req := (&http.Request{Method: http.MethodGet, URL: &target, Header: http.Header{}}).WithContext(ctx)
		if hint := host.Hint(ctx); replica.ValidHint(hint) {
			req.Header[replica.HeaderHint] = []string{hint}
		}
		resp, err := client.Do(req)
		if err != nil {
			return engine.Reading{}, err
		}
		defer resp.Body.Close()
		rd, err := answer(resp)
		if err != nil {
			return engine.Reading{}, fmt.Errorf("probe %s: %w", &target, err)
		}
		return rd, nil
	}
}

// answer reads a probe's answer, headers first. The body is read to its end in any case, within
// bounds, so that the connection can be used again.
func answer(resp *http.Response) (engine.Reading, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return engine.Reading{}, fmt.Errorf("status %d, want 200", resp.StatusCode)
	case err != nil:
		return engine.Reading{}, err
	case len(body) > maxAnswer:
		return engine.Reading{}, fmt.Errorf("answer longer than %d bytes", maxAnswer)
	}
	rd, err := headerReading(resp.Header, headerDialects)
	if errors.Is(err, errNoReading) {
		return bodyReading(body)
	}
	return rd, err
}

func probeClient() *http.Client {
	t := defaultBase()
	t.MaxIdleConnsPerHost = 4
	t.MaxResponseHeaderBytes = 8 << 10
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
