package lbhttp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headroom-lb/headroom/engine"
)

func TestLoadReportsAreRead(t *testing.T) {
	for text, want := range map[string]engine.LoadReport{
		"TEXT application_utilization=0.75,cpu_utilization=0.2,rps_fractional=120.5,eps=1.25":   {Utilization: 7500, QPS: 120500, EPS: 1250},
		"TEXT cpu_utilization:1.2, rps_fractional:3":                                            {Utilization: 12000, QPS: 3000},
		"TEXT rps_fractional=3,named_metrics.rif=9":                                             {QPS: 3000},
		`JSON {"rps_fractional":10,"cpu_utilization":0.5,"named_metrics":{"rif":3},"eps":null}`: {Utilization: 5000, QPS: 10000},
		"TEXT application_utilization=0,cpu_utilization=0.3,rps_fractional=1":                   {Utilization: 3000, QPS: 1000},
	} {
		got, err := loadReport(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "BIN AAAA", "TEXT cpu_utilization=0.3", `JSON {"eps":1}`} {
		_, err := loadReport(text)
		assert.ErrorIs(t, err, errNoReading, text)
	}
	for _, text := range []string{
		"TEXT rps_fractional=-1", "TEXT rps_fractional=NaN", "TEXT rps_fractional=5e9", "TEXT rps_fractional=1,cpu_utilization=x",
		"TEXT rps_fractional=1,rps_fractional=1", "JSON []", "JSON null", `JSON {"rps_fractional":"1"}`, "TEXT " + strings.Repeat("9", 50),
	} {
		_, err := loadReport(text)
		assert.Error(t, err, text)
		assert.NotErrorIs(t, err, errNoReading, text)
	}
}
