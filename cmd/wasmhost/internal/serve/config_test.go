package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proxy.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c := Defaults()
	if err := c.Load(path); err != nil {
		return c, err
	}
	return c, c.Validate()
}

func TestConfigFile(t *testing.T) {
	c, err := load(t, `
listen: 127.0.0.1:8081
spec: prequal seed=7 quantile=0.9
shards: 2
drain: 3s
probe_wait: 1ms
key: X-User
hint: X-Cart
health_interval: 1s
health_path: /up
health_panic: 0
outlier: true
slow_start: 30s
endpoints:
  - http://127.0.0.1:9001
  - {url: "https://replica.example:8443", name: b, weight: 2, priority: 1, locality: z1}
`)
	require.NoError(t, err)
	want := Defaults()
	want.Listen, want.Spec, want.Shards, want.Drain = "127.0.0.1:8081", "prequal seed=7 quantile=0.9", 2, Duration(3*time.Second)
	want.ProbeWait, want.Key, want.Hint = Duration(time.Millisecond), "X-User", "X-Cart"
	want.Health.Interval, want.Health.Path, want.Health.Panic = Duration(time.Second), "/up", 0
	want.Health.Outlier, want.Health.SlowStart = true, Duration(30*time.Second)
	want.Endpoints = []Endpoint{
		{URL: "http://127.0.0.1:9001", Name: "127.0.0.1:9001"},
		{URL: "https://replica.example:8443", Name: "b", Weight: 2, Priority: 1, Locality: "z1"},
	}
	c.lines = places{}
	require.Equal(t, want, c)
}

