package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadInput holds every mistake to one line on stderr that says what to do, nothing on stdout, and the right
// exit code: 2 for what was asked wrongly, 1 for what did not work.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() }) // after the parallel subtests, unlike defer

	const trace = `{"op":"spec","spec":"round_robin seed=1"}` + "\n" + `{"op":"endpoints","at":0,"endpoints":[{"name":"a"},{"name":"b"}]}` + "\n"
	const endpoint = "--endpoint=http://127.0.0.1:1"
	serve := func(args ...string) []string {
		return append([]string{"serve", "--listen=127.0.0.1:0", "--admin=off", endpoint}, args...)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown command":     {[]string{"dmeo"}, 2, `unknown command "dmeo"`},
		"unknown flag":        {serve("--speck=random"), 2, "unknown flag: --speck"},
		"stray argument":      {serve("http://127.0.0.1:2"), 2, "give each replica as --endpoint URL"},
		"config folder":       {serve("--config=" + dir), 2, "cannot be read: is a directory"},
		"module folder":       {serve("--module=" + dir), 2, "cannot be read: is a directory"},
		"no such port":        {serve("--endpoint=http://127.0.0.1:70000"), 2, "give 1 to 65535"},
		"not a number":        {serve("--shards=two"), 2, "--shards"},
		"no endpoints":        {[]string{"serve"}, 2, "give --endpoint URL for each replica"},
		"bad URL":             {serve("--endpoint=127.0.0.1:9001"), 2, "is not a base URL"},
		"endpoint twice":      {serve(endpoint), 2, "is given twice"},
		"unknown policy":      {serve("--spec=fastest"), 2, "no such policy; want one of"},
		"empty spec":          {serve("--spec="), 2, "want a policy name"},
		"unknown key":         {serve("--spec=prequal pol=3"), 2, "pol"},
		"repeated key":        {serve("--spec=random seed=1 seed=2"), 2, "seed"},
		"out of range":        {serve("--spec=prequal quantile=1.5"), 2, "quantile=1.5"},
		"health interval":     {serve("--health-interval=1ms"), 2, "--health-interval is 1ms: give 0 for none, or 10ms to 1h0m0s"},
		"health path":         {serve("--health-path=up"), 2, "give a path such as /healthz"},
		"slow start":          {serve("--slow-start=2h"), 2, "--slow-start is 2h0m0s: give 0 for none, or 100ms to 1h0m0s"},
		"hedge":               {serve("--hedge=99p"), 2, `--hedge is "99p": give off, 95p, or a time of 1ms to 1m0s`},
		"retry status":        {serve("--retry-status=503,200"), 2, "--retry-status has 200: give statuses of 400 to 599"},
		"strict fit":          {serve("--spec=prequal fit=strict"), 2, "more replicas than pool entries"},
		"unknown engine":      {serve("--engine=jvm"), 2, "give wasm or native"},
		"port in use":         {serve("--listen=" + taken.Addr().String()), 1, "is in use: stop what listens there or choose another port"},
		"admin port in use":   {serve("--admin=" + taken.Addr().String()), 1, "--admin " + taken.Addr().String() + " is in use"},
		"not an address":      {serve("--listen=8080"), 2, "is not host:port"},
		"too little fuel":     {serve("--fuel=5"), 2, "--fuel is 5: give 10000 to 1000000000000"},
		"no module":           {serve("--module=" + filepath.Join(dir, "none.wasm")), 2, "cannot be read: no such file"},
		"not a module":        {serve("--module=" + file("text.wasm", "hello")), 2, "not a WebAssembly module"},
		"wrong module":        {serve("--module=" + file("empty.wasm", "\x00asm\x01\x00\x00\x00")), 2, "unusable module"},
		"damaged module":      {serve("--module=" + file("cut.wasm", "\x00asm\x01\x00\x00\x00\x01\x40")), 2, "unusable module"},
		"no config":           {serve("--config=" + filepath.Join(dir, "none.yaml")), 2, "cannot be read: no such file"},
		"config typo":         {serve("--config=" + file("typo.yaml", "lisen: 127.0.0.1:1\n")), 2, "unknown setting lisen"},
		"config is not YAML":  {serve("--config=" + file("bad.yaml", "a: [\n")), 2, "yaml"},
		"replica port in use": {[]string{"replica", "--listen", taken.Addr().String()}, 1, "is in use"},
		"replica setting":     {[]string{"replica", "--slots", "0"}, 2, "slots is 0: give 1 to 10000"},
		"demo overload":       {[]string{"demo", "--rate", "5000"}, 2, "no policy helps there, give less"},
		"demo slow factor":    {[]string{"demo", "--slow-factor", "NaN"}, 2, "--slow-factor is NaN: give 1 to 100"},
		"demo too many":       {[]string{"demo", "--duration", "20h"}, 2, "queries a round: give less"},
		"demo policy":         {[]string{"demo", "--policies", "fastest"}, 2, "no such policy"},
		"demo fleet":          {[]string{"demo", "--replicas", "0"}, 2, "--replicas is 0: give 1 to 200"},
		"trace is not there":  {[]string{"replay", filepath.Join(dir, "none.jsonl")}, 2, "no such file"},
		"trace is not JSON":   {[]string{"replay", file("text.jsonl", trace+"hello\n")}, 2, "text.jsonl:3: "},
		"trace with a typo":   {[]string{"replay", file("typo.jsonl", trace+`{"op":"dceide","at":9}`+"\n")}, 2, "typo.jsonl:3: "},
		"trace's placement":   {[]string{"replay", file("done.jsonl", trace+`{"op":"done","at":9,"placement":7}`+"\n")}, 2, "done.jsonl:3: "},
		"trace without spec":  {[]string{"replay", file("nospec.jsonl", `{"op":"decide","at":1}`+"\n")}, 2, "nospec.jsonl:1: "},
		"replay's engine":     {[]string{"replay", "--engine", "jvm", file("ok1.jsonl", trace)}, 2, "want wasm, native or both"},
		"replay's spec":       {[]string{"replay", "--spec", "fastest", file("ok2.jsonl", trace)}, 2, "no such policy"},
		"replay's module":     {[]string{"replay", "--module", file("m.wasm", "hello"), file("ok3.jsonl", trace)}, 2, "not a WebAssembly module"},
		"replay's fuel":       {[]string{"replay", "--fuel", "5", file("ok6.jsonl", trace)}, 2, "--fuel 5: want 10000 to 1000000000000"},
		"no trace":            {[]string{"replay"}, 2, "give a TRACE: a file of JSON lines, or - for standard input (see wasmhost replay --help)"},
		"two traces":          {[]string{"replay", "a", "b"}, 2, "give one TRACE"},
		"trace is a folder":   {[]string{"replay", dir}, 2, "is a folder: give a file"},
		"expect is a folder":  {[]string{"replay", "--expect", dir, file("ok4.jsonl", trace)}, 2, "is a folder: give a file"},
		"explain too far":     {[]string{"replay", "--explain", "1", file("ok5.jsonl", trace+`{"op":"decide","at":1}`+"\n")}, 2, "no placement 1 to explain"},
		"inspect no module":   {[]string{"inspect", filepath.Join(dir, "none.wasm")}, 2, "no such file"},
		"inspect no wasm":     {[]string{"inspect", file("i.wasm", "hello")}, 2, "not a WebAssembly module"},
		"inspect other wasm":  {[]string{"inspect", file("j.wasm", "\x00asm\x01\x00\x00\x00")}, 2, "unusable module"},
		"swap and promote":    {[]string{"swap", "127.0.0.1:1", "--promote", "--spec", "random"}, 2, "--promote and --spec exclude each other"},
		"swap and share":      {[]string{"swap", "127.0.0.1:1", "--spec", "random", "--share", "0.5"}, 2, "--share and --spec exclude each other"},
		"swap and roll back":  {[]string{"swap", "127.0.0.1:1", "--rollback", "--module", "m.wasm"}, 2, "--rollback and --module exclude each other"},
		"swap and compared":   {[]string{"swap", "127.0.0.1:1", "--compared", "--spec", "random"}, 2, "--compared and --spec exclude each other"},
		"swap both ways":      {[]string{"swap", "127.0.0.1:1", "--promote", "--rollback"}, 2, "[promote rollback] were all set (see wasmhost swap --help)"},
		"swap twice":          {[]string{"swap", "127.0.0.1:1", "--spec", "random", "--canary", "0.1", "--compare"}, 2, "[canary compare] were all set"},
		"record and wait":     {[]string{"record", "127.0.0.1:1", "--last", "1s", "--wait", "1s"}, 2, "[last wait] were all set"},
		"bench rounds":        {[]string{"bench", "--rounds", "0"}, 2, "--rounds 0"},
		"demo too short":      {[]string{"demo", "--duration", "1s"}, 2, "give at least 200ms each"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, c.args...)
			code := p.wait()
			stderr := p.text(&p.stderr)
			require.Contains(t, stderr, c.want)
			require.Equal(t, c.code, code, stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
			require.True(t, strings.HasPrefix(stderr, "wasmhost: "), stderr)
			require.Empty(t, p.text(&p.stdout))
		})
	}
}

