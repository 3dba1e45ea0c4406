package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// adminClient speaks to the admin listener of a running proxy.
type adminClient struct {
	base  string
	token string
	route string // that calls are about; empty for the only one
}

// newAdminClient checks the address and reads the token's file, if there is one.
func newAdminClient(address, tokenFile, route string) (*adminClient, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, badInput("%q is not the address of an admin listener: give one such as http://127.0.0.1:9901", address)
	}
	c := &adminClient{base: strings.TrimSuffix(u.String(), "/"), route: route}
	if tokenFile != "" {
		text, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, badInput("--token-file: %w", err)
		}
		c.token = strings.TrimSpace(string(text))
	}
	return c, nil
}

// call makes a request and returns the open answer. A refusal is an error in the proxy's own words.
func (c *adminClient) call(ctx context.Context, method, path string, query url.Values, kind string, body []byte) (io.ReadCloser, error) {
	target := c.base + path
	if c.route != "" {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("route", c.route)
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer from the admin listener: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
	err = fmt.Errorf("%s refused: %s", path, strings.TrimSpace(string(text)))
	if resp.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("%w, or --token-file FILE", err)
	}
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnprocessableEntity {
		return nil, &inputError{err}
	}
	return nil, err
}

// do is call for answers that are printed as they come.
func (c *adminClient) do(ctx context.Context, out io.Writer, method, path string, query url.Values, kind string, body []byte) error {
	answer, err := c.call(ctx, method, path, query, kind, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(out, answer)
	return err
}

func jsonBody(v any) []byte {
	b, err := json.Marshal(v)
	must(err)
	return b
}
