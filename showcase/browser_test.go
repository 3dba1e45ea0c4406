package showcase

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/sim"
)

// browser finds Chromium. Without one the test is skipped here and fails in CI.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	const missing = "no Chromium found: install one, or name it in the environment as CHROMIUM"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// tab is one page of one browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func openBrowser(t *testing.T) *tab {
	t.Helper()
	path := browser(t)
	ac, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1440, 900))...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(ac)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "the browser must start")
	p := &tab{t, ctx}
	p.media("prefers-color-scheme", "dark")
	return p
}

func (p *tab) media(name, value string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: name, Value: value}},
	})
	require.NoError(p.t, err)
}

// visit opens a link and waits until its stream runs.
func (p *tab) visit(url string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.Navigate(url)))
	p.wait("window.__show && __show.stats.frames > 20")
}

func (p *tab) wait(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 15*time.Second)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](condition))
	require.NoError(p.t, err, condition)
}

func (p *tab) press(key string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
}

// eval runs a script, which may be a promise, and decodes its value.
func eval[T any](p *tab, script string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, script)
	return v
}

type stats struct {
	FPS     float64 `json:"fps"`
	JSMean  float64 `json:"jsMean"`
	JSMax   float64 `json:"jsMax"`
	Drawn   int     `json:"drawn"`
	Shed    int     `json:"shed"`
	Cap     int     `json:"cap"`
	Seq     uint32  `json:"seq"`
	Frames  int     `json:"frames"`
	Acked   int     `json:"acked"`
	Bytes   int     `json:"bytes"`
	LagMs   float64 `json:"lagMs"`
	Paused  bool    `json:"paused"`
	Retries int     `json:"reconnects"`
}

func (p *tab) stats() stats { p.t.Helper(); return eval[stats](p, "__show.stats") }

// pixels counts what is exactly of a colour on a canvas.
func (p *tab) pixels(selector string, colors ...color.RGBA) []int {
	p.t.Helper()
	data := eval[string](p, fmt.Sprintf(`document.querySelector(%q).toDataURL('image/png')`, selector))
	raw, err := base64.StdEncoding.DecodeString(data[strings.IndexByte(data, ',')+1:])
	require.NoError(p.t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(p.t, err)
	return countPixels(img, colors)
}

func countPixels(img image.Image, colors []color.RGBA) []int {
	n := make([]int, len(colors))
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			got := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			for i, c := range colors {
				if got == c {
					n[i]++
				}
			}
		}
	}
	return n
}

var (
	coldDark = color.RGBA{0x56, 0xB4, 0xE9, 0xFF}
	hotDark  = color.RGBA{0xF5, 0xA5, 0x24, 0xFF}
)

// One browser runs all of it, against the engine that the page is for.
func TestBrowser(t *testing.T) {
	p := openBrowser(t)
	engine, err := WasmEngine(context.Background())
	require.NoError(t, err)
	s, srv := serveTest(t, Config{Engine: engine})
	t.Cleanup(func() { s.Close(); assert.NoError(t, engine.Close()) })
	run := func(name string, f func(t *testing.T, p *tab)) {
		t.Run(name, func(t *testing.T) { f(t, &tab{t, p.ctx}) })
	}
	run("golden frames", func(t *testing.T, p *tab) { testGolden(t, p, srv) })
	run("alive", func(t *testing.T, p *tab) { testAlive(t, p, s, srv) })
	run("paused numbers are the engine's", func(t *testing.T, p *tab) { testNumbers(t, p, s) })
	run("provoked", func(t *testing.T, p *tab) { testProvoked(t, p) })
	run("reconnects", func(t *testing.T, p *tab) { testReconnect(t, p, s) })
	run("tells", func(t *testing.T, p *tab) { testTells(t, p, srv) })
	run("phone", func(t *testing.T, p *tab) { testPhone(t, p, srv) })
	run("reduced motion", func(t *testing.T, p *tab) { testStill(t, p, srv) })
}

