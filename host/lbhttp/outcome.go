package lbhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/headroom-lb/headroom/engine"
)

// DefaultOutcome tells the balancer:
//
//   - cancelled, if the caller gave up: that says nothing about the replica;
//   - failure, if there was no answer, it broke off, it took longer than the caller's deadline,
//     or its status is 5xx;
//   - overloaded, if the status is 429;
//   - success otherwise.
func DefaultOutcome(resp *http.Response, err error) engine.Outcome {
	switch {
	case errors.Is(err, context.Canceled):
		return engine.OutcomeCancelled
	case err != nil || resp.StatusCode >= 500:
		return engine.OutcomeFailure
	case resp.StatusCode == http.StatusTooManyRequests:
		return engine.OutcomeOverloaded
	}
	return engine.OutcomeSuccess
}

// DefaultRetryable allows another attempt when the replica cannot have acted on this one: no
// connection came about. For a request that may be repeated (GET, HEAD, OPTIONS, TRACE, PUT,
// DELETE, or any with an Idempotency-Key) it also allows one when the connection broke before an
// answer. A response of any status is an answer.
func DefaultRetryable(req *http.Request, _ *http.Response, err error) bool {
	return err != nil && (unconnected(err) || repeatable(req) && broken(err))
}

func unconnected(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert) || errors.Is(err, errAddress)
}

func broken(err error) bool {
	for _, e := range [...]error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}
