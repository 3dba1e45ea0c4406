package lbhttp

import (
	"sync"

	"github.com/headroom-lb/headroom/engine"
)

// token is one attempt beyond the first, in the units in which a budget counts: small enough that a
// rate per second earns whole units in every nanosecond.
const token = 1_000_000_000

const (
	mostShare  = 100       // percent of the queries
	mostLeast  = 1_000_000 // attempts a second
	leastBurst = 10        // attempts that a budget saves up, whatever its rate
	savesUp    = 10 * engine.Second
)

// budget is a bucket of tokens. Every query puts a share of one in, time puts some in whatever the
// traffic, and it holds what ten seconds put in, or a few. It begins full.
type budget struct {
	share int64 // units for each query
	rate  int64 // units for each nanosecond, which is tokens for each second
	most  int64

	mu      sync.Mutex
	held    int64
	queries int64          // up to which they have paid
	at      engine.Instant // up to which time has
}

func newBudget(percent, least int) *budget {
	b := &budget{
		share: int64(min(max(percent, 0), mostShare)) * token / 100,
		rate:  int64(min(max(least, 0), mostLeast)),
	}
	b.most = max(leastBurst*token, b.rate*int64(savesUp))
	b.held = b.most
	return b
}

// take pays for one attempt, or says that there is nothing left. Queries and time are paid in only
// here, since between two takes a bucket can but grow to its bound.
func (b *budget) take(now engine.Instant, queries int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Callers read both before they had the lock: another may have come first with later ones.
	asked, gone := max(queries-b.queries, 0), max(engine.Duration(now-b.at), 0)
	b.queries, b.at = b.queries+asked, b.at+engine.Instant(gone)
	// More than either bound fills the bucket anyway; without them the products could overflow.
	earned := min(asked, token)*b.share + int64(min(gone, savesUp))*b.rate
	b.held = min(b.held+earned, b.most)
	if b.held < token {
		return false
	}
	b.held -= token
	return true
}

// giveBack returns what was paid for an attempt that was not made.
func (b *budget) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = min(b.held+token, b.most)
}
