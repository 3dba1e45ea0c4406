package showcase

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/headroom-lb/headroom/showcase/sim"
	"github.com/headroom-lb/headroom/web"
)

// Config sets up a [Server]. Zero fields take their defaults.
type Config struct {
	Engine   *Engine      // what decides; required
	Rooms    int          // most rooms at once; default 4
	Sockets  int          // most viewers at once; default 256
	PerHost  int          // most viewers from one address; default 8
	Origins  []string     // host patterns that may open a socket, beside the page's own
	TableFor int64        // simulated time of the table's run, ns; default 10 s
	Log      *slog.Logger // default discards
}

// Server is the showcase as an http.Handler.
type Server struct {
	engine  *Engine
	rooms   *rooms
	sockets sockets
	origins []string
	tables  *tables
	assets  *assets
	log     *slog.Logger
	mux     *http.ServeMux
	ctx     context.Context
	cancel  context.CancelFunc
}

// NewServer makes a server. Close it to end its rooms.
func NewServer(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Rooms, 4)
	def(&c.Sockets, 256)
	def(&c.PerHost, 8)
	if c.TableFor == 0 {
		c.TableFor = 10 * sim.Second
	}
	files, err := loadAssets(web.Static())
	if err != nil {
		return nil, err
	}
	s := &Server{
		engine: c.Engine, origins: c.Origins, log: c.Log, assets: files,
		rooms:   newRooms(c.Rooms, c.Engine.Maker, c.Log),
		sockets: sockets{most: c.Sockets, mostFrom: c.PerHost, byAddress: make(map[string]int)},
		tables:  newTables(c.TableFor, c.Engine.Maker),
		mux:     http.NewServeMux(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux.HandleFunc("GET /{$}", s.servePage)
	s.mux.HandleFunc("GET /ws", s.serveSocket)
	s.mux.Handle("GET "+assetPrefix, files)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	return s, nil
}

// The page loads nothing from anywhere else, runs no inline script and cannot be framed.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves the page, its files and its sockets.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	s.mux.ServeHTTP(w, r)
}

// Close ends every socket and room.
func (s *Server) Close() {
	s.cancel()
	s.rooms.close()
}
