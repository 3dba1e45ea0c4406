package showcase

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/showcase/sim"
)

func serveTest(t *testing.T, c Config) (*Server, *httptest.Server) {
	t.Helper()
	if c.Engine == nil {
		c.Engine = NativeEngine()
	}
	if c.TableFor == 0 {
		c.TableFor = sim.Second
	}
	s, err := NewServer(c)
	require.NoError(t, err)
	srv := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); srv.Close() })
	return s, srv
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// Without a script the page is the scene as a table, with the run's own numbers.
func TestPageWithoutScript(t *testing.T) {
	_, srv := serveTest(t, Config{})
	resp, body := get(t, srv.URL+"/?b=random&noisy=3&seed=5")
	require.Equal(t, 200, resp.StatusCode)
	setup := parse(t, "b=random&noisy=3&seed=5")
	a, b, err := setup.Specs()
	require.NoError(t, err)
	runs, err := sim.Compare(setup.Situation(), sim.Second, sim.Maker{Machine: sim.Native}, a, b)
	require.NoError(t, err)
	for _, want := range []string{
		"<tr><th scope=\"row\">queries</th><td>" + grouped(runs[0].Totals.Arrivals) + "</td><td>" + grouped(runs[1].Totals.Arrivals) + "</td></tr>",
		"<tr><th scope=\"row\">99th percentile</th><td>" + millis(runs[0].P99) + "</td><td>" + millis(runs[1].P99) + "</td></tr>",
		"<tr><th scope=\"row\">decisions, cold</th><td>" + grouped(runs[0].Totals.ByRegime[1]) + "</td><td>0</td></tr>",
		`<form id="controls" method="get" action="/"`, `name="seed" value="5"`, `form="controls" name="load" min="0.3" max="2"`, `<option value="random" selected>Random</option>`,
	} {
		assert.Contains(t, body, want)
	}
	fleet := body[strings.Index(body, `id="fleet"`):]
	assert.Equal(t, 48, strings.Count(fleet[:strings.Index(fleet, "</table>")], `<th scope="row">r`))
	assert.Equal(t, 3, strings.Count(fleet, "noisy neighbour"))

	assert.Equal(t, contentPolicy, resp.Header.Get("Content-Security-Policy"))
	assert.NotContains(t, body, "style=\"", "the policy forbids inline styles")
	assert.NotRegexp(t, `(src|href|action)="?(https?:)?//`, body, "nothing comes from elsewhere")
}

func TestBadLinkIsAnswered(t *testing.T) {
	_, srv := serveTest(t, Config{})
	resp, body := get(t, srv.URL+"/?a=prequal+pool%3D0")
	assert.Equal(t, 400, resp.StatusCode)
	assert.Contains(t, body, "a: prequal: pool=0")
	assert.Contains(t, body, `role="alert"`)
	_, body = get(t, srv.URL+"/?load=99&clients=4&replicas=10")
	assert.Contains(t, body, "load=99 is out of range: 2 is used")
	p := dial(t, srv, "a=foo&load=99")
	refused := p.until("refused")
	assert.Contains(t, refused["text"], "a: foo")
	assert.True(t, refused["final"].(bool))
	_, _, err := p.read()
	assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
	resp, body = get(t, srv.URL+"/?a=%3Cscript%3E")
	assert.Equal(t, 400, resp.StatusCode)
	assert.NotContains(t, body, "<script>")
	resp, _ = get(t, srv.URL+"/nowhere")
	assert.Equal(t, 404, resp.StatusCode)
}

func TestAssets(t *testing.T) {
	s, srv := serveTest(t, Config{})
	for _, url := range append(s.assets.modules(), s.assets.url("app.css")) {
		resp, body := get(t, srv.URL+url) // the client unpacks
		assert.Equal(t, 200, resp.StatusCode, url)
		assert.Contains(t, resp.Header.Get("Cache-Control"), "immutable")
		assert.NotEmpty(t, body)
		assert.Regexp(t, "^text/(javascript|css)", resp.Header.Get("Content-Type"))
	}
	resp, _ := get(t, srv.URL+assetPrefix+"000000000000/app.js")
	assert.Equal(t, 404, resp.StatusCode, "another version's address")
}

// peer is a viewer without a browser.
type peer struct {
	t     *testing.T
	c     *websocket.Conn
	taken uint32
	texts []map[string]any
}

func dial(t *testing.T, srv *httptest.Server, query string) *peer {
	t.Helper()
	c, _, err := websocket.Dial(context.Background(), srv.URL+"/ws?"+query, nil)
	require.NoError(t, err)
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { c.CloseNow() })
	return &peer{t: t, c: c}
}

// read takes one message within a second; a text is also kept.
func (p *peer) read() ([]byte, map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	kind, data, err := p.c.Read(ctx)
	if err != nil || kind == websocket.MessageBinary {
		p.taken++
		return data, nil, err
	}
	var m map[string]any
	require.NoError(p.t, json.Unmarshal(data, &m))
	p.texts = append(p.texts, m)
	return nil, m, nil
}

