package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
)

// edgeFlags are the flags of serve about its listener and the connections to replicas.
func edgeFlags(cmd *cobra.Command, e *edge.Config) {
	f := cmd.Flags()
	f.StringVar(&e.TLSCert, "tls-cert", "", "PEM file of the listener's certificate, with those that signed it; read again when it changes")
	f.StringVar(&e.TLSKey, "tls-key", "", "PEM file of the certificate's key")
	f.BoolVar(&e.H2C, "h2c", false, "take HTTP/2 without TLS beside HTTP/1.1, from clients that begin with it")
	f.DurationVar((*time.Duration)(&e.HeaderTimeout), "header-timeout", time.Duration(e.HeaderTimeout), "longest time from a request's first byte to the end of its headers")
	f.DurationVar((*time.Duration)(&e.IdleTimeout), "idle-timeout", time.Duration(e.IdleTimeout), "how long a connection may stay without a request")
	f.DurationVar((*time.Duration)(&e.StallTimeout), "stall-timeout", time.Duration(e.StallTimeout), "how long a client may send nothing of a body, or take nothing of an answer")
	f.TextVar(&e.MaxHeader, "max-header", e.MaxHeader, "bytes that a request's line and headers may have, else 431")
	f.IntVar(&e.MaxFields, "max-header-fields", e.MaxFields, "header fields that a request may have, else 431")
	f.TextVar(&e.MaxBody, "max-body", e.MaxBody, "bytes that a request's body may have, else 413, such as 10MiB; 0 for any")
	f.IntVar(&e.MaxConnections, "max-connections", 0, "connections that may be open, else 503; 0 for any")
	f.IntVar(&e.MaxStreams, "max-streams", e.MaxStreams, "requests that may be open on one HTTP/2 connection")
	f.StringVar(&e.UpstreamCA, "upstream-ca", "", "PEM file of the authorities that https endpoints are checked by, instead of the system's")
	f.BoolVar(&e.UpstreamH2C, "upstream-h2c", false, "speak HTTP/2 to http endpoints; https endpoints choose for themselves")
	for _, name := range []string{"h2c", "header-timeout", "idle-timeout", "stall-timeout", "max-header", "max-header-fields", "max-body", "max-connections", "max-streams", "upstream-h2c"} {
		complete(cmd, name)
	}
}

// edgeOverrides put a flag over the config.
func edgeOverrides(e *edge.Config, flags edge.Config) map[string]func() {
	return map[string]func(){
		"tls-cert":          func() { e.TLSCert = flags.TLSCert },
		"tls-key":           func() { e.TLSKey = flags.TLSKey },
		"h2c":               func() { e.H2C = flags.H2C },
		"header-timeout":    func() { e.HeaderTimeout = flags.HeaderTimeout },
		"idle-timeout":      func() { e.IdleTimeout = flags.IdleTimeout },
		"stall-timeout":     func() { e.StallTimeout = flags.StallTimeout },
		"max-header":        func() { e.MaxHeader = flags.MaxHeader },
		"max-header-fields": func() { e.MaxFields = flags.MaxFields },
		"max-body":          func() { e.MaxBody = flags.MaxBody },
		"max-connections":   func() { e.MaxConnections = flags.MaxConnections },
		"max-streams":       func() { e.MaxStreams = flags.MaxStreams },
		"upstream-ca":       func() { e.UpstreamCA = flags.UpstreamCA },
		"upstream-h2c":      func() { e.UpstreamH2C = flags.UpstreamH2C },
	}
}
