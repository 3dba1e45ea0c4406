// Package edge is what stands between clients and a proxy's handler: TLS and protocols, timeouts that spare streams, and
// limits on headers, bodies and connections; and, on the other side, the transport to upstream servers.
package edge

import (
	"fmt"
	"time"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Config is the settings of a listener. The YAML names are those of --config files.
type Config struct {
	TLSCert        string           `yaml:"tls_cert"`          // PEM file of the certificate and those that signed it; empty for plain HTTP
	TLSKey         string           `yaml:"tls_key"`           // PEM file of its key
	H2C            bool             `yaml:"h2c"`               // HTTP/2 without TLS, beside HTTP/1.1
	HeaderTimeout  setting.Duration `yaml:"header_timeout"`    // from a request's first byte to the end of its headers
	IdleTimeout    setting.Duration `yaml:"idle_timeout"`      // between requests of a connection
	StallTimeout   setting.Duration `yaml:"stall_timeout"`     // that a client may neither send nor take what is due
	MaxHeader      setting.Size     `yaml:"max_header"`        // bytes of a request's line and headers
	MaxFields      int              `yaml:"max_header_fields"` // header fields of a request
	MaxBody        setting.Size     `yaml:"max_body"`          // bytes of a request's body; 0 for any
	MaxConnections int              `yaml:"max_connections"`   // open at a time; 0 for any
	MaxStreams     int              `yaml:"max_streams"`       // requests open at a time on one HTTP/2 connection
	UpstreamCA     string           `yaml:"upstream_ca"`       // PEM file of the authorities that https endpoints are checked by; empty for the system's
	UpstreamH2C    bool             `yaml:"upstream_h2c"`      // speak HTTP/2 to http endpoints
}

// Defaults is a plain listener with limits that ordinary clients do not meet.
func Defaults() Config {
	return Config{
		HeaderTimeout: setting.Duration(10 * time.Second), IdleTimeout: setting.Duration(2 * time.Minute),
		StallTimeout: setting.Duration(time.Minute), MaxHeader: 64 << 10, MaxFields: 256, MaxStreams: 250,
	}
}

// TLS says whether clients speak TLS.
func (c Config) TLS() bool { return c.TLSCert != "" }

// Scheme is http or https.
func (c Config) Scheme() string {
	if c.TLS() {
		return "https"
	}
	return "http"
}

// Protocols says in words what clients may speak.
func (c Config) Protocols() string {
	switch {
	case c.TLS():
		return "HTTP/1.1 and HTTP/2 over TLS 1.2 or later"
	case c.H2C:
		return "HTTP/1.1 and HTTP/2, without TLS"
	}
	return "HTTP/1.1, without TLS"
}

// Validate names the first setting that is out of range, and reads the files that are named.
func (c Config) Validate() error {
	for _, d := range []struct {
		name        string
		value       setting.Duration
		least, most time.Duration
	}{
		{"header_timeout", c.HeaderTimeout, 10 * time.Millisecond, time.Hour},
		{"idle_timeout", c.IdleTimeout, 10 * time.Millisecond, 24 * time.Hour},
		{"stall_timeout", c.StallTimeout, 10 * time.Millisecond, 24 * time.Hour},
	} {
		if v := time.Duration(d.value); v < d.least || v > d.most {
			return setting.Errorf(d.name, "is %s: give %s to %s", v, d.least, d.most)
		}
	}
	for _, n := range []struct {
		name        string
		value       int64
		least, most int64
		show        func(int64) string
	}{
		{"max_header", int64(c.MaxHeader), 8 << 10, 16 << 20, sizeText},
		{"max_header_fields", int64(c.MaxFields), 16, 100_000, countText},
		{"max_body", int64(c.MaxBody), 0, 1 << 50, sizeText},
		{"max_connections", int64(c.MaxConnections), 0, 10_000_000, countText},
		{"max_streams", int64(c.MaxStreams), 1, 100_000, countText},
	} {
		if n.value < n.least || n.value > n.most {
			return setting.Errorf(n.name, "is %s: give %s to %s", n.show(n.value), n.show(n.least), n.show(n.most))
		}
	}
	switch {
	case c.TLSCert == "" && c.TLSKey != "":
		return setting.Errorf("tls_key", "is given without --tls-cert: give both, or neither")
	case c.TLSCert != "" && c.TLSKey == "":
		return setting.Errorf("tls_cert", "is given without --tls-key: give both, or neither")
	case c.H2C && c.TLS():
		return setting.Errorf("h2c", "is HTTP/2 without TLS, and --tls-cert gives TLS: leave one out; with TLS, HTTP/2 needs no setting")
	}
	if c.TLS() {
		if _, err := LoadPair(c.TLSCert, c.TLSKey); err != nil {
			return setting.At("tls_cert", err)
		}
	}
	_, err := authorities(c.UpstreamCA)
	return setting.At("upstream_ca", err)
}

func sizeText(n int64) string  { return setting.Size(n).String() }
func countText(n int64) string { return fmt.Sprint(n) }
