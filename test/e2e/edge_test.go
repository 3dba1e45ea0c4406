package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writePair writes a certificate for loopback that signs itself, and its key.
func writePair(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// TestTLSOnBothSides has clients speak HTTP/2 over TLS to a proxy that speaks it to a replica, and replaces the certificate by
// a signal under an open connection; a pair that is none changes nothing.
func TestTLSOnBothSides(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, 1)
	replica := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	replica.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	replica.EnableHTTP2 = true
	replica.StartTLS()
	defer replica.Close()
	authorities := filepath.Join(dir, "ca.pem")
	text, err := os.ReadFile(cert)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(authorities, text, 0o600))
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--spec", "round_robin", "--health-path", "/",
		"--tls-cert", cert, "--tls-key", key, "--upstream-ca", authorities, "--endpoint", replica.URL)
	proxy, admin := p.find(&p.stdout, `proxy listens on (https://\S+)`), p.find(&p.stdout, `admin listens on (http://\S+)`)
	ask := func() (serial int64, proto, body string) {
		roots := x509.NewCertPool()
		now, err := os.ReadFile(cert)
		require.NoError(t, err)
		roots.AppendCertsFromPEM(now)
		roots.AppendCertsFromPEM(text)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(proxy)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), resp.Proto, string(b)
	}
	serial, proto, body := ask()
	require.EqualValues(t, 1, serial)
	require.Equal(t, "HTTP/2.0", proto)
	require.Equal(t, "HTTP/2.0", body, "to the replica")

	writePair(t, dir, 2)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.find(&p.stderr, `(certificate replaced|changed=certificate)`)
	serial, _, _ = ask()
	require.EqualValues(t, 2, serial)
	good, err := os.ReadFile(cert)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, []byte("none"), 0o600))
	require.Equal(t, http.StatusUnprocessableEntity, post(t, admin+"/reload", ""))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.find(&p.stderr, `the configuration was not taken; the old one serves on" error="--tls-cert \S+ and --tls-key \S+ are no (pair)`)
	require.NoError(t, os.WriteFile(cert, good, 0o600))
	serial, _, _ = ask()
	require.EqualValues(t, 2, serial)
	_, metrics, _ := get(admin + "/metrics")
	require.Regexp(t, `(?m)^headroom_certificate_expiry_seconds [1-9]`, metrics)
	require.Zero(t, p.stop(syscall.SIGTERM))
}

// TestLimitsOfTheProxy has the limits answer for themselves through the whole proxy, and no replica blamed.
func TestLimitsOfTheProxy(t *testing.T) {
	_, url := startReplica(t, "a", "127.0.0.1:0")
	_, proxy, admin := startProxy(t, []string{url}, "--max-body", "10", "--max-connections", "1", "--health-interval", "0", "--spec", "round_robin")
	held, err := net.Dial("tcp", proxy[len("http://"):])
	require.NoError(t, err)
	_, err = io.WriteString(held, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n0123456789x\r\n0\r\n\r\nGET")
	require.NoError(t, err)
	first := make([]byte, len("HTTP/1.1 413"))
	_, err = io.ReadFull(held, first)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 413", string(first))
	require.NoError(t, held.Close())

	held, err = net.Dial("tcp", proxy[len("http://"):])
	require.NoError(t, err)
	require.Eventually(t, func() bool { status, _, _ := get(proxy); return status == http.StatusServiceUnavailable }, patience, time.Millisecond)
	require.NoError(t, held.Close())
	require.Eventually(t, func() bool { status, _, _ := get(proxy); return status == http.StatusOK }, patience, time.Millisecond)
	_, metrics, _ := get(admin + "/metrics")
	require.Regexp(t, `(?m)^headroom_refused_total\{reason="connections"\} [1-9]`, metrics)
	require.Regexp(t, `(?m)^headroom_refused_total\{reason="body_size"\} 1$`, metrics)
	require.Regexp(t, `(?m)^headroom_outcomes_total\{outcome="failure"\} 0$`, metrics, "a body that is too long is nobody's failure but the client's")
	require.Regexp(t, `(?m)^headroom_connections 1$`, metrics)
}

// TestCheck says what serve would do, with the exit codes of a check.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := file("good.yaml", "spec: prequal seed=7 quantile=0.9\nendpoints_file: "+file("e.json", `{"endpoints":[{"name":"b","address":"http://127.0.0.1:9001"}]}`)+"\n")
	out, code := runCommand(t, "check", good)
	require.Zero(t, code, out)
	require.Equal(t, `listen    http://127.0.0.1:8000  HTTP/1.1, without TLS
admin     http://127.0.0.1:9901
policy    prequal seed=7 quantile=0.9
endpoint  b  http://127.0.0.1:9001
`, out)
	for name, c := range map[string]struct {
		text string
		code int
		want []string
	}{
		"several mistakes": {"lisen: 1\ndrain: soon\nendpoints: [http://a]\n", 1, []string{"several mistakes:1: unknown setting lisen", "several mistakes:2: \"soon\" is not a duration", "wasmhost: serve would not take it"}},
		"a bad value":      {"endpoints:\n- http://a\n- nowhere\n", 1, []string{`a bad value:3: endpoint "nowhere" is not a base URL: give one such as`}},
		"a bad module":     {"module: " + file("m.wasm", "hello") + "\nendpoints: [http://a]\n", 1, []string{"a bad module:1: --module", "not a WebAssembly module"}},
		"a bad file":       {"endpoints_file: " + file("bad.json", "{") + "\n", 1, []string{"a bad file:1: ", "bad.json:1:"}},
		"no YAML":          {"a: [\n", 1, []string{"no YAML:1: "}},
	} {
		out, code := runCommand(t, "check", file(name, c.text))
		require.Equal(t, c.code, code, "%s: %s", name, out)
		for _, want := range c.want {
			require.Contains(t, out, want)
		}
	}
	out, code = runCommand(t, "check", filepath.Join(dir, "none.yaml"))
	require.Equal(t, 2, code)
	require.Contains(t, out, "none.yaml cannot be read: no such file")
	_, code = runCommand(t, "check")
	require.Equal(t, 2, code)
}
