package main

import (
	"github.com/spf13/cobra"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/serve"
)

// attemptsFlags are the flags of serve that say how often a request is sent.
func attemptsFlags(cmd *cobra.Command, a *serve.Attempts) {
	f := cmd.Flags()
	f.IntVar(&a.Retries, "retries", a.Retries, "attempts on other replicas that a request may have after one that failed; 0 for none")
	f.IntVar(&a.RetryShare, "retry-share", a.RetryShare, "percentage of the requests that retries may add")
	f.IntVar(&a.RetryLeast, "retry-least", a.RetryLeast, "retries a second that are allowed whatever the share")
	f.IntSliceVar(&a.RetryStatus, "retry-status", a.RetryStatus, "statuses that are retried too, such as 502,503,504, if the request is idempotent; none by default")
	f.StringVar(&a.Hedge, "hedge", a.Hedge, "time without an answer after which a request is also sent to another replica, such as 50ms; 95p for as long as 95 of 100 take; or off")
	f.IntVar(&a.HedgeShare, "hedge-share", a.HedgeShare, "with --hedge, percentage of the requests that may be hedged")
	complete(cmd, "hedge", serve.HedgeOff, "95p")
	for _, name := range []string{"retries", "retry-share", "retry-least", "retry-status", "hedge-share"} {
		complete(cmd, name)
	}
}

// attemptsOverrides put a flag over the config.
func attemptsOverrides(a *serve.Attempts, flags serve.Attempts) map[string]func() {
	return map[string]func(){
		"retries":      func() { a.Retries = flags.Retries },
		"retry-share":  func() { a.RetryShare = flags.RetryShare },
		"retry-least":  func() { a.RetryLeast = flags.RetryLeast },
		"retry-status": func() { a.RetryStatus = flags.RetryStatus },
		"hedge":        func() { a.Hedge = flags.Hedge },
		"hedge-share":  func() { a.HedgeShare = flags.HedgeShare },
	}
}
