package discovery

import (
	"log/slog"
	"slices"
	"time"
)

// Stats are a keeper's counts since it was made, and how it stands.
type Stats struct {
	Revision  uint64 // of the snapshot that serves
	Endpoints int    // of that snapshot
	Draining  int    // kept besides, because they vanished lately

	Snapshots uint64 // taken
	Refused   uint64 // snapshots refused
	HeldEmpty uint64 // empty snapshots that were not believed at once
	Added     uint64
	Altered   uint64 // endpoints whose address, weight, priority, locality or status changed
	Vanished  uint64
	Returned  uint64 // of those, before they were removed
	Removed   uint64 // drained and removed; those that gave way before are not counted

	Holding  bool      // the source has no endpoints and is not believed yet
	Failures uint64    // looks at the source that went badly
	Failing  error     // what the last look at the source met; nil if it went well
	Looked   time.Time // the last look that went well; zero if none did
}

// Stats says how things stand.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Holding = k.empty != nil
	return s
}

// Report implements [Sink]: it logs when a source starts to fail, fails in another way, or stops
// failing.
func (k *Keeper) Report(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.stats.Failing
	k.stats.Failing = err
	if err == nil {
		k.stats.Looked = time.Now()
		if was != nil {
			k.cfg.Log.Info("the source of endpoints can be read again", "was", was)
		}
		return
	}
	k.stats.Failures++
	if was == nil || was.Error() != err.Error() {
		k.cfg.Log.Warn("the source of endpoints is in trouble; the last good ones serve",
			"error", err, "revision", k.stats.Revision, "endpoints", k.stats.Endpoints)
	}
}

// change is what a snapshot changed, by name.
type change struct {
	revision                           uint64
	total                              int
	added, altered, vanished, returned []string
}

func (s *Stats) add(c *change) {
	s.Snapshots++
	s.Added += uint64(len(c.added))
	s.Altered += uint64(len(c.altered))
	s.Vanished += uint64(len(c.vanished))
	s.Returned += uint64(len(c.returned))
}

func (c *change) log(log *slog.Logger) {
	attrs := []any{"revision", c.revision, "endpoints", c.total}
	for _, part := range []struct {
		what  string
		names []string
	}{{"added", c.added}, {"altered", c.altered}, {"vanished", c.vanished}, {"returned", c.returned}} {
		if len(part.names) > 0 {
			attrs = append(attrs, part.what, len(part.names), part.what+"_names", some(part.names))
		}
	}
	log.Info("endpoints changed", attrs...)
}

// some is the first names in order: a line for ten thousand is no use to anybody.
func some(names []string) []string {
	slices.Sort(names)
	if len(names) > 8 {
		return append(names[:8:8], "…")
	}
	return names
}
