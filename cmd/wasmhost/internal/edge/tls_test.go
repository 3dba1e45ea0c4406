package edge

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
)

// writePair writes a certificate that signs itself for 127.0.0.1, and its key.
func writePair(t *testing.T, dir string, serial int64, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// listening serves on loopback and returns its address.
func listening(t *testing.T, c Config, log *slog.Logger, h http.Handler) (*Edge, string) {
	t.Helper()
	require.NoError(t, c.Validate())
	e, err := New(c, log)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	quiet := func(s *http.Server) { s.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) }
	s := lifecycle.Start(e.Listener(ln), e.Handler(h), e.Tune, quiet)
	t.Cleanup(func() { _ = s.Drain(0) })
	return e, ln.Addr().String()
}

// protocol answers with the request's protocol.
var protocol = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// upstreamTo is our own client, which trusts the authority in a file.
func upstreamTo(t *testing.T, ca string, h2c bool) Upstream {
	t.Helper()
	u, err := NewUpstream(Config{UpstreamCA: ca, UpstreamH2C: h2c})
	require.NoError(t, err)
	return u
}

func TestTLS(t *testing.T) {
	c := Defaults()
	c.TLSCert, c.TLSKey = writePair(t, t.TempDir(), 1, tomorrow())
	_, addr := listening(t, c, slog.New(slog.DiscardHandler), protocol)
	u := upstreamTo(t, c.TLSCert, false)
	for name, client := range map[string]*http.Client{"requests": {Transport: u.Requests()}, "probes": u.Probes(), "checks": u.Checks()} {
		code, text := get(t, client, "https://"+addr)
		assert.Equal(t, 200, code, name)
		assert.Equal(t, "HTTP/2.0", text, name)
	}
	stranger := &http.Client{Transport: upstreamTo(t, "", false).Requests()}
	_, err := stranger.Get("https://" + addr)
	var unknown x509.UnknownAuthorityError
	assert.ErrorAs(t, err, &unknown)

	roots, err := authorities(c.TLSCert)
	require.NoError(t, err)
	_, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	assert.ErrorContains(t, err, "protocol version")
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}})
	require.NoError(t, err)
	defer conn.Close()
	assert.Equal(t, "http/1.1", conn.ConnectionState().NegotiatedProtocol)
}

func TestH2C(t *testing.T) {
	c := Defaults()
	_, plain := listening(t, c, slog.New(slog.DiscardHandler), protocol)
	c.H2C = true
	_, both := listening(t, c, slog.New(slog.DiscardHandler), protocol)
	one, two := upstreamTo(t, "", false), upstreamTo(t, "", true)
	for _, client := range []*http.Client{{Transport: one.Requests()}, one.Probes(), one.Checks()} {
		_, text := get(t, client, "http://"+both)
		assert.Equal(t, "HTTP/1.1", text)
	}
	for _, client := range []*http.Client{{Transport: two.Requests()}, two.Probes(), two.Checks()} {
		_, text := get(t, client, "http://"+both)
		assert.Equal(t, "HTTP/2.0", text)
	}
	_, err := (&http.Client{Transport: two.Requests()}).Get("http://" + plain)
	assert.Error(t, err, "it is off unless asked for")
	upgrade, err := http.NewRequest("GET", "http://"+both, nil)
	require.NoError(t, err)
	upgrade.Header.Set("Connection", "Upgrade")
	upgrade.Header.Set("Upgrade", "websocket")
	resp, err := two.Requests().RoundTrip(upgrade)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 1, resp.ProtoMajor, "HTTP/2 has no upgrades")
}

// TestLimitsHoldInHTTP2 tries the limits of streams: bodies that are too long or stand still, and answers that are not taken.
func TestLimitsHoldInHTTP2(t *testing.T) {
	c := Defaults()
	c.H2C, c.MaxBody, c.StallTimeout = true, 10, c.StallTimeout/120 // half a second
	ended, written := make(chan error, 1), make(chan struct{})
	e, addr := listening(t, c, slog.New(slog.DiscardHandler), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			echo(w, r)
			return
		case "/slow": // it is the handler that takes its time
			first := make([]byte, 1)
			_, _ = io.ReadFull(r.Body, first)
			<-written
			echo(w, r)
			return
		}
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				ended <- err
				return
			}
		}
	}))
	client := &http.Client{Transport: upstreamTo(t, "", true).Requests()}
	post := func(path string, length int64, body io.Reader) (int, string) {
		r, err := http.NewRequest("POST", "http://"+addr+path, body)
		require.NoError(t, err)
		r.ContentLength = length
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	code, text := post("/", 10, strings.NewReader("0123456789"))
	assert.Equal(t, 200, code, text)
	body, write := io.Pipe()
	go func() {
		_, _ = io.WriteString(write, "0")
		time.Sleep(2 * time.Duration(c.StallTimeout)) // nobody waits for more yet
		_, _ = io.WriteString(write, "1234")
		_ = write.Close()
		close(written)
	}()
	code, text = post("/slow", 5, body)
	assert.Equal(t, 200, code, text)
	assert.Equal(t, "1234", text)
	code, _ = post("/", 11, strings.NewReader("0123456789x"))
	assert.Equal(t, 413, code)
	code, _ = post("/", -1, strings.NewReader("0123456789x"))
	assert.Equal(t, 413, code)
	half, _ := io.Pipe()
	code, _ = post("/", 5, half)
	assert.Equal(t, 408, code)
	assert.EqualValues(t, 1, e.Refused(BodyStall))

	resp, err := client.Get("http://" + addr + "/long")
	require.NoError(t, err)
	assert.Error(t, <-ended, "nobody reads")
	assert.EqualValues(t, 1, e.Refused(AnswerStall))
	require.NoError(t, resp.Body.Close())
}