func (p *peer) ack() {
	require.NoError(p.t, p.c.Write(context.Background(), websocket.MessageBinary, binary.LittleEndian.AppendUint32(nil, p.taken)))
}

func (p *peer) send(command string) {
	require.NoError(p.t, p.c.Write(context.Background(), websocket.MessageText, []byte(command)))
}

// until reads, acknowledging, up to a text of a type.
func (p *peer) until(kind string) map[string]any {
	p.t.Helper()
	for range 400 {
		data, m, err := p.read()
		require.NoError(p.t, err)
		if data != nil {
			p.ack()
		} else if m["type"] == kind {
			return m
		}
	}
	p.t.Fatalf("no %s", kind)
	return nil
}

func TestStream(t *testing.T) {
	s, srv := serveTest(t, Config{})
	p := dial(t, srv, "clients=4&replicas=10")
	hello := p.until("hello")
	assert.Equal(t, "native", hello["engine"].(map[string]any)["kind"])
	assert.True(t, p.until("role")["controls"].(bool))

	var kinds []byte
	var last uint32
	for len(kinds) < 12 {
		data, _, err := p.read()
		require.NoError(t, err)
		if data == nil {
			continue
		}
		p.ack()
		kinds = append(kinds, data[3])
		if data[3] == typeFrame {
			seq := binary.LittleEndian.Uint32(data[4:])
			assert.Greater(t, seq+1, last)
			last = seq
		}
	}
	assert.Equal(t, byte(typeHistory), kinds[0])
	assert.Equal(t, bytes.Repeat([]byte{typeFrame}, 11), kinds[1:])

	p.send(`{"id":1,"cmd":"load","value":77}`)
	st := p.until("state")
	assert.Equal(t, 2.0, st["load"])
	assert.Equal(t, "load=2&replicas=10&clients=4", st["query"])
	p.send(`{"id":2,"cmd":"pause","on":true}`)
	assert.True(t, p.until("state")["paused"].(bool))
	p.until("applied")
	quiet := func() (frames int) {
		for {
			data, _, err := p.read()
			if err != nil {
				return frames
			}
			if data != nil {
				frames++
				p.ack()
			}
		}
	}
	assert.LessOrEqual(t, quiet(), 2, "what was on its way, and the frame that says paused")
	p.c.CloseNow()
	assert.Len(t, s.rooms.open, 1, "the room waits for a reload")
}

func TestWindowHoldsBackFrames(t *testing.T) {
	_, srv := serveTest(t, Config{})
	p := dial(t, srv, "clients=4&replicas=10&room=w")
	binaries := 0
	for {
		data, _, err := p.read()
		if err != nil {
			break // a second without a message
		}
		if data != nil {
			binaries++
			require.LessOrEqual(t, binaries, ackWindow)
		}
	}
	assert.Equal(t, ackWindow, binaries)
}

func TestRoles(t *testing.T) {
	_, srv := serveTest(t, Config{})
	const link = "clients=4&replicas=10&room=r"
	first := dial(t, srv, link)
	require.True(t, first.until("role")["controls"].(bool))
	for first.taken < 6 { // let it run a little
		_, _, err := first.read()
		require.NoError(t, err)
		first.ack()
	}
	second := dial(t, srv, link)
	require.Nil(t, first.texts[0]["since"], "it opened the room")
	require.False(t, second.until("role")["controls"].(bool))
	require.NotNil(t, second.texts[0]["since"], "it joined a run in progress")
	second.send(`{"id":9,"cmd":"pause","on":true}`)
	answer := second.until("applied")
	assert.EqualValues(t, 9, answer["id"])
	assert.Contains(t, answer["error"], "someone else holds the controls")
	first.send(`{"id":1,"cmd":"policy","world":"b","spec":"prequal pool=0"}`)
	assert.Contains(t, first.until("applied")["error"], "pool=0")
	first.send(`{"cmd":`)
	assert.Contains(t, first.until("applied")["error"], "JSON object")
	require.NoError(t, first.c.Close(websocket.StatusNormalClosure, ""))
	for !second.until("role")["controls"].(bool) {
	}
}

