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
endpoints:
  - http://127.0.0.1:9001
  - {url: "https://replica.example:8443", name: b, weight: 2, priority: 1, locality: z1}
`)
	require.NoError(t, err)
	want := Defaults()
	want.Listen, want.Spec, want.Shards, want.Drain = "127.0.0.1:8081", "prequal seed=7 quantile=0.9", 2, Duration(3*time.Second)
	want.Endpoints = []Endpoint{
		{URL: "http://127.0.0.1:9001", Name: "127.0.0.1:9001"},
		{URL: "https://replica.example:8443", Name: "b", Weight: 2, Priority: 1, Locality: "z1"},
	}
	require.Equal(t, want, c)
}

func TestConfigRefuses(t *testing.T) {
	const ok = "endpoints: [http://127.0.0.1:9001]\n"
	for text, want := range map[string]string{
		"":                                "no endpoints: give --endpoint",
		ok + "listen: 8080":               `--listen "8080" is not host:port`,
		ok + "admin: nowhere":             `--admin "nowhere" is not host:port`,
		ok + "lisen: 127.0.0.1:1":         "field lisen not found",
		ok + "shards: 0":                  "--shards is 0: give 1 to 64",
		ok + "shards: many":               "cannot unmarshal",
		ok + "engine: jvm":                `--engine is "jvm": give wasm or native`,
		ok + "engine: native\nmodule: x":  "--module and --engine native exclude each other",
		ok + "drain: soon":                `"soon" is not a duration`,
		ok + "drain: -1s":                 "--drain is -1s",
		ok + "spec: fastest":              "no such policy",
		ok + "spec: prequal pol=3":        "pol",
		ok + "spec: prequal pool=0":       "pool=0",
		"endpoints: [127.0.0.1:9001]":     "is not a base URL",
		"endpoints: [ftp://a]":            "is not a base URL",
		"endpoints: [\"http://\"]":        "is not a base URL",
		"endpoints: [\"http://a?b=c\"]":   "is not a base URL",
		"endpoints: [{ulr: x}]":           `unknown key "ulr" of an endpoint`,
		"endpoints: [[x]]":                "an endpoint is a URL or a map",
		"endpoints: [http://a, http://a]": `endpoint "a" is given twice`,
	} {
		_, err := load(t, text)
		require.ErrorContains(t, err, want, text)
	}
	c := Defaults()
	require.ErrorContains(t, c.Load("no/such/file.yaml"), "--config no/such/file.yaml cannot be read: no such file")
}
