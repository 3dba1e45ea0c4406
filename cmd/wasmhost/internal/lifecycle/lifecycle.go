// Package lifecycle opens listeners with errors that say what to do, and serves HTTP until it is told to drain.
package lifecycle

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen opens a TCP listener; flag names the setting that the address came from.
func Listen(flag, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s is in use: stop what listens there or choose another port (port 0 takes a free one)", flag, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s %s is not permitted: choose a port above 1023", flag, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s %s is not an address of this machine: choose one, such as 127.0.0.1:8000", flag, addr)
	}
	return nil, fmt.Errorf("%s %s cannot be listened on: %w", flag, addr, err)
}

// CheckAddr refuses what is not host:port, before anything is opened.
func CheckAddr(flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s %q is not host:port: give one such as 127.0.0.1:8000", flag, addr)
	}
	return nil
}
