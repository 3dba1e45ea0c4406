package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/engine/policy"
)

func TestSpecsPrintCanonically(t *testing.T) {
	for spec, want := range map[string]string{
		"random":              "random seed=0",
		"round_robin  seed=3": "round_robin seed=3",
		"least_loaded seed=1": "least_loaded seed=1",
		"least_request":       "least_request seed=0",
		"least_request slow_start=30s aggression=1.5 min_weight_percent=5 bias=.5 choices=3": "least_request seed=0 choices=3 bias=0.5 slow_start=30s aggression=1.5 min_weight_percent=5",
		"peak_ewma tau=10s initial=1s":                                 "peak_ewma seed=0",
		"peak_ewma seed=2 tau=250ms initial=20ms penalty=0":            "peak_ewma seed=2 tau=250ms initial=20ms penalty=0",
		"yarp_power_of_two poll=500ms":                                 "yarp_power_of_two seed=0",
		"yarp_power_of_two poll=2s":                                    "yarp_power_of_two seed=0 poll=2s",
		"power_of_two":                                                 "power_of_two seed=0",
		"power_of_two choices=3":                                       "power_of_two seed=0 choices=3",
		"prequal":                                                      "prequal seed=0",
		"prequal seed=7 pool=16 quantile=0.84 max_age=1s":              "prequal seed=7",
		"prequal fit=auto aversion=on fallback=random":                 "prequal seed=0",
		"prequal max_age=250ms":                                        "prequal seed=0 max_age=250ms",
		"prequal max_age=1500us window_age=1s idle=0":                  "prequal seed=0 max_age=1500us window_age=1s idle=0",
		"prequal max_age=1m":                                           "prequal seed=0 max_age=1m",
		"prequal max_age=1.5s":                                         "prequal seed=0 max_age=1500ms",
		"prequal quantile=1 probe_rate=1.4142 remove_rate=.25 delta=0": "prequal seed=0 quantile=1 probe_rate=1.4142 remove_rate=0.25 delta=0",
		"prequal reuse=1.316 fit=strict aversion=off":                  "prequal seed=0 reuse=1.316 fit=strict aversion=off",
		"prequal pool=1":                                               "prequal seed=0 pool=1",
		"prequal mode=async":                                           "prequal seed=0",
		"prequal variant=paper":                                        "prequal seed=0",
		"prequal variant=keen mode=async seed=4":                       "prequal seed=4 variant=keen",
		"prequal variant=keen window=1000 quantile=.95":                "prequal seed=0 variant=keen",
		"prequal variant=keen window=128 quantile=.84 max_age=2s":      "prequal seed=0 variant=keen max_age=2s quantile=0.84 window=128",
		"prequal mode=sync":                                            "prequal seed=0 mode=sync",
		"prequal probes=3 wait=2 mode=sync seed=9 fallback=random":     "prequal seed=9 mode=sync",
		"prequal mode=sync probes=5":                                   "prequal seed=0 mode=sync probes=5",
		"prequal mode=sync probes=5 wait=2 window_age=100ms":           "prequal seed=0 mode=sync probes=5 wait=2 window_age=100ms",
		"prequal mode=sync quantile=0 window=1 aversion=off":           "prequal seed=0 mode=sync quantile=0 window=1 aversion=off",
		"weighted_random":                                              "weighted_random seed=0",
		"smooth_weighted_round_robin start=random seed=5":              "smooth_weighted_round_robin seed=5",
		"smooth_weighted_round_robin start=zero":                       "smooth_weighted_round_robin seed=0 start=zero",
		"weighted_round_robin weight_update_period=1s":                 "weighted_round_robin seed=0",
		"weighted_round_robin weight_expiration_period=3m":             "weighted_round_robin seed=0",
		"weighted_round_robin blackout_period=0":                       "weighted_round_robin seed=0 blackout_period=0",
		"weighted_round_robin error_utilization_penalty=2.5 seed=2":    "weighted_round_robin seed=2 error_utilization_penalty=2.5",
		"\tprequal\n seed=18446744073709551615 ":                       "prequal seed=18446744073709551615",
	} {
		p, err := policy.Parse(spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, p.Spec(), spec)
		again, err := policy.Parse(p.Spec())
		require.NoError(t, err)
		assert.Equal(t, p.Spec(), again.Spec())
	}
}

