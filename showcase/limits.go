package showcase

import (
	"net"
	"sync"
)

// sockets bounds the open sockets, in all and from one address.
type sockets struct {
	mu        sync.Mutex
	most      int
	mostFrom  int
	total     int
	byAddress map[string]int
}

// take counts a socket in; release counts it out.
func (s *sockets) take(remote string) (release func(), ok bool) {
	address, _, err := net.SplitHostPort(remote)
	if err != nil {
		address = remote
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.most || s.byAddress[address] >= s.mostFrom {
		return nil, false
	}
	s.total++
	s.byAddress[address]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.byAddress[address]--; s.byAddress[address] == 0 {
			delete(s.byAddress, address)
		}
	}, true
}
