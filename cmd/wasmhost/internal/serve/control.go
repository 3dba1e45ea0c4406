package serve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/headroom-lb/headroom/host"
)

// maxUpload bounds a module that is sent to the admin listener.
const maxUpload = 64 << 20

// engines makes the sources that a running proxy can change to: other specs, and modules that are sent to it.
type engines struct {
	b       *host.Balancer
	runtime *host.Runtime // nil for native engines
}

// source is a spec on the module that is live, or on the one in wasm. What is live the balancer knows: a promotion or a
// rollback changes it too.
func (e *engines) source(ctx context.Context, spec string, wasm []byte) (host.Source, error) {
	live := e.b.Source()
	if wasm == nil {
		return live.With(spec), nil
	}
	if e.runtime == nil {
		return host.Source{}, errors.New("this proxy runs native engines: start it with --engine wasm to send it modules")
	}
	if m := live.Module(); sha256.Sum256(wasm) == m.Digest() {
		return live.With(spec), nil
	}
	m, err := e.runtime.Load(ctx, wasm)
	if err != nil {
		return host.Source{}, err
	}
	return host.FromModule(m, spec), nil
}

// control changes the policy of a running balancer.
type control struct {
	b       *host.Balancer
	engines *engines

	mu         sync.Mutex
	comparison *host.Comparison
}

func (c *control) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /swap", c.swap)
	mux.HandleFunc("POST /canary", c.startCanary)
	mux.HandleFunc("POST /share", c.share)
	mux.HandleFunc("POST /promote", c.promote)
	mux.HandleFunc("POST /rollback", c.rollback)
	mux.HandleFunc("POST /compare", c.compare)
	mux.HandleFunc("GET /compare", c.compared)
	mux.HandleFunc("DELETE /compare", c.endComparison)
	mux.HandleFunc("GET /record", c.record)
}

const controlHelp = `POST /swap      {"spec":"prequal quantile=0.9"}: change the policy under traffic; or a module as application/wasm, ?spec=
POST /canary    the same with ?share=0.05: that share of the queries goes to it
POST /share     {"share":0.2}: change the canary's share
POST /promote   make the canary the policy
POST /rollback  end the canary, or go back to before the last swap, once
POST /compare   the same as /swap: decide every query a second time, beside; GET shows the differences, DELETE ends it
POST /reload    read the --config file again, as SIGHUP does
GET  /record    what the recorder holds, for wasmhost replay; ?last=10s for less
`

// change reads what to change to: a spec as JSON, or a module with the spec in the query.
func (c *control) change(w http.ResponseWriter, r *http.Request) (host.Source, bool) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	spec, wasm := r.URL.Query().Get("spec"), []byte(nil)
	var err error
	if kind == "application/wasm" {
		if wasm, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpload)); err != nil {
			http.Error(w, fmt.Sprintf("the module cannot be read: %v", err), http.StatusBadRequest)
			return host.Source{}, false
		}
	} else {
		var in struct {
			Spec string `json:"spec"`
		}
		if !readJSON(w, r, &in, `{"spec":"prequal quantile=0.9"}`) {
			return host.Source{}, false
		}
		spec = in.Spec
	}
	if spec == "" {
		http.Error(w, `no spec: name the policy and its settings, such as "prequal quantile=0.9"`, http.StatusBadRequest)
		return host.Source{}, false
	}
	src, err := c.engines.source(r.Context(), spec, wasm)
	if err != nil {
		refuse(w, err)
		return host.Source{}, false
	}
	return src, true
}

// refuse says why nothing was changed. What was asked for is at fault, or the moment is.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusUnprocessableEntity
	if errors.Is(err, host.ErrNoCanary) || errors.Is(err, host.ErrNothingBefore) || errors.Is(err, host.ErrNoRecorder) {
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}

// standing is what is in force after a change.
type standing struct {
	Spec       string   `json:"spec"`
	Generation uint64   `json:"generation"`
	Canary     string   `json:"canary,omitempty"`
	Share      *float64 `json:"share,omitempty"`
}

func (c *control) answer(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	st := c.b.Stats()
	s := standing{Spec: c.b.Spec(), Generation: st.Generation}
	if st.Canary != nil {
		share := float64(st.Canary.Share) / perUnit
		s.Canary, s.Share = st.Canary.Spec, &share
	}
	writeJSON(w, s)
}

func (c *control) swap(w http.ResponseWriter, r *http.Request) {
	if src, ok := c.change(w, r); ok {
		c.answer(w, c.b.Swap(context.WithoutCancel(r.Context()), src))
	}
}

