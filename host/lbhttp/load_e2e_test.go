package lbhttp_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/host/lbhttp"
)

// Replicas report their utilisation with each answer, and traffic follows it: queries go in
// proportion to what a replica does for the capacity that it uses (gRFC A58). The report
// itself never reaches the user.
func TestTrafficFollowsReportedUtilisation(t *testing.T) {
	b := balancer(t, "weighted_round_robin seed=7 blackout_period=0 weight_update_period=100ms")
	var served3 [3]int
	reports := func(i int, utilisation float64) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Endpoint-Load-Metrics", fmt.Sprintf("TEXT application_utilization=%g,rps_fractional=100", utilisation))
			fmt.Fprint(w, i)
		}
	}
	served(t, b, reports(0, .2), reports(1, .4), reports(2, .8))
	client := &http.Client{Transport: lbhttp.NewTransport(b)}
	ask := func(n int) {
		served3 = [3]int{}
		for range n {
			resp, err := client.Do(request(t, http.MethodGet, nil))
			require.NoError(t, err)
			assert.Empty(t, resp.Header.Get("Endpoint-Load-Metrics"))
			served3[text(t, resp)[0]-'0']++
		}
	}
	ask(30)
	time.Sleep(120 * time.Millisecond) // the weights are put in force at the next decision
	ask(700)
	assert.InDelta(t, 400, served3[0], 4)
	assert.InDelta(t, 200, served3[1], 4)
	assert.InDelta(t, 100, served3[2], 4)
}
