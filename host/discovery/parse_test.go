package discovery

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

func TestParse(t *testing.T) {
	eps, err := parse([]byte(`{"endpoints": [
		{"address": "http://10.0.0.1:80"},
		{"name": "b", "address": "10.0.0.2:80", "weight": 4294967295, "priority": 255, "locality": "z1", "status": "draining"},
		{"address": "ü", "status": "unavailable", "priority": 0}
	]}
	`), nil)
	require.NoError(t, err)
	assert.Equal(t, []host.Endpoint{
		{Name: "10.0.0.1:80", Addr: "http://10.0.0.1:80"},
		{Name: "b", Addr: "10.0.0.2:80", Weight: 4294967295, Priority: 255, Locality: "z1", Status: engine.StatusDraining},
		{Name: "ü", Addr: "ü", Status: engine.StatusUnavailable},
	}, eps)
	eps, err = parse([]byte(`{"endpoints":[]}`), nil)
	require.NoError(t, err)
	assert.Empty(t, eps)
}

// TestParseSaysWhere holds every refusal to its line and column.
func TestParseSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "1:1: unexpected end of JSON input",
		"{\n":                              "2:1: unexpected end of JSON input",
		`{"endpoints":[{"addr`:             "1:21: unexpected end of JSON input",
		`[]`:                               "1:1: want an object with endpoints, in {…",
		`{}`:                               `1:3: "endpoints" is missing`,
		`{"endpoints":{}}`:                 "1:14: want a list of endpoints, in […",
		`{"endpoints":null}`:               "1:14: want a list of endpoints, in […",
		`{"endpoints":["a"]}`:              "1:15: want an endpoint, in {…",
		`{"endpoints":[]} x`:               "1:18: invalid character 'x' after top-level value",
		`{"endpoints":[]}{}`:               "1:17: invalid character '{' after top-level value",
		`{"endpoints":[],}`:                "1:17: invalid character '}'",
		`{"endpoints":[{}}]}`:              "1:17: invalid character '}'",
		"{\"endpoints\":[\n{}]}":           `2:1: an endpoint needs an "address"`,
		"{\"endpoints\":[],\n \"more\":1}": `2:2: unknown field "more": use endpoints`,
		`{"endpoints":[],"endpoints":[]}`:  `1:17: "endpoints" is given twice`,
		"{\"endpoints\":[{\"address\":\"ä\", \"wieght\":1}]}":                        `1:31: unknown field "wieght": use address, name, weight, priority, locality, status`,
		"{\"endpoints\":[{\"address\":\"a\", \"weight\":1,\n\"weight\":1}]}":         `2:1: "weight" is given twice`,
		"{\"endpoints\":[{\"address\":\"a\",\n\"weight\": 1.5}]}":                    "2:11: weight: want a whole number from 1 to 4294967295",
		"{\"endpoints\":[{\"address\":\"a\",\n\"weight\":0}]}":                       "2:10: weight: want a whole number from 1",
		"{\"endpoints\":[{\"address\":\"a\",\n\"weight\":-1}]}":                      "2:10: weight: want a whole number from 1",
		"{\"endpoints\":[{\"address\":\"a\",\n\"weight\":4294967296}]}":              "2:10: weight: want a whole number from 1",
		"{\"endpoints\":[{\"address\":\"a\",\n\"weight\":\"1\"}]}":                   "2:10: weight: want a whole number from 1",
		"{\"endpoints\":[{\"address\":\"a\",\n\"priority\":256}]}":                   "2:12: priority: want a whole number from 0 to 255",
		"{\"endpoints\":[{\"address\":\"a\",\n\"status\":\"gone\"}]}":                `2:10: status "gone": use ready, draining or unavailable`,
		"{\"endpoints\":[{\"address\":\"a\",\n\"status\":\"\"}]}":                    "2:10: status: want text that is not empty",
		"{\"endpoints\":[{\"address\":\n\"\"}]}":                                     "2:1: address: want text that is not empty",
		"{\"endpoints\":[{\"address\":\n[]}]}":                                       "2:1: address: want text that is not empty",
		"{\"endpoints\":[{\"address\":\"http://a\"},\n {\"address\":\"a\"}]}":        `2:2: duplicate endpoint: "a" stands at 1:15 too`,
		"{\"endpoints\":[{\"address\":\"a\"},\n{\"address\":\"b\",\"name\":\"a\"}]}": `2:23: duplicate endpoint: "a" stands at 1:15 too`,
		"{\"endpoints\":[\n{\"address\":\"bad\"}]}":                                  "2:1: it is bad",
		"{\"endpoints\":\n [\xff]}":                                                  "2:3: this is not UTF-8",
		"\ufeff{}":                                                                   "1:1: invalid character",
		`{"endpoints":[{"address":"a" "weight":1}]}`:                                 "1:30: invalid character",
		`{"endpoints":[{"address":tru}]}`:                                            "1:29: invalid character",
	} {
		_, err := parse([]byte(text), func(ep host.Endpoint) error {
			if ep.Addr == "bad" {
				return errors.New("it is bad")
			}
			return nil
		})
		if assert.Error(t, err, text) {
			assert.True(t, strings.HasPrefix(err.Error(), want), "%s\n got %s\nwant %s", text, err, want)
		}
	}
	_, err := parse([]byte(`{"endpoints":[{"address":"a"},{"address":"a"}]}`), nil)
	assert.ErrorIs(t, err, engine.ErrDuplicateID)
}

// printed is the file that says the same.
func printed(t testing.TB, eps []host.Endpoint) []byte {
	type row struct {
		Name     string `json:"name"`
		Address  string `json:"address"`
		Weight   uint32 `json:"weight,omitempty"`
		Priority uint8  `json:"priority,omitempty"`
		Locality string `json:"locality,omitempty"`
		Status   string `json:"status"`
	}
	rows := []row{}
	for _, ep := range eps {
		rows = append(rows, row{ep.Name, ep.Addr, ep.Weight, ep.Priority, ep.Locality, ep.Status.String()})
	}
	text, err := json.Marshal(map[string]any{"endpoints": rows})
	require.NoError(t, err)
	return text
}

// FuzzParse holds that what is read is a fleet that a balancer can take, printed and read again the same, and that
// what is not says where within the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"endpoints":[{"address":"http://a:1","weight":2,"priority":1,"locality":"z","status":"draining"},{"name":"b","address":"b"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		eps, err := parse(text, nil)
		if err != nil {
			var at *placedError
			require.ErrorAs(t, err, &at)
			lines := strings.Split(string(text), "\n")
			require.LessOrEqual(t, at.line, len(lines))
			require.Positive(t, at.column)
			require.LessOrEqual(t, at.column, len([]rune(lines[at.line-1]))+1)
			return
		}
		require.True(t, json.Valid(text))
		names := map[string]bool{}
		for _, ep := range eps {
			require.NotEmpty(t, ep.Name)
			require.NotEmpty(t, ep.Addr)
			require.False(t, names[ep.Name])
			names[ep.Name] = true
		}
		again, err := parse(printed(t, eps), nil)
		require.NoError(t, err)
		require.Equal(t, eps, again)
	})
}
