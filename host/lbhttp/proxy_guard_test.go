package lbhttp

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUsersReachNoProbeHandler asks for it as servers with a clean-up of paths would read it. Without a balancer, a request
// that goes on panics.
func TestUsersReachNoProbeHandler(t *testing.T) {
	p := NewProxy(nil)
	for _, path := range []string{
		"/prequal/probe", "//prequal/probe", "/prequal//probe", "/prequal/./probe", "/x/../prequal/probe", "/%2e/prequal%2fprobe",
	} {
		w := httptest.NewRecorder()
		require.NotPanics(t, func() { p.ServeHTTP(w, httptest.NewRequest("GET", "http://a"+path, nil)) }, path)
		require.Equal(t, 404, w.Code, path)
	}
	require.Panics(t, func() { p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/prequal/probes", nil)) })
}
