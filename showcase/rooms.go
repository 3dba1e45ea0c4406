package showcase

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// rooms keeps the running rooms, one for each link, within a bound: a room costs a good part
// of a core, its viewers next to nothing.
type rooms struct {
	mu    sync.Mutex
	open  map[string]*tenancy
	most  int
	maker sim.Maker
	log   *slog.Logger
}

// tenancy counts a room's sockets, also those on their way in.
type tenancy struct {
	room  *Room
	users int
}

var errFull = errors.New("every room is taken; try again in a minute, or watch an open one")

func newRooms(most int, mk sim.Maker, log *slog.Logger) *rooms {
	return &rooms{open: make(map[string]*tenancy), most: most, maker: mk, log: log}
}

// join finds or opens the room of a setup. The caller calls leave with the key when done.
func (rs *rooms) join(s Setup) (*Room, string, error) {
	key := s.Query()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	t, ok := rs.open[key]
	if !ok {
		if len(rs.open) >= rs.most && !rs.evict() {
			return nil, "", errFull
		}
		room, err := openRoom(key, s, rs.maker, rs.log, rs.drop)
		if err != nil {
			return nil, "", err
		}
		t = &tenancy{room: room}
		rs.open[key] = t
	}
	t.users++
	return t.room, key, nil
}

func (rs *rooms) leave(key string, r *Room) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if t := rs.open[key]; t != nil && t.room == r {
		t.users--
	}
}

// evict ends a room that nobody is in.
func (rs *rooms) evict() bool {
	for key, t := range rs.open {
		if t.users == 0 {
			delete(rs.open, key)
			t.room.stop()
			return true
		}
	}
	return false
}

// drop ends a room that is idle or has failed. It is called from the room's own goroutine.
func (rs *rooms) drop(r *Room, failed bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if t := rs.open[r.key]; t != nil && t.room == r && (failed || t.users == 0) {
		delete(rs.open, r.key)
		r.stop()
	}
}

// close ends every room and waits for them.
func (rs *rooms) close() {
	rs.mu.Lock()
	ending := make([]*Room, 0, len(rs.open))
	for key, t := range rs.open {
		delete(rs.open, key)
		t.room.stop()
		ending = append(ending, t.room)
	}
	rs.most = 0
	rs.mu.Unlock()
	for _, r := range ending {
		<-r.done
	}
}
