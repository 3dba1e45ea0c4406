package experiment

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a result with everything that can stand in a cell.
func sample() *Result {
	never := math.Inf(1)
	return &Result{
		Experiment: "sample", Size: Size{Seeds: 3, Replicas: 10, Clients: 5}, Keys: []string{"situation", "rule"},
		Columns: []Column{{Name: "failed", Unit: "%", digits: 1}, {Name: "back", Unit: "s", Within: 40}},
		Cases: []Case{
			{Keys: []string{"calm", "off"}, Cells: []Cell{{0, 0.01, 0.02}, nil}},
			{Keys: []string{"calm", "on"}, Cells: []Cell{{2.5, 1.25, 9}, {3, never, 2}}},
			{Keys: []string{"storm", "on"}, Cells: []Cell{{1, 2, 3}, {never, never, never}}},
		},
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteTable(&b))
	assert.Equal(t, "situation  rule  failed %        back s\n"+
		"calm       off   0.0             -\n"+
		"           on    2.5 (1.2..9.0)  3 (2..>40)\n"+
		"storm      on    2.0 (1.0..3.0)  >40\n", b.String())
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	r := sample()
	r.Cases = r.Cases[:2]
	require.NoError(t, r.WriteCSV(&b))
	assert.Equal(t, "situation,rule,seed,failed %,back s\ncalm,off,1,0,\ncalm,off,2,0.01,\ncalm,off,3,0.02,\n"+
		"calm,on,1,2.5,3\ncalm,on,2,1.25,never\ncalm,on,3,9,2\n", b.String())
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(sample().Cases[:2])
	require.NoError(t, err)
	var got []struct {
		Keys  []string
		Cells []*struct {
			Median, Least, Most, Mean, Low, High *float64
			Seeds                                []*float64
		}
	}
	require.NoError(t, json.Unmarshal(b, &got))
	require.Len(t, got, 2)
	assert.Equal(t, []string{"calm", "on"}, got[1].Keys)
	assert.Nil(t, got[0].Cells[1], "it does not apply")
	c := got[0].Cells[0]
	assert.InDeltaSlice(t, []float64{0.01, 0, 0.02, 0.01}, []float64{*c.Median, *c.Least, *c.Most, *c.Mean}, 1e-12)
	// Student's t for two degrees of freedom is 4.3027; the deviation is 0.01.
	assert.InDelta(t, 0.01-4.3027*0.01/math.Sqrt(3), *c.Low, 1e-6)
	assert.InDelta(t, 0.01+4.3027*0.01/math.Sqrt(3), *c.High, 1e-6)
	c = got[1].Cells[1]
	assert.InDelta(t, 3, *c.Median, 0)
	assert.Nil(t, c.Most)
	assert.Nil(t, c.Mean)
	assert.Nil(t, c.Low)
	assert.Nil(t, c.Seeds[1])
	assert.InDelta(t, 2, *c.Seeds[2], 0)
}

// A seed to which a measurement does not apply keeps its place and counts nowhere.
func TestCellWithoutOneSeed(t *testing.T) {
	c := Cell{1, math.NaN(), 3}
	median, least, most := c.Spread()
	assert.Equal(t, []float64{1, 1, 3, 2}, []float64{median, least, most, c.Mean()})
	b, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"seeds":[1,null,3]`)
	assert.Equal(t, []string{"1", "", "3", ""}, []string{c.at(0), c.at(1), c.at(2), c.at(3)})
}

func TestInterval(t *testing.T) {
	low, high := Cell{7}.Interval()
	assert.True(t, math.IsNaN(low) && math.IsNaN(high), "one seed tells nothing")
	low, high = Cell{2, 4, 4, 4, 6}.Interval() // deviation 1.4142, t 2.7764
	assert.InDelta(t, 4-2.7764*math.Sqrt2/math.Sqrt(5), low, 1e-4)
	assert.InDelta(t, 4+2.7764*math.Sqrt2/math.Sqrt(5), high, 1e-4)
	// From tables; the expansion meets the table at 30, where its error is largest.
	for freedom, want := range map[int]float64{1: 12.7062, 4: 2.7764, 30: 2.0423, 31: 2.0395, 40: 2.0211, 60: 2.0003, 120: 1.9799, 999: 1.9623} {
		assert.InDelta(t, want, studentT(freedom), 6e-5, "%d", freedom)
	}
}

// cited is the sample with figures of the paper.
func cited() *Result {
	r := sample()
	r.Columns[1].Beyond = "timeout"
	r.report.Published = Cite("Fig. 7", `
		situation | rule || failed | back
		calm      | on   || 2.25   | TO
		storm     | on   || -      | 17
		nowhere   | on   || 1      | 1
	`)
	r.cite()
	return r
}

func TestPublishedFiguresStandBesideOurs(t *testing.T) {
	var b bytes.Buffer
	r := cited()
	require.NoError(t, r.WriteTable(&b))
	assert.Equal(t, "situation  rule  failed %        paper  back s          paper\n"+
		"calm       off   0.0             -      -               -\n"+
		"           on    2.5 (1.2..9.0)  2.25   3 (2..timeout)  timeout\n"+
		"storm      on    2.0 (1.0..3.0)  -      timeout         17\n", b.String())
	b.Reset()
	require.NoError(t, r.WriteCSV(&b))
	assert.Contains(t, b.String(), "situation,rule,seed,failed %,failed % paper,back s,back s paper\ncalm,off,1,0,,,\n")
	assert.Contains(t, b.String(), "calm,on,2,1.25,2.25,never,never\n")
	j, err := json.Marshal(r.Cases[1].Published)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"column":"failed","value":2.25,"source":"Fig. 7"},{"column":"back","value":null,"source":"Fig. 7"}]`, string(j))
	assert.Equal(t, []string{"Fig. 7"}, r.Sources())
	j, err = json.Marshal(Cited{Column: "a\x7f\"b", Source: "§ 5, \u00a0"})
	require.NoError(t, err, "any name is valid JSON")
	assert.JSONEq(t, `{"column":"a\u007f\"b","value":0,"source":"§ 5, \u00a0"}`, string(j))
}

func TestCiteRefusesWhatItCannotRead(t *testing.T) {
	for _, table := range []string{"a | b", "k || c\n1 | 2 || 3", "k || c\n1 || 2 | 3", "k || c\n1 || much"} {
		assert.Panics(t, func() { Cite("Fig. 1", table) }, table)
	}
}