func TestSpecErrorsNamePolicyKeyValueAndRange(t *testing.T) {
	names := strings.Join(policy.Names(), ", ")
	for spec, want := range map[string]string{
		"":                                    "spec: empty; want a policy name: " + names,
		"  ":                                  "spec: empty; want a policy name: " + names,
		"prequel":                             "prequel: no such policy; want one of " + names,
		"random seed":                         "random: seed: want key=value",
		"random seed=":                        "random: seed=: want key=value",
		"random =1":                           "random: =1: want key=value",
		"random seed=1 seed=2":                "random: seed: given twice",
		"random pool=3":                       "random: pool: no such setting; want one of seed",
		"random seed=-1":                      "random: seed=-1: want a whole number from 0 to 18446744073709551615",
		"least_request bias=10.1":             "least_request: bias=10.1: want 0 to 10",
		"least_request slow_start=2h":         "least_request: slow_start=2h: want a duration such as 250ms",
		"least_request slow_start=61m":        "least_request: slow_start=61m: want 0 to 60m",
		"least_request aggression=0":          "least_request: aggression=0: want 0.1 to 10",
		"least_request min_weight_percent=0":  "least_request: min_weight_percent=0: want 1 to 100",
		"linear lambda=1.1":                   "linear: lambda=1.1: want 0 to 1",
		"linear alpha=61m":                    "linear: alpha=61m: want 0 to 60m",
		"linear quantile=1":                   "linear: quantile: no such setting; want one of seed, lambda, alpha, pool, max_age, probe_rate, remove_rate, delta, min_pool, idle, reuse, fit, aversion, fallback",
		"weighted_random weight=3":            "weighted_random: weight: no such setting; want one of seed",
		"smooth_weighted_round_robin start=1": "smooth_weighted_round_robin: start=1: want one of random, zero",
		"weighted_round_robin weight_update_period=99ms":      "weighted_round_robin: weight_update_period=99ms: want 100ms to 60m",
		"weighted_round_robin weight_expiration_period=0":     "weighted_round_robin: weight_expiration_period=0: want 1us to 60m",
		"weighted_round_robin blackout_period=61m":            "weighted_round_robin: blackout_period=61m: want 0 to 60m",
		"weighted_round_robin error_utilization_penalty=1001": "weighted_round_robin: error_utilization_penalty=1001: want 0 to 1000",
		"c3 clients=0":                        "c3: clients=0: want 1 to 1000000",
		"c3 alpha=0.001":                      "c3: alpha=0.001: want 0.01 to 1",
		"c3 pool=65":                          "c3: pool=65: want 1 to 64",
		"peak_ewma tau=1us":                   "peak_ewma: tau=1us: want 1ms to 60m",
		"peak_ewma initial=0":                 "peak_ewma: initial=0: want 1us to 60m",
		"peak_ewma penalty=90m":               "peak_ewma: penalty=90m: want 0 to 60m",
		"yarp_power_of_two poll=999us":        "yarp_power_of_two: poll=999us: want 1ms to 60m",
		"power_of_two choices=17":             "power_of_two: choices=17: want 1 to 16",
		"power_of_two choices=two":            "power_of_two: choices=two: want a whole number",
		"prequal pool=0":                      "prequal: pool=0: want 1 to 64",
		"prequal pool=65":                     "prequal: pool=65: want 1 to 64",
		"prequal quantile=1.01":               "prequal: quantile=1.01: want 0 to 1",
		"prequal quantile=0.84123":            "prequal: quantile=0.84123: want a number that is not negative, with at most four decimals",
		"prequal quantile=-1":                 "prequal: quantile=-1: want a number that is not negative, with at most four decimals",
		"prequal max_age=1":                   "prequal: max_age=1: want a duration such as 250ms",
		"prequal max_age=1ns":                 "prequal: max_age=1ns: want 1us to 60m",
		"prequal max_age=2h":                  "prequal: max_age=2h: want a duration such as 250ms",
		"prequal max_age=61m":                 "prequal: max_age=61m: want 1us to 60m",
		"prequal min_pool=5 pool=4":           "prequal: min_pool=5: want 1 to 4",
		"prequal probe_rate=16.1":             "prequal: probe_rate=16.1: want 0 to 16",
		"prequal remove_rate=99":              "prequal: remove_rate=99: want 0 to 16",
		"prequal window=5000":                 "prequal: window=5000: want 1 to 4096",
		"prequal reuse=0":                     "prequal: reuse=0: want 1 to 1000000",
		"prequal reuse=0.5":                   "prequal: reuse=0.5: want 1 to 1000000",
		"prequal fit=loose":                   "prequal: fit=loose: want one of auto, strict",
		"prequal fallback=first":              "prequal: fallback=first: want one of random",
		"prequal colour=red":                  "prequal: colour: no such setting; want one of seed, mode, variant, pool, max_age, quantile, probe_rate, remove_rate, delta, min_pool, window, window_age, idle, reuse, fit, aversion, fallback",
		"prequal mode=both":                   "prequal: mode=both: want one of async, sync",
		"prequal mode=sync pool=16":           "prequal: pool=16: applies to mode=async only",
		"prequal mode=sync max_age=1s":        "prequal: max_age=1s: applies to mode=async only",
		"prequal probe_rate=3 mode=sync":      "prequal: probe_rate=3: applies to mode=async only",
		"prequal mode=sync fit=auto":          "prequal: fit=auto: applies to mode=async only",
		"prequal mode=sync variant=keen":      "prequal: variant=keen: applies to mode=async only",
		"prequal variant=eager":               "prequal: variant=eager: want one of paper, keen",
		"prequal variant=keen probes=3":       "prequal: probes=3: applies to mode=sync only",
		"prequal probes=3":                    "prequal: probes=3: applies to mode=sync only",
		"prequal mode=async wait=2":           "prequal: wait=2: applies to mode=sync only",
		"prequal mode=sync probes=1":          "prequal: probes=1: want 2 to 16",
		"prequal mode=sync probes=17":         "prequal: probes=17: want 2 to 16",
		"prequal mode=sync wait=0":            "prequal: wait=0: want 1 to 3",
		"prequal mode=sync wait=4":            "prequal: wait=4: want 1 to 3",
		"prequal mode=sync window=0":          "prequal: window=0: want 1 to 4096",
		"prequal mode=sync quantile=2":        "prequal: quantile=2: want 0 to 1",
		"prequal mode=sync colour=red":        "prequal: colour: no such setting; want one of seed, mode, probes, wait, quantile, window, window_age, aversion, fallback",
		"\x00\xff" + strings.Repeat("x", 100): "??" + strings.Repeat("x", 38) + "...: no such policy; want one of " + names,
	} {
		p, err := policy.Parse(spec)
		assert.Nil(t, p)
		require.ErrorIs(t, err, engine.ErrConfig, spec)
		var config *engine.ConfigError
		require.ErrorAs(t, err, &config)
		assert.EqualError(t, err, want, spec)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"random", "prequal seed=7 pool=16 quantile=0.84 max_age=1s", "power_of_two choices=3 seed=1", "prequal max_age=1.5s reuse=2.5 fit=strict", "prequal mode=sync probes=5 wait=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		p, err := policy.Parse(spec)
		if err != nil {
			require.ErrorIs(t, err, engine.ErrConfig)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		again, err := policy.Parse(p.Spec())
		require.NoError(t, err, p.Spec())
		require.Equal(t, p.Spec(), again.Spec())
	})
}

// The files of the package and the names of the policies are one list.
func TestEveryPolicyHasItsFile(t *testing.T) {
	for _, name := range policy.Names() {
		_, err := os.Stat(filepath.Join(".", strings.ReplaceAll(name, "_", "")+".go"))
		assert.NoError(t, err, name)
	}
}

func TestConfigErrorsUnwrap(t *testing.T) {
	_, err := policy.Parse("nothing")
	assert.True(t, errors.Is(err, engine.ErrConfig))
	_, err = policy.NewSmoothWeightedRoundRobin(1, "") // what Parse never hands over
	assert.True(t, errors.Is(err, engine.ErrConfig))
}