func TestConfigRefuses(t *testing.T) {
	const ok = "endpoints: [http://127.0.0.1:9001]\n"
	for text, want := range map[string]string{
		"":                               "no endpoints: give --endpoint",
		ok + "listen: 8080":              `proxy.yaml:2: --listen "8080" is not host:port`,
		ok + "admin: nowhere":            `--admin "nowhere" is not host:port`,
		ok + "lisen: 127.0.0.1:1":        "proxy.yaml:2: unknown setting lisen: did you mean listen? use listen, admin",
		ok + "shards: 0":                 "--shards is 0: give 1 to 64",
		ok + "shards: 1.5":               `proxy.yaml:2: "1.5" is not a whole number`,
		ok + "key: 1.5":                  `--key is "1.5": give the name of a header`,
		ok + "shards: many":              `proxy.yaml:2: "many" is not a whole number`,
		ok + "engine: jvm":               `--engine is "jvm": give wasm or native`,
		ok + "engine: native\nmodule: x": "--module and --engine native exclude each other",
		ok + "drain: soon":               `"soon" is not a duration`,
		ok + "drain: -1s":                "--drain is -1s",
		ok + "probe_wait: 0s":            "--probe-wait is 0s: give more than 0",
		ok + "probe_wait: 2m":            "--probe-wait is 2m0s",
		ok + "key: \"a:b\"":              `--key is "a:b": give the name of a header`,
		ok + "hint: \"a b\"":             `--hint is "a b": give the name of a header`,
		ok + "health_interval: 1ms":      "--health-interval is 1ms: give 0 for none, or 10ms to 1h0m0s",
		ok + "health_timeout: 0s":        "--health-timeout is 0s: give 1ms to 1m0s",
		ok + "health_healthy: 0":         "--health-healthy is 0: give 1 to 100",
		ok + "health_unhealthy: 101":     "--health-unhealthy is 101: give 1 to 100",
		ok + "health_failures: -1":       "--health-failures is -1: give 0 to 1000000",
		ok + "health_panic: 101":         "--health-panic is 101: give 0 to 100",
		ok + "health_path: up":           `--health-path is "up": give a path such as /healthz`,
		ok + "health_path: /%zz":         `proxy.yaml:2: --health-path is "/%zz": give a path such as /healthz`,
		ok + "listen: 127.0.0.1:9901":    "--admin 127.0.0.1:9901 is --listen's, too: choose another port",
		ok + "retry_status: &a [*a]":     "proxy.yaml:2: want a whole number",
		ok + "outlier: perhaps":          `"perhaps" is not true or false`,
		ok + "slow_start: 2h":            "--slow-start is 2h0m0s: give 0 for none, or 100ms to 1h0m0s",
		"slow_start: 1m\nendpoints: [{url: http://a, weight: 42949673}]": "proxy.yaml:2: endpoint \"http://a\" has weight 42949673: with --slow-start give at most 42949672",
		ok + "spec: prequal mode=sync pool=3":                            "prequal: pool=3: applies to mode=async only",
		ok + "spec: fastest":                                             "no such policy",
		ok + "spec: prequal pol=3":                                       "pol",
		ok + "spec: prequal pool=0":                                      "pool=0",
		ok + "---\nshards: 2":                                            "give one document",
		ok + "---\n":                                                     "give one document",
		ok + "shards: 2\nshards: 3":                                      "already defined",
		ok + "shards: [2]":                                               "proxy.yaml:2: want a whole number",
		"endpoints: yes":                                                 `proxy.yaml:1: "yes" is not a list of endpoints`,
		"endpoints: {a: b}":                                              "proxy.yaml:1: want a list of endpoints",
		"hello":                                                          `proxy.yaml:1: "hello" is not a map of settings`,
		"endpoints: [{url: http://a, priority: 300}]":                    "proxy.yaml:1: \"300\" is not a whole number from 0 to 255",
		"endpoints:\n- url: http://a\n  weight: 0":                       "proxy.yaml:3: weight 0: give 1 to 4294967295",
		"endpoints: [{url: http://a, weight: -1}]":                       "proxy.yaml:1: weight -1: give 1 to 4294967295",
		"endpoints: [\"http://a:99999\"]":                                "has no such port: give 1 to 65535",
		"endpoints: [\"http://a:0\"]":                                    "has no such port: give 1 to 65535",
		"endpoints: [127.0.0.1:9001]":                                    "is not a base URL",
		"endpoints: [ftp://a]":                                           "is not a base URL",
		"endpoints: [\"http://\"]":                                       "is not a base URL",
		"endpoints: [\"http://a?b=c\"]":                                  "is not a base URL",
		"endpoints: [{ulr: x}]":                                          `unknown key "ulr" of an endpoint: did you mean url? use url`,
		"endpoints: [[x]]":                                               "an endpoint is a URL or a map",
		"endpoints:\n- http://a\n- http://a":                             `proxy.yaml:3: endpoint "a" is given twice`,
		ok + "max_header: 1KiB":                                          "proxy.yaml:2: --max-header is 1KiB: give 8KiB to 16MiB",
		ok + "max_body: lots":                                            `proxy.yaml:2: "lots" is not a size: write one like 64KiB`,
		ok + "max_body: -1":                                              `"-1" is not a size`,
		ok + "max_streams: 0":                                            "--max-streams is 0: give 1 to 100000",
		ok + "stall_timeout: 0s":                                         "--stall-timeout is 0s: give 10ms to 24h0m0s",
		ok + "tls_cert: a.pem":                                           "proxy.yaml:2: --tls-cert is given without --tls-key",
		ok + "tls_key: a.pem":                                            "--tls-key is given without --tls-cert",
		ok + "tls_cert: no.pem\ntls_key: no.key":                         "proxy.yaml:2: --tls-cert no.pem cannot be read: no such file",
		ok + "tls_cert: a\ntls_key: a\nh2c: true":                        "proxy.yaml:4: --h2c is HTTP/2 without TLS",
		ok + "upstream_ca: no.pem":                                       "proxy.yaml:2: --upstream-ca no.pem cannot be read: no such file",
		ok + "token_file: no.txt":                                        "proxy.yaml:2: --token-file no.txt cannot be read: no such file",
		ok + "fuel: 5":                                                   "--fuel is 5: give 10000 to 1000000000000",
		ok + "fuel: plenty":                                              `proxy.yaml:2: "plenty" is not a whole number`,
		ok + "endpoints_file: x.json":                                    "--endpoints-file and endpoints given one by one exclude each other",
	} {
		_, err := load(t, text)
		require.ErrorContains(t, err, want, text)
		require.NotRegexp(t, `serve\.|!!|\bint\b|uint`, err.Error(), "names of Go or YAML types")
	}
	c := Defaults()
	require.ErrorContains(t, c.Load("no/such/file.yaml"), "--config no/such/file.yaml cannot be read: no such file")
}
