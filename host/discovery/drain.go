package discovery

import (
	"maps"
	"time"
)

// setStopped starts and stops what time brings.
func (k *Keeper) setStopped(stopped bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = stopped
	k.wake()
}

// wake sets the timer for the next thing that time brings. The caller holds the lock.
func (k *Keeper) wake() {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	now := time.Now()
	if k.empty != nil {
		sooner(k.since.Add(k.cfg.HoldEmpty))
	}
	for _, l := range k.leaving {
		sooner(l.since.Add(k.cfg.Drain))
		if k.cfg.InFlight != nil {
			sooner(now.Add(idleLook))
		}
	}
	switch {
	case k.stopped || next.IsZero():
		if k.timer != nil {
			k.timer.Stop()
		}
	case k.timer == nil:
		k.timer = time.AfterFunc(next.Sub(now), k.tick)
	default:
		k.timer.Reset(next.Sub(now))
	}
}

// tick does what is due by now.
func (k *Keeper) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.wake()
	now := time.Now()
	if k.empty != nil && now.Sub(k.since) >= k.cfg.HoldEmpty {
		s := *k.empty
		k.empty = nil
		k.cfg.Log.Warn("the source has had no endpoints for too long; its word is taken", "revision", s.Revision)
		// Only a balancer can refuse no endpoints; then the old ones serve, as after any refusal.
		if err := k.take(s); err != nil {
			k.cfg.Log.Error("no endpoints were refused", "revision", s.Revision, "error", err)
		}
	}
	leaving := maps.Clone(k.leaving)
	var removed []string
	for name, l := range leaving {
		idle := k.cfg.InFlight != nil && k.cfg.InFlight(name) == 0
		if now.Sub(l.since) >= k.cfg.Drain || idle && l.idle {
			delete(leaving, name)
			removed = append(removed, name)
			continue
		}
		l.idle = idle
		leaving[name] = l
	}
	if len(removed) == 0 {
		k.leaving = leaving
		return
	}
	if err := k.apply(k.serving, leaving); err != nil {
		k.later(removed, now)
		k.cfg.Log.Error("drained endpoints could not be removed; they are tried again", "count", len(removed), "error", err)
		return
	}
	k.stats.Removed += uint64(len(removed))
	k.cfg.Log.Info("drained endpoints are removed", "count", len(removed), "names", some(removed))
}

// later gives drained endpoints, which a balancer would not let go, another time to drain.
func (k *Keeper) later(names []string, now time.Time) {
	for _, name := range names {
		l := k.leaving[name]
		l.since, l.idle = now, false
		k.leaving[name] = l
	}
}
