package showcase

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headroom-lb/headroom/showcase/pages"
	"github.com/headroom-lb/headroom/showcase/sim"
)

// tableWait is how long a page waits for its table's run, and for the runs before it.
const tableWait = 20 * time.Second

// servePage serves the page: alive with a script, and without one a table of the same scene.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	setup, notes, problem := ParseSetup(r.URL.Query())
	status := http.StatusOK
	var runs []sim.Summary
	if problem != nil {
		setup, status = DefaultSetup(), http.StatusBadRequest
	} else {
		ctx, cancel := context.WithTimeout(r.Context(), tableWait)
		defer cancel()
		if runs, problem = s.tables.get(ctx, setup); problem != nil {
			status = http.StatusServiceUnavailable
		}
	}
	v := s.view(setup, runs)
	v.Note = strings.Join(notes, "; ")
	if problem != nil {
		v.Problem = problem.Error()
	}
	var body bytes.Buffer
	if err := pages.Page(v).Render(r.Context(), &body); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		s.log.Error("page", "err", err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

// policies lists the policies with the engine's flagship first.
func policies() []string {
	names := sim.Policies()
	if at := slices.Index(names, "prequal"); at >= 0 {
		names = append([]string{"prequal"}, slices.Delete(slices.Clone(names), at, at+1)...)
	}
	return names
}

func (s *Server) view(setup Setup, runs []sim.Summary) pages.View {
	a, b, err := setup.Specs()
	if err != nil {
		panic(err) // ParseSetup has checked it
	}
	quantile, probe := knobs(a, b)
	v := pages.View{
		Style: s.assets.url("app.css"), Script: s.assets.url("app.js"), Modules: s.assets.modules(),
		Query: setup.Query(), Scenario: setup.Scenario, Seed: strconv.FormatUint(setup.Seed, 10),
		A: choice("a", setup.A, a), B: choice("b", setup.B, b),
		Scenes: options(setup.Scenario, "neighbours", "Noisy neighbours", "weather", "Changing weather", "calm", "Calm"),
		Speeds: options(decimal(setup.Speed), "0.05", "1/20", "0.25", "1/4", "0.5", "1/2", "1", "real time", "2", "double"),
		Load: pages.Knob{Name: "load", Label: "Load", Hint: "Offered work over the fleet's allocation", Min: "0.3", Max: "2", Step: "0.05",
			Value: decimal(setup.Load), Text: percent(float64(setup.Load) / unit)},
		Noisy: pages.Knob{Name: "noisy", Label: "Noisy machines", Hint: "Machines whose neighbour never rests", Min: "0", Max: strconv.Itoa(maxNoisy), Step: "1",
			Value: strconv.Itoa(setup.Noisy), Text: strconv.Itoa(setup.Noisy)},
		Quantile: pages.Knob{Name: "q", Label: "Hot above quantile", Hint: "Of the RIFs heard of lately. Pull it down to see hot decisions", Min: "0", Max: "1", Step: "0.02",
			Value: strconv.FormatFloat(quantile, 'f', -1, 64), Text: strconv.FormatFloat(quantile, 'f', 2, 64), Off: quantile < 0},
		Probe: pages.Knob{Name: "probe", Label: "Probes per query", Hint: "With fewer, readings are older and each informs more decisions", Min: "0.25", Max: "5", Step: "0.25",
			Value: strconv.FormatFloat(probe, 'f', -1, 64), Text: strconv.FormatFloat(probe, 'f', 2, 64), Off: probe < 0},
		Hidden: hidden(setup), Engine: s.engine.Kind, Digest: s.engine.Digest,
		Seconds: strconv.FormatInt(s.tables.span/sim.Second, 10),
	}
	if len(runs) == 2 {
		fillNumbers(&v, runs[0], runs[1])
	}
	return v
}

func choice(name, given, spec string) pages.Choice {
	c := pages.Choice{Name: name, Title: Title(spec), Spec: spec}
	names := policies()
	if !slices.Contains(names, given) {
		c.Options = append(c.Options, pages.Option{Value: given, Label: given, Selected: true})
	}
	for _, p := range names {
		c.Options = append(c.Options, pages.Option{Value: p, Label: Title(p), Selected: p == given})
	}
	return c
}

// options makes a list from pairs of value and label; a value that is not among them is added.
func options(selected string, pairs ...string) []pages.Option {
	var out []pages.Option
	found := false
	for i := 0; i < len(pairs); i += 2 {
		o := pages.Option{Value: pairs[i], Label: pairs[i+1], Selected: pairs[i] == selected}
		found = found || o.Selected
		out = append(out, o)
	}
	if !found {
		out = append(out, pages.Option{Value: selected, Label: selected, Selected: true})
	}
	return out
}

// hidden keeps what a link says and no control shows.
func hidden(s Setup) []pages.Field {
	d := DefaultSetup()
	var out []pages.Field
	add := func(name string, value, usual int) {
		if value != usual {
			out = append(out, pages.Field{Name: name, Value: strconv.Itoa(value)})
		}
	}
	add("replicas", s.Replicas, d.Replicas)
	add("clients", s.Clients, d.Clients)
	add("focus", s.Focus, 0)
	add("t", s.Start, 0)
	if s.Room != "" {
		out = append(out, pages.Field{Name: "room", Value: s.Room})
	}
	return out
}

func percent(v float64) string { return strconv.FormatFloat(v*100, 'f', 0, 64) + " %" }