// Wishes that come while machines are being made add up, and each is answered.
func TestPoliciesChangeWhileTheStageRuns(t *testing.T) {
	s, srv := serveTest(t, Config{})
	p := dial(t, srv, "clients=4&replicas=10&room=p")
	p.until("role")
	p.send(`{"id":1,"cmd":"quantile","value":0.5}`)
	p.send(`{"id":2,"cmd":"policy","world":"b","spec":"random"}`)
	p.send(`{"id":3,"cmd":"probe","value":2}`)
	p.send(`{"id":4,"cmd":"restart"}`)
	p.send(`{"id":5,"cmd":"policy","world":"a","spec":"fastest"}`)
	answered := map[float64]any{}
	for len(answered) < 5 {
		a := p.until("applied")
		answered[a["id"].(float64)] = a["error"]
	}
	assert.Contains(t, answered[5], "fastest")
	delete(answered, 5)
	assert.Equal(t, map[float64]any{1: nil, 2: nil, 3: nil, 4: nil}, answered)
	room, key, err := s.rooms.join(parse(t, "clients=4&replicas=10&room=p"))
	require.NoError(t, err)
	defer s.rooms.leave(key, room)
	require.True(t, room.call(func() {
		assert.Equal(t, [2]string{"prequal seed=7 quantile=0.5 probe_rate=2", "random seed=7"}, room.stage.specs())
		assert.Equal(t, "b=random&q=0.5&probe=2&replicas=10&clients=4&room=p", room.stage.setup.Query())
	}))
}

// A policy that no machine can be made for is refused alone: what was asked with it comes true.
func TestBadPolicyFailsAlone(t *testing.T) {
	s, srv := serveTest(t, Config{})
	const link = "clients=4&replicas=48&room=bad"
	p := dial(t, srv, link)
	p.until("role")
	p.send(`{"id":1,"cmd":"policy","world":"a","spec":"prequal seed=5"}`)
	p.send(`{"id":2,"cmd":"policy","world":"a","spec":"prequal pool=64 fit=strict"}`)
	p.send(`{"id":3,"cmd":"policy","world":"b","spec":"random"}`)
	p.send(`{"id":4,"cmd":"quantile","value":0.5}`)
	answered := map[float64]any{}
	for len(answered) < 4 {
		a := p.until("applied")
		answered[a["id"].(float64)] = a["error"]
	}
	assert.Contains(t, answered[2], "pool")
	delete(answered, 2)
	assert.Equal(t, map[float64]any{1: nil, 3: nil, 4: nil}, answered)
	room, key, err := s.rooms.join(parse(t, link))
	require.NoError(t, err)
	defer s.rooms.leave(key, room)
	require.True(t, room.call(func() {
		assert.Equal(t, [2]string{"prequal seed=5 quantile=0.5", "random seed=7"}, room.stage.specs())
	}))
}

func TestHiddenViewerGetsNothing(t *testing.T) {
	_, srv := serveTest(t, Config{})
	p := dial(t, srv, "clients=4&replicas=10&room=h")
	p.until("role")
	p.send(`{"id":1,"cmd":"hidden","on":true}`)
	p.until("applied")
	for { // at most what was on its way
		if _, _, err := p.read(); err != nil {
			break
		}
		p.ack()
		require.Less(t, p.taken, uint32(60))
	}
	p = dial(t, srv, "clients=4&replicas=10&room=h2")
	p.until("role")
	p.send(`{"id":1,"cmd":"hidden","on":true}`)
	p.until("applied")
	p.send(`{"id":2,"cmd":"hidden","on":false}`)
	p.until("applied")
	histories := 0
	for range 20 {
		data, _, err := p.read()
		require.NoError(t, err)
		p.ack()
		if data != nil && data[3] == typeHistory {
			histories++
		}
	}
	assert.Equal(t, 1, histories, "the charts are full again")
}

func TestSocketRefusals(t *testing.T) {
	_, srv := serveTest(t, Config{Rooms: 1})
	upgrade := func(origin string) int {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		c, resp, err := websocket.Dial(context.Background(), srv.URL+"/ws?clients=4&replicas=10", &websocket.DialOptions{HTTPHeader: h})
		if err == nil {
			defer c.CloseNow()
		}
		require.NotNil(t, resp)
		return resp.StatusCode
	}
	assert.Equal(t, 403, upgrade("https://elsewhere.example"))
	assert.Equal(t, 101, upgrade(srv.URL))
	assert.Equal(t, 101, upgrade(""))

	p := dial(t, srv, "clients=4&replicas=10")
	p.until("hello")
	full := dial(t, srv, "clients=4&replicas=11")
	assert.Contains(t, full.until("refused")["text"], "every room is taken")
	require.Eventually(t, func() bool {
		resp, err := http.Get(srv.URL + "/ws?load=many")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == 400
	}, time.Second, time.Millisecond)

	p.send(`{"id":1,"cmd":"` + strings.Repeat("x", 2*readLimit) + `"}`)
	for {
		if _, _, err := p.read(); err != nil {
			assert.Equal(t, websocket.StatusMessageTooBig, websocket.CloseStatus(err))
			break
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s, srv := serveTest(t, Config{})
	p := dial(t, srv, "clients=4&replicas=10&room=c")
	p.until("hello")
	s.Close()
	for {
		if _, _, err := p.read(); err != nil {
			break
		}
	}
	assert.Empty(t, s.rooms.open)
}
