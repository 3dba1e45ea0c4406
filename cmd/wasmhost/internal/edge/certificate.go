package edge

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Pair is a certificate with its key, and what they were read from.
type Pair struct {
	cert, key   string
	certificate tls.Certificate
	digest      [sha256.Size]byte
}

// LoadPair reads a certificate and its key. Its errors name the file and the way out.
func LoadPair(certFile, keyFile string) (*Pair, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s cannot be read: %w", certFile, errors.Unwrap(err))
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-key %s cannot be read: %w", keyFile, errors.Unwrap(err))
	}
	p := &Pair{cert: certFile, key: keyFile, digest: sha256.Sum256(append(append(cert[:len(cert):len(cert)], 0), key...))}
	if p.certificate, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, fmt.Errorf("--tls-cert %s and --tls-key %s are no pair: %w; give PEM files of one certificate and its own key", certFile, keyFile, err)
	}
	return p, nil
}

// Certificates is the pair that a listener shows, which can be replaced while it serves.
type Certificates struct {
	log *slog.Logger
	now atomic.Pointer[Pair]

	mu      sync.Mutex
	refused string // what was last said of files that are no pair
}

// NewCertificates reads the pair of a config with TLS.
func NewCertificates(c Config, log *slog.Logger) (*Certificates, error) {
	p, err := LoadPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, err
	}
	s := &Certificates{log: log}
	s.now.Store(p)
	s.warn(p)
	return s, nil
}

// Show replaces the pair, and says whether it is another. Its files are those that are followed from now on.
func (s *Certificates) Show(p *Pair) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.show(p)
}

// show is Show with the lock held.
func (s *Certificates) show(p *Pair) (changed bool) {
	s.refused = ""
	changed = p.digest != s.now.Swap(p).digest
	if changed {
		s.warn(p)
	}
	return changed
}

func (s *Certificates) warn(p *Pair) {
	if left := time.Until(p.certificate.Leaf.NotAfter); left <= 0 {
		s.log.Warn("the certificate has expired; clients will refuse it: replace the files", "not_after", p.certificate.Leaf.NotAfter)
	}
}

// Expires is when the certificate in use is no longer good.
func (s *Certificates) Expires() time.Time { return s.now.Load().certificate.Leaf.NotAfter }

// lookEvery is how often the files are looked at. They are small, and read whole.
const lookEvery = 5 * time.Second

// Follow replaces the pair when its files change, until the context ends. Files that are no pair, as between the writing
// of one and of the other, are said once, and the old pair stays.
func (s *Certificates) Follow(ctx context.Context) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.look()
		}
	}
}

func (s *Certificates) look() {
	s.mu.Lock() // a reload may name other files meanwhile
	defer s.mu.Unlock()
	was := s.now.Load()
	p, err := LoadPair(was.cert, was.key)
	switch {
	case err == nil && s.show(p):
		s.log.Info("certificate replaced", "not_after", s.Expires())
	case err != nil && err.Error() != s.refused:
		s.log.Error("the certificate's files were not taken; the old pair serves on", "error", err)
		s.refused = err.Error()
	}
}

// config is what a TLS listener needs.
func (s *Certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &s.now.Load().certificate, nil
		},
	}
}