// The browser decodes the golden bytes to what Go encoded.
func testGolden(t *testing.T, p *tab, srv *httptest.Server) {
	p.visit(srv.URL + "/?clients=4&replicas=10&room=golden")
	decode := func(name string) map[string]any {
		raw, err := os.ReadFile("testdata/" + name + ".hex")
		require.NoError(t, err)
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(raw)), ""))
		require.NoError(t, err)
		script := fmt.Sprintf(`(async () => {
			const { decode } = await import(document.querySelector('script[type=module]').src.replace('app.js', 'frame.js'));
			const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0));
			return JSON.stringify(decode(bytes.buffer), (k, v) => ArrayBuffer.isView(v) ? Array.from(v) : v);
		})()`, base64.StdEncoding.EncodeToString(b))
		var out map[string]any
		require.NoError(t, json.Unmarshal([]byte(eval[string](p, script)), &out))
		return out
	}
	want := `{"seq":61,"simMs":2032,"replicas":2,"paused":true,"ahead":false,"wallMs":1764460800123.456,"pace":0.987,"clients":24,"type":"frame",
		"worlds":[` + goldenWorld(0) + `,` + goldenWorld(1) + `],
		"decision":{"serial":512,"atMs":2030,"client":3,"replica":1,"threshold":16,"rif":14,"latency":350,"age":9,"regime":1,"cause":0,"world":0,
			"held":true,"offered":15,"cold":13,"hot":2,"rows":[
				{"replica":1,"rif":14,"raw":13,"latency":350,"age":9,"uses":1,"verdict":0},
				{"replica":0,"rif":300,"raw":300,"latency":65535,"age":900,"uses":255,"verdict":2}]},
		"column":` + goldenColumnJSON(8) + `,"why":"Client 3 chose r1: “fast”.","verdict":"Same queries."}`
	got, err := json.Marshal(decode("frame"))
	require.NoError(t, err)
	assert.JSONEq(t, want, string(got))

	h := decode("history")
	assert.Equal(t, "history", h["type"])
	got, err = json.Marshal(h["columns"])
	require.NoError(t, err)
	assert.JSONEq(t, "["+goldenColumnJSON(7)+","+goldenColumnJSON(8)+"]", string(got))
}

func goldenWorld(k int) string {
	return fmt.Sprintf(`{"arrivals":%d,"direct":%d,"cold":%d,"hot":%d,"fallback":%d,"errors":%d,"completed":%d,"probesSent":%d,"probesLost":%d,
		"inFlight":93,"p50":612,"p90":1400,"p99":65535,"p999":65534,"threshold":16,"pool":%t,"offered":6528,"served":6481,"traffic":2596069104,
		"rif":[3,65534],"latency":[730,65535],"neighbour":[255,0],"state":[0,2],"use":[88,255],"old":[0,1],"queries":215,"failures":9,
		"dots":[{"client":23,"kind":1,"replica":1,"offset":64,"work":8},{"client":2,"kind":6,"replica":0,"offset":248,"work":0}]}`,
		1000+k, 11+k, 700+k, 80+k, 20+k, 7+k, 900+k, 3000+k, 5+k, k == 0)
}

func goldenColumnJSON(i int) string {
	return fmt.Sprintf(`{"index":%d,"worlds":[{"p50":610,"p99":2050,"errors":0,"threshold":16,"rif":[9,12]},
		{"p50":650,"p99":65535,"errors":47,"threshold":65535,"rif":[255,8]}]}`, i)
}

// Frames advance, things move within the cap, both colours are there, and Space stops it all.
func testAlive(t *testing.T, p *tab, s *Server, srv *httptest.Server) {
	p.visit(srv.URL + "/?q=0.3")
	first := p.stats()
	p.wait(fmt.Sprintf("__show.stats.seq > %d && __show.stats.drawn > 50 && __show.stats.fps > 0", first.Seq+30))
	st := p.stats()
	t.Logf("%+v", st)
	assert.Positive(t, st.Drawn)
	assert.LessOrEqual(t, st.Drawn, st.Cap)
	assert.Equal(t, 900, st.Cap)
	assert.Zero(t, st.Shed, "the server keeps within the page's budget")
	assert.Equal(t, st.Frames, st.Acked)
	assert.Greater(t, st.FPS, 10.0)
	assert.Equal(t, s.engine.Digest[:12], eval[string](p, "document.querySelector('#engine code').textContent"))
	n := p.pixels("#stage", coldDark, hotDark)
	assert.Greater(t, n[0], 500, "cold, exactly")
	assert.Greater(t, n[1], 500, "hot, exactly")

	p.press(" ")
	p.wait("__show.stats.paused && __show.state.paused")
	p.wait(`new Promise((done) => { const was = __show.stats.drawn; setTimeout(() => done(was === __show.stats.drawn), 200); })`)
	before := p.stats()
	picture := eval[string](p, "__show.hash()")
	time.Sleep(400 * time.Millisecond) // a dozen frames, were it not for the pause
	after := p.stats()
	assert.Equal(t, before.Seq, after.Seq)
	assert.Equal(t, before.Drawn, after.Drawn)
	assert.Equal(t, picture, eval[string](p, "__show.hash()"), "not a pixel moves")
}

