package edge

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Upstream makes the transports to endpoints: of requests, of probes and of health checks, all with the same
// authorities and protocols. The zero value has the system's authorities.
type Upstream struct {
	roots *x509.CertPool // nil for the system's
	h2c   bool
}

// NewUpstream reads the file of authorities, if there is one.
func NewUpstream(c Config) (Upstream, error) {
	roots, err := authorities(c.UpstreamCA)
	return Upstream{roots: roots, h2c: c.UpstreamH2C}, err
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--upstream-ca %s cannot be read: %w", file, errors.Unwrap(err))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--upstream-ca %s holds no certificate: give a PEM file of the authorities that signed those of the endpoints", file)
	}
	return roots, nil
}

// Requests carries queries.
func (u Upstream) Requests() http.RoundTripper { return u.byScheme(256, 0) }

// Probes carries probes, whose answers are short.
func (u Upstream) Probes() *http.Client {
	return &http.Client{Transport: u.byScheme(4, 8<<10), CheckRedirect: asItCame}
}

// Checks carries health checks: each comes as a new client would.
func (u Upstream) Checks() *http.Client {
	rt := u.byScheme(4, 0)
	rt.one.DisableKeepAlives = true
	if rt.two != nil {
		rt.two.DisableKeepAlives = true
	}
	return &http.Client{Transport: rt, CheckRedirect: asItCame}
}

func asItCame(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (u Upstream) byScheme(idle int, header int64) *byScheme {
	rt := &byScheme{one: u.transport(idle, header)}
	if u.h2c {
		rt.two = u.transport(idle, header)
		rt.two.Protocols = new(http.Protocols)
		rt.two.Protocols.SetUnencryptedHTTP2(true)
	}
	return rt
}

// transport is that of package lbhttp with our authorities: https endpoints have HTTP/2 if they offer it.
func (u Upstream) transport(idle int, header int64) *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: u.roots},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: header,
		DisableCompression:     true,
	}
}

// byScheme speaks HTTP/2 to http endpoints where that was asked for, but for upgrades, which HTTP/2 does not have.
type byScheme struct{ one, two *http.Transport }

func (b *byScheme) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.two != nil && r.URL.Scheme == "http" && r.Header.Get("Upgrade") == "" {
		return b.two.RoundTrip(r)
	}
	return b.one.RoundTrip(r)
}

// CloseIdleConnections makes it a base transport of package lbhttp.
func (b *byScheme) CloseIdleConnections() {
	b.one.CloseIdleConnections()
	if b.two != nil {
		b.two.CloseIdleConnections()
	}
}
