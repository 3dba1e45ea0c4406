package showcase

import (
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const textOf = "((id) => document.getElementById(id).textContent)"

// What the page says in words: a link that cannot be shown, one that was clamped, a run in
// progress, numbers that agree, a button that undoes only what it did.
func testTells(t *testing.T, p *tab, srv *httptest.Server) {
	require.NoError(t, chromedp.Do(p.ctx, chromedp.Navigate(srv.URL+"/?a=foo&load=99")))
	p.wait(textOf + "('curtain').includes('a: foo')")
	assert.Contains(t, eval[string](p, textOf+"('curtain')"), "This link cannot be shown.")
	p.wait("new Promise((done) => setTimeout(() => done(__show.stats.reconnects === 0), 1500))")
	assert.Equal(t, "load=99 is out of range: 2 is used", eval[string](p, textOf+"('log')"))
	eval[any](p, `(() => { const s = document.querySelector('select[name=a]'); s.value = 'random'; s.dispatchEvent(new Event('change')); })()`)
	p.wait("__show.stats.frames > 5 && document.getElementById('curtain').hidden")
	assert.Contains(t, eval[string](p, "location.search"), "a=random")

	const link = "/?clients=4&replicas=12&room=tells"
	p.visit(srv.URL + link)
	p.visit(srv.URL + link)
	assert.Regexp(t, `^running for \d+ s already`, eval[string](p, textOf+"('log')"))

	p.press(" ")
	p.wait("__show.stats.paused && __show.state.paused")
	p.wait(textOf + "('headline') === __show.state.verdict")
	p99 := eval[string](p, textOf+"('p99-a')")
	assert.Contains(t, eval[string](p, textOf+"('headline')"), "99 in 100 within "+p99)
	assert.Equal(t, "99 % answered within", eval[string](p, textOf+"('what-a')"))

	eval[any](p, "document.getElementById('restart').click()")
	p.wait("__show.stats.simMs === 0 && __show.lastDecision.serial === 0")
	assert.Zero(t, p.stats().Drawn, "nothing of the run before flies on")
	assert.Equal(t, "Waiting for client 0's first decision.", eval[string](p, textOf+"('why')"))
	assert.Zero(t, p.pixels("#plane", hotDark)[0])

	eval[any](p, "document.getElementById('kill').click()")
	p.wait("__show.controls.states.startsWith('x')")
	assert.Equal(t, "Lose two thirds", eval[string](p, textOf+"('thirds')"), "one dead replica is not its doing")
	eval[any](p, "document.getElementById('thirds').click()")
	p.wait("__show.controls.states.endsWith('xx')")
	assert.Equal(t, "Bring them back", eval[string](p, textOf+"('thirds')"))
}

// On the phone every control is named, the charts say which fleet is theirs, help opens at its
// top.
func testPhoneLayout(t *testing.T, p *tab) {
	for _, name := range []string{"a", "b", "s", "seed", "speed"} {
		assert.Positive(t, eval[float64](p, `document.querySelector('.bar .field.`+name+` > span').getBoundingClientRect().width`), name)
	}
	for _, k := range []string{"a", "b"} {
		assert.True(t, eval[bool](p, `(() => {
			const letter = document.querySelector('.charts figcaption b.`+k+`').getBoundingClientRect();
			const caption = document.querySelector('.charts figcaption:has(b.`+k+`)').getBoundingClientRect();
			return letter.width > 0 && letter.right <= caption.right;
		})()`), k)
	}
	p.press("?")
	assert.True(t, eval[bool](p, "document.getElementById('help').open"))
	assert.Zero(t, eval[float64](p, "document.getElementById('help').scrollTop"))
	eval[any](p, "document.getElementById('help').close()")
}