func (c *control) startCanary(w http.ResponseWriter, r *http.Request) {
	share, err := parseShare(r.URL.Query().Get("share"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if src, ok := c.change(w, r); ok {
		c.answer(w, c.b.Canary(context.WithoutCancel(r.Context()), src, share))
	}
}

// parseShare reads a part of one.
func parseShare(text string) (uint32, error) {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("share %q: give a part of one, such as 0.05", text)
	}
	return uint32(math.Round(share * perUnit)), nil
}

func (c *control) share(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Share json.Number `json:"share"`
	}
	if !readJSON(w, r, &in, `{"share":0.2}`) {
		return
	}
	share, err := parseShare(in.Share.String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.answer(w, c.b.SetShare(share))
}

func (c *control) promote(w http.ResponseWriter, r *http.Request) {
	c.answer(w, c.b.Promote(context.WithoutCancel(r.Context())))
}

func (c *control) rollback(w http.ResponseWriter, r *http.Request) {
	c.answer(w, c.b.Rollback(context.WithoutCancel(r.Context())))
}

func (c *control) compare(w http.ResponseWriter, r *http.Request) {
	if src, ok := c.change(w, r); ok {
		comparison, err := c.b.Compare(context.WithoutCancel(r.Context()), src)
		if err != nil {
			refuse(w, err)
			return
		}
		c.mu.Lock()
		c.comparison = comparison
		c.mu.Unlock()
		writeJSON(w, newComparison(comparison.Report()))
	}
}

func (c *control) running(w http.ResponseWriter) *host.Comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.comparison == nil {
		http.Error(w, "no comparison runs: POST /compare starts one", http.StatusConflict)
	}
	return c.comparison
}

func (c *control) compared(w http.ResponseWriter, _ *http.Request) {
	if running := c.running(w); running != nil {
		writeJSON(w, newComparison(running.Report()))
	}
}

// lastCompared bounds the wait for what was decided before a comparison was ended.
const lastCompared = time.Second

func (c *control) endComparison(w http.ResponseWriter, r *http.Request) {
	if running := c.running(w); running != nil {
		within, cancel := context.WithTimeout(r.Context(), lastCompared)
		running.Stop(within)
		cancel()
		c.mu.Lock()
		c.comparison = nil
		c.mu.Unlock()
		writeJSON(w, newComparison(running.Report()))
	}
}

// comparison is a report in the words of the admin listener.
type comparison struct {
	Live      string         `json:"live"`
	Other     string         `json:"other"`
	Decisions uint64         `json:"decisions"`
	Different uint64         `json:"different"`
	Missed    uint64         `json:"missed"` // not compared: the other policy had fallen behind
	Failure   string         `json:"failure,omitempty"`
	Samples   []disagreement `json:"samples"`
}

type disagreement struct {
	AtNS        int64  `json:"at_ns"`
	Live        string `json:"live"`
	Other       string `json:"other"`
	LiveReason  string `json:"live_reason,omitempty"`
	OtherReason string `json:"other_reason,omitempty"`
}

func newComparison(r host.ComparisonReport) comparison {
	said := func(name string, err error) string {
		if err != nil {
			return err.Error()
		}
		return name
	}
	out := comparison{
		Live: r.Live, Other: r.Other, Decisions: r.Decisions, Different: r.Different, Missed: r.Missed, Samples: []disagreement{},
	}
	if r.Failure != nil {
		out.Failure = r.Failure.Error()
	}
	for _, s := range r.Samples {
		out.Samples = append(out.Samples, disagreement{
			AtNS: int64(s.At), Live: said(s.LiveEndpoint, s.LiveError), Other: said(s.OtherEndpoint, s.OtherError),
			LiveReason: s.LiveReason, OtherReason: s.OtherReason,
		})
	}
	return out
}

func (c *control) record(w http.ResponseWriter, r *http.Request) {
	last := time.Duration(0)
	if text := r.URL.Query().Get("last"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil || last <= 0 {
			http.Error(w, fmt.Sprintf("last=%q: give a duration such as 10s", text), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := c.b.Dump(w, last); errors.Is(err, host.ErrNoRecorder) {
		refuse(w, errors.Join(err, errors.New("start the proxy with --record")))
	}
}

// readJSON reads a small body, or says what it should look like.
func readJSON(w http.ResponseWriter, r *http.Request, into any, example string) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		http.Error(w, fmt.Sprintf("the body is not the JSON expected, such as %s: %v", example, err), http.StatusBadRequest)
		return false
	}
	return true
}
