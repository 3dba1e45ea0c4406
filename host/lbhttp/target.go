package lbhttp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// errAddress is an endpoint that no request can be sent to.
var errAddress = errors.New("bad endpoint address")

// address rewrites u to point at a replica. An address is a base URL such as
// http://10.0.0.1:9001 or https://host/prefix; a bare host:port means http. A prefix is put before
// the path that was asked for.
func address(u *url.URL, addr string) error {
	scheme, rest, ok := strings.Cut(addr, "://")
	if !ok {
		scheme, rest = "http", addr
	}
	// The plain form needs no parsing, and every query passes here.
	if rest != "" && (scheme == "http" || scheme == "https") && !strings.ContainsAny(rest, "/?#@%\\[ ") {
		u.Scheme, u.Host = scheme, rest
		return nil
	}
	base, err := url.Parse(scheme + "://" + rest)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return fmt.Errorf("%w: %q is not a base URL such as http://10.0.0.1:9001", errAddress, addr)
	}
	if base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return fmt.Errorf("%w: %q may have no user, query or fragment", errAddress, addr)
	}
	if prefix := strings.TrimSuffix(base.EscapedPath(), "/"); prefix != "" {
		escaped := prefix + slashed(u.EscapedPath())
		u.Path, u.RawPath = strings.TrimSuffix(base.Path, "/")+slashed(u.Path), ""
		if u.EscapedPath() != escaped {
			u.RawPath = escaped
		}
	}
	u.Scheme, u.Host = base.Scheme, base.Host
	return nil
}

func slashed(path string) string {
	if path == "" || path[0] == '/' {
		return path
	}
	return "/" + path
}
