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

// pair is a certificate with its key, and what they were read from.
type pair struct {
	certificate tls.Certificate
	digest      [sha256.Size]byte
}

// loadPair reads a certificate and its key. Its errors name the file and the way out.
func loadPair(certFile, keyFile string) (*pair, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s cannot be read: %w", certFile, errors.Unwrap(err))
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-key %s cannot be read: %w", keyFile, errors.Unwrap(err))
	}
	p := &pair{digest: sha256.Sum256(append(append(cert[:len(cert):len(cert)], 0), key...))}
	if p.certificate, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, fmt.Errorf("--tls-cert %s and --tls-key %s are no pair: %w; give PEM files of one certificate and its own key", certFile, keyFile, err)
	}
	return p, nil
}

// Certificates is the pair that a listener shows, which can be replaced while it serves.
type Certificates struct {
	log *slog.Logger
	now atomic.Pointer[pair]

	mu        sync.Mutex
	cert, key string
	refused   string // what was last said of files that are no pair
}

// NewCertificates reads the pair of a config with TLS.
func NewCertificates(c Config, log *slog.Logger) (*Certificates, error) {
	p, err := loadPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, err
	}
	s := &Certificates{log: log, cert: c.TLSCert, key: c.TLSKey}
	s.now.Store(p)
	s.warn(p)
	return s, nil
}

// Load replaces the pair by that of the files, and says whether it is another. If they are no pair the old one stays.
func (s *Certificates) Load(certFile, keyFile string) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := loadPair(certFile, keyFile)
	if err != nil {
		return false, err
	}
	s.cert, s.key, s.refused = certFile, keyFile, ""
	changed = p.digest != s.now.Load().digest
	if changed {
		s.now.Store(p)
		s.warn(p)
	}
	return changed, nil
}

func (s *Certificates) warn(p *pair) {
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
	s.mu.Lock()
	cert, key, refused := s.cert, s.key, s.refused
	s.mu.Unlock()
	changed, err := s.Load(cert, key)
	switch {
	case err != nil && err.Error() != refused:
		s.log.Error("the certificate's files were not taken; the old pair serves on", "error", err)
		s.mu.Lock()
		s.refused = err.Error()
		s.mu.Unlock()
	case changed:
		s.log.Info("certificate replaced", "not_after", s.Expires())
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