// What the page prints is what the room's worlds hold, at that frame.
func testNumbers(t *testing.T, p *tab, s *Server) {
	p.wait(`document.getElementById('arrivals-a').textContent.replaceAll(',', '') === String(__show.state.worlds[0].arrivals)`)
	room := onlyPaused(t, s)
	var frame *Frame
	var sums [2]sim.Summary
	require.True(t, room.call(func() {
		frame = room.last
		for i, w := range room.stage.worlds {
			sums[i] = w.Summary()
		}
	}))
	text := func(id string) string {
		return eval[string](p, fmt.Sprintf("document.getElementById(%q).textContent", id))
	}
	assert.Equal(t, frame.Seq, p.stats().Seq)
	for i, k := range []string{"a", "b"} {
		rif := 0
		for _, r := range sums[i].Replicas {
			rif += r.RIF
		}
		assert.Positive(t, rif)
		assert.Equal(t, grouped(uint64(rif)), text("rif-"+k))
		assert.Equal(t, rif, eval[int](p, fmt.Sprintf("__show.state.worlds[%d].rif.reduce((a, b) => a + b)", i)))
		assert.Equal(t, grouped(sums[i].Totals.Arrivals), text("arrivals-"+k))
		assert.Equal(t, grouped(sums[i].Totals.Errors), text("lost-"+k))
	}
	for regime, id := range map[int]string{1: "n-cold", 2: "n-hot", 3: "n-fallback"} {
		assert.Equal(t, grouped(sums[0].Totals.ByRegime[regime]), text(id))
	}
	assert.Equal(t, frame.Why, text("why"))
	assert.Contains(t, text("why"), sim.Name(frame.Decision.Replica))
	assert.Equal(t, sim.Name(frame.Decision.Replica), eval[string](p, "document.querySelector('#pool .chosen td').textContent"))
	assert.Contains(t, text("traffic"), fmt.Sprintf("same traffic %08x", uint32(sums[0].Traffic)))

	serial := eval[int](p, "__show.lastDecision.serial")
	p.press(".")
	p.wait(fmt.Sprintf("__show.lastDecision.serial > %d", serial))
	assert.True(t, p.stats().Paused, "a step stands still again")
}

func onlyPaused(t *testing.T, s *Server) *Room {
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	for _, tn := range s.rooms.open {
		paused := false
		if tn.room.call(func() { paused = tn.room.paused }) && paused {
			return tn.room
		}
	}
	t.Fatal("no paused room")
	return nil
}

// Hot decisions come on demand, and a policy without a pool is shown as one.
func testProvoked(t *testing.T, p *tab) {
	p.press(" ")
	p.wait("!__show.stats.paused")
	for range 15 {
		p.press("-") // the threshold, step by step
	}
	p.wait("Math.abs(__show.controls.quantile) < 0.05")
	hot := eval[int](p, "__show.state.worlds[0].hot")
	p.wait(fmt.Sprintf("__show.state.worlds[0].hot > %d", hot+200))
	eval[any](p, "document.getElementById('hold-hot').click()")
	p.wait("__show.lastDecision?.held && __show.lastDecision.regime === 2")
	assert.Contains(t, eval[string](p, "document.getElementById('why').textContent"), "stopped chasing speed")
	n := p.pixels("#plane", hotDark)
	assert.Greater(t, n[0], 20, "the pool's entries are hot")

	eval[any](p, "document.getElementById('thirds').click()")
	p.wait("__show.state.worlds[0].state.filter((s) => s === 2).length === 32")
	assert.Contains(t, eval[string](p, "location.search"), "q=0")
}

// A lost connection comes back by itself, with full charts.
func testReconnect(t *testing.T, p *tab, s *Server) {
	was := p.stats()
	s.rooms.mu.Lock()
	for _, tn := range s.rooms.open {
		tn.room.call(func() {
			for _, v := range tn.room.viewers {
				v.fail("test")
			}
		})
	}
	s.rooms.mu.Unlock()
	p.wait(fmt.Sprintf("__show.stats.reconnects > %d && __show.stats.frames > %d", was.Retries, was.Frames+10))
	p.wait("document.getElementById('curtain').hidden")
}

// On a phone nothing is wider than the screen, and less flies.
func testPhone(t *testing.T, p *tab, srv *httptest.Server) {
	size := func(w, h int64) {
		_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: w, Height: h, DeviceScaleFactor: 2, Mobile: true})
		require.NoError(t, err)
	}
	size(390, 844)
	defer size(0, 0)
	p.visit(srv.URL + "/?clients=8&replicas=24&room=phone")
	assert.LessOrEqual(t, eval[int](p, "document.documentElement.scrollWidth"), 390)
	assert.Equal(t, 300, p.stats().Cap)
	testPhoneLayout(t, p)
	assert.LessOrEqual(t, eval[float64](p, "__show.stats.dpr"), 1.5)
}

// Who asks for no motion gets none, and every number all the same.
func testStill(t *testing.T, p *tab, srv *httptest.Server) {
	p.media("prefers-reduced-motion", "reduce")
	p.visit(srv.URL + "/?clients=8&replicas=24&room=still")
	p.wait("__show.stats.frames > 60")
	st := p.stats()
	assert.Zero(t, st.Drawn)
	assert.Zero(t, st.Cap)
	assert.Equal(t, "motion is off", eval[string](p, "document.getElementById('per-dot').textContent"))
	assert.NotEqual(t, "–", eval[string](p, "document.getElementById('p99-a').textContent"))
}