// TestAStreamOfHTTP2MayPause holds a body without a length open for several times the limit.
func TestAStreamOfHTTP2MayPause(t *testing.T) {
	c := Defaults()
	c.H2C, c.StallTimeout = true, c.StallTimeout/1200 // a twentieth of a second
	e, addr := listening(t, c, slog.New(slog.DiscardHandler), http.HandlerFunc(echo))
	body, write := io.Pipe()
	go func() {
		time.Sleep(5 * time.Duration(c.StallTimeout)) // the pause that is tested
		_, _ = io.WriteString(write, "late")
		_ = write.Close()
	}()
	client := &http.Client{Transport: upstreamTo(t, "", true).Requests()}
	resp, err := client.Post("http://"+addr, "text/plain", body)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "late", string(text))
	assert.Zero(t, e.Refused(BodyStall))
}

func TestStreamsHaveALimit(t *testing.T) {
	c := Defaults()
	c.H2C, c.MaxStreams = true, 3
	_, addr := listening(t, c, slog.New(slog.DiscardHandler), protocol)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	head := make([]byte, 9)
	_, err = io.ReadFull(conn, head)
	require.NoError(t, err)
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, settings)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(settings, []byte{0, 3, 0, 0, 0, 3}), "SETTINGS_MAX_CONCURRENT_STREAMS is 3")
}

// TestCertificatesAreReplaced changes the files under a listener: a new pair is shown, and what is no pair is said once and
// changes nothing.
func TestCertificatesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	c := Defaults()
	c.TLSCert, c.TLSKey = writePair(t, dir, 1, tomorrow())
	var log bytes.Buffer
	e, addr := listening(t, c, slog.New(slog.NewTextHandler(&log, nil)), protocol)
	serial := func() int64 {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	assert.EqualValues(t, 1, serial())
	writePair(t, dir, 2, tomorrow())
	e.Certificates().look()
	assert.EqualValues(t, 2, serial())
	assert.Contains(t, log.String(), "certificate replaced")

	log.Reset()
	require.NoError(t, os.WriteFile(c.TLSCert, []byte("no certificate"), 0o600))
	e.Certificates().look()
	e.Certificates().look()
	assert.Equal(t, 1, strings.Count(log.String(), "were not taken; the old pair serves on"), "it is said once")
	assert.EqualValues(t, 2, serial())
	_, err := LoadPair(c.TLSCert, c.TLSKey)
	assert.ErrorContains(t, err, "are no pair")

	log.Reset()
	writePair(t, dir, 3, time.Now().Add(-time.Minute))
	expired, err := LoadPair(c.TLSCert, c.TLSKey)
	require.NoError(t, err)
	assert.True(t, e.Certificates().Show(expired))
	assert.Contains(t, log.String(), "the certificate has expired")
	assert.False(t, e.Certificates().Show(expired))
}

// TestALookDoesNotUndoAReload names other files while the old ones are looked at: the other ones stay.
func TestALookDoesNotUndoAReload(t *testing.T) {
	var pairs [2]*Pair
	for i := range pairs {
		cert, key := writePair(t, t.TempDir(), int64(i+1), tomorrow())
		var err error
		pairs[i], err = LoadPair(cert, key)
		require.NoError(t, err)
	}
	e, err := New(Config{TLSCert: pairs[1].cert, TLSKey: pairs[1].key}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for range 1001 {
			e.Certificates().look()
			looked <- struct{}{}
		}
	}()
	for i := range 500 {
		<-looked
		for range i % 20 {
			runtime.Gosched() // until the next look is somewhere in its midst
		}
		e.Certificates().Show(pairs[i%2])
		<-looked
		require.Equal(t, pairs[i%2].digest, e.Certificates().now.Load().digest)
	}
	<-looked
}

// TestCertificatesAreFollowed lets time pass.
func TestCertificatesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := writePair(t, dir, 1, tomorrow())
		e, err := New(Config{TLSCert: cert, TLSKey: key}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { e.Run(ctx); close(ended) }()
		writePair(t, dir, 2, tomorrow())
		time.Sleep(lookEvery)
		synctest.Wait()
		assert.EqualValues(t, 2, e.Certificates().now.Load().certificate.Leaf.SerialNumber.Int64())
		cancel()
		<-ended
	})
}

func TestFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, 1, tomorrow())
	other, _ := writePair(t, t.TempDir(), 2, tomorrow())
	for _, c := range []struct {
		cert, key, ca string
		want          string
	}{
		{other, key, "", "are no pair: tls: private key does not match public key; give PEM files of one certificate and its own key"},
		{cert, filepath.Join(dir, "none"), "", fmt.Sprintf("--tls-key %s cannot be read: no such file", filepath.Join(dir, "none"))},
		{cert, key, key, "holds no certificate: give a PEM file of the authorities"},
	} {
		d := Defaults()
		d.TLSCert, d.TLSKey, d.UpstreamCA = c.cert, c.key, c.ca
		assert.ErrorContains(t, d.Validate(), c.want)
	}
	_, err := New(Config{TLSCert: other, TLSKey: key}, slog.New(slog.DiscardHandler))
	assert.Error(t, errors.Unwrap(err))
}
