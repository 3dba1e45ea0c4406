package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAdminCommandsSayTheWayOut(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this needs the admin token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
	}))
	t.Cleanup(refusing.Close)
	recording := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "recorded") }))
	t.Cleanup(recording.Close)
	folder := t.TempDir()
	nowhere := filepath.Join(folder, "none", "x.rec")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"swap", refusing.URL, "--promote"}, 1, "Bearer TOKEN, or --token-file FILE"},
		{[]string{"record", refusing.URL, "-o", nowhere}, 1, "--token-file FILE"},
		{[]string{"record", recording.URL, "-o", nowhere}, 2, "-o " + nowhere + ": no such file or directory\n"},
		{[]string{"record", recording.URL, "-o", folder}, 1, "-o " + folder + ": file exists\n"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), c.args, &out, &errOut)
		assert.Equal(t, c.code, code, c.args)
		assert.Contains(t, errOut.String(), c.want)
	}
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "half of a file")
}
