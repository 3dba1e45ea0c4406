package replicaproc

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headroom-lb/headroom/engine/probe"
	"github.com/headroom-lb/headroom/host/replica"
)

// Paths that a replica answers itself; every other path is a query.
const (
	ControlPath = "/control"
	HealthPath  = "/healthz"
)

// WorkHeader lets a client give the service time of a query in microseconds, so that the same query asks for the
// same work whoever serves it. Without it the replica draws one.
const WorkHeader = "X-Work-Us"

// Replica serves queries as its settings say.
type Replica struct {
	name    string
	monitor *replica.Monitor
	queue   queue
	served  atomic.Int64
	failed  atomic.Int64

	mu        sync.Mutex // guards what follows
	settings  Settings
	rand      *rand.Rand
	neighbour neighbour
}

// New makes a replica. The name is sent back with every answer, and the seed settles its draws.
func New(name string, s Settings, seed uint64) (*Replica, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	monitor, err := replica.NewMonitor(probe.EstimatorConfig{})
	if err != nil {
		return nil, err
	}
	return &Replica{
		name: name, monitor: monitor, settings: s,
		queue: queue{slots: s.Slots}, rand: rand.New(rand.NewPCG(seed, 0x7265706c)),
	}, nil
}

// Set replaces the settings. Queries in service keep the time they drew.
func (r *Replica) Set(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	r.settings = s
	r.mu.Unlock()
	r.queue.resize(s.Slots)
	return nil
}

// State is what GET /control tells.
type State struct {
	Name     string   `json:"name"`
	Settings Settings `json:"settings"`
	Serving  int      `json:"serving"` // holding a slot
	Waiting  int      `json:"waiting"` // in the queue
	Served   int64    `json:"served"`
	Failed   int64    `json:"failed"`
}

// State tells the settings and the counts.
func (r *Replica) State() State {
	r.mu.Lock()
	s := r.settings
	r.mu.Unlock()
	held, waiting := r.queue.sizes()
	return State{Name: r.name, Settings: s, Serving: held, Waiting: waiting, Served: r.served.Load(), Failed: r.failed.Load()}
}

// Handler answers queries, probes, health checks and control. Requests in flight count from arrival, so that those
// waiting for a slot are seen; probes and control are not counted and need no slot.
func (r *Replica) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(replica.DefaultPath, r.monitor.ProbeHandler())
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET "+ControlPath, func(w http.ResponseWriter, _ *http.Request) { r.writeState(w) })
	// Control is for whoever runs the replica: a page of another site must not reach it through their browser.
	mux.Handle("POST "+ControlPath, http.NewCrossOriginProtection().Handler(http.HandlerFunc(r.control)))
	mux.Handle("/", r.monitor.Middleware(http.HandlerFunc(r.serve)))
	return mux
}

func (r *Replica) control(w http.ResponseWriter, req *http.Request) {
	s, err := r.State().Settings.patch(req.Body)
	if err == nil {
		err = r.Set(s)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.writeState(w)
}

func (r *Replica) writeState(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(r.State())
}

func (r *Replica) serve(w http.ResponseWriter, req *http.Request) {
	fails, fast, status := r.drawFailure()
	if !fails || !fast {
		if err := r.queue.acquire(req.Context()); err != nil {
			return
		}
		done := r.work(req)
		r.queue.release()
		if !done {
			return
		}
	}
	w.Header().Set("X-Replica", r.name)
	if fails {
		r.failed.Add(1)
		http.Error(w, "failed on request of the settings", status)
		return
	}
	r.served.Add(1)
	fmt.Fprintln(w, r.name)
}

// work holds the slot for the service time; false if the client left.
func (r *Replica) work(req *http.Request) bool {
	d := r.drawWork(req.Header.Get(WorkHeader))
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-req.Context().Done():
		return false
	}
}

func (r *Replica) drawFailure() (fails, fast bool, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.settings
	return s.ErrorRate > 0 && r.rand.Float64() < s.ErrorRate, s.FailFast, s.ErrorStatus
}

// drawWork gives the service time: as asked for or drawn, times the neighbour's factor at this instant.
func (r *Replica) drawWork(asked string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := time.Duration((0.2 + 0.8*r.rand.ExpFloat64()) * float64(r.settings.Service))
	if us, err := strconv.ParseUint(asked, 10, 32); err == nil {
		d = time.Duration(us) * time.Microsecond
	}
	if r.neighbour.at(time.Now(), r.settings, r.rand) {
		d = time.Duration(float64(d) * r.settings.SlowFactor)
	}
	return d
}