// TestHelp shows that every command explains itself with an example, on stdout, with exit code 0.
func TestHelp(t *testing.T) {
	p := start(t, "--help")
	require.Zero(t, p.wait())
	root := p.text(&p.stdout)
	for _, name := range []string{"demo", "serve", "replica", "replay", "inspect", "bench"} {
		require.Contains(t, root, "\n  "+name+" ")
		p := start(t, name, "--help")
		require.Zero(t, p.wait())
		require.Contains(t, p.text(&p.stdout), "Examples:\n  wasmhost "+name)
		require.Empty(t, p.text(&p.stderr))
	}
	for _, args := range [][]string{{"--version"}, {"completion", "bash"}, {}} {
		p := start(t, args...)
		require.Zero(t, p.wait(), args)
		require.NotEmpty(t, p.text(&p.stdout), args)
		require.Empty(t, p.text(&p.stderr), args)
	}
}

// TestCompletion asks what the shell would be offered.
func TestCompletion(t *testing.T) {
	const files, noFiles = ":0", ":4"
	for args, want := range map[string][]string{
		"serve --engine ":                 {"wasm", "native", noFiles},
		"replay --engine ":                {"wasm", "native", "both", noFiles},
		"serve --spec ":                   {"least_loaded", "power_of_two", "prequal", "random", "round_robin", noFiles},
		"bench --spec ":                   {"prequal", noFiles},
		"demo --policies random,prequal,": {"random,prequal,least_loaded", "random,prequal,power_of_two", ":6"},
		"serve ":                          {noFiles},
		"demo ":                           {noFiles},
		"replica ":                        {noFiles},
		"bench ":                          {noFiles},
		"replay ":                         {files},
		"replay trace.jsonl ":             {noFiles},
		"serve --config ":                 {files},
	} {
		p := start(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Zero(t, p.wait(), args)
		offered := strings.Fields(p.text(&p.stdout))
		require.Subset(t, offered, want, args)
		require.Equal(t, want[len(want)-1], offered[len(offered)-1], args)
		require.NotContains(t, offered, "random,prequal,random", args)
	}
}
