package lbhttp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
)

// refuse says what is wrong with an answer that cannot be passed on: an upgrade that was not asked
// for, or a status that ends no request. Whoever gets such an answer leaves its body open, and the
// placement with it.
func refuse(req *http.Request, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		asked, got := protocol(req.Header), protocol(resp.Header)
		if _, duplex := resp.Body.(io.ReadWriteCloser); !duplex || asked == "" || !strings.EqualFold(asked, got) {
			return fmt.Errorf("switched to protocol %.40q where %.40q was asked for", got, asked)
		}
	case resp.StatusCode < 200 || resp.StatusCode > 999:
		return fmt.Errorf("answered with status %d, which ends no request", resp.StatusCode)
	}
	return nil
}

// protocol is what a message wants to upgrade to, or empty.
func protocol(h http.Header) string {
	for _, v := range h["Connection"] {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "Upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// hushed keeps readings on informational answers from whoever listens for those, such as a
// reverse proxy that passes them on.
func hushed(req *http.Request) *http.Request {
	ctx := req.Context()
	if trace := httptrace.ContextClientTrace(ctx); trace == nil || trace.Got1xxResponse == nil {
		return req
	}
	// Hooks added later run first, and all of them see the same map.
	return req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			strip(http.Header(h))
			return nil
		},
	}))
}
