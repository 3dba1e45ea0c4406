package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/serve"
)

const schemaFile = "../../deploy/serve.schema.json"

func printedSchema(t *testing.T) string {
	t.Helper()
	var out, errOut bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"check", "--schema"}, &out, &errOut), errOut.String())
	return out.String()
}

// TestTheSchemaIsThatOfTheCode fails when a setting was added or changed and the file was not.
func TestTheSchemaIsThatOfTheCode(t *testing.T) {
	want := printedSchema(t)
	have, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "run: go run ./cmd/wasmhost check --schema > deploy/serve.schema.json")
	var s map[string]any
	require.NoError(t, json.Unmarshal(have, &s))
	for name, p := range s["properties"].(map[string]any) {
		require.NotEmpty(t, p.(map[string]any)["description"], "%s is not explained: give it a flag, or a help tag", name)
	}
}

// configs are the YAML files under deploy, and the blocks marked as YAML in the docs.
func configs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	for _, root := range []string{"../../deploy", "../../docs", "../../README.md"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			ext := filepath.Ext(path)
			if ext != ".yaml" && ext != ".md" {
				return nil
			}
			text, err := os.ReadFile(path)
			if ext == ".yaml" && !strings.Contains(string(text), "apiVersion") { // those are Kubernetes'
				out[path] = string(text)
			}
			for i, m := range block.FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[1], "endpoints") && !strings.Contains(m[1], "apiVersion") {
					out[fmt.Sprintf("%s, block %d", path, i+1)] = m[1]
				}
			}
			return err
		}))
	}
	require.GreaterOrEqual(t, len(out), 3)
	return out
}

// TestEveryConfigurationIsRight holds what people copy against the schema and against the code.
func TestEveryConfigurationIsRight(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(printedSchema(t)), &schema))
	for name, text := range configs(t) {
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(text), &v), name)
		require.Empty(t, violations(schema, v, ""), name)
		path := filepath.Join(t.TempDir(), "proxy.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c := serve.Defaults()
		require.NoError(t, c.Load(path), name)
		if !strings.Contains(name, "docs") { // a page may show settings together that exclude each other, and files that are not there
			require.NoError(t, c.Validate(), name)
		}
	}
}

// TestTheSchemaRefuses has the schema refuse what the code refuses by type or name.
func TestTheSchemaRefuses(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(printedSchema(t)), &schema))
	for text, want := range map[string]string{
		"lisen: 127.0.0.1:1":           "/lisen is unknown",
		"shards: many":                 "/shards is no integer",
		"shards: 1.5":                  "/shards is no integer",
		"drain: soon":                  "/drain does not match",
		"drain: 5":                     "/drain is above 0",
		"max_body: lots":               "/max_body does not match",
		"max_body: -1":                 "/max_body is below 0",
		"outlier: 1":                   "/outlier is no boolean",
		"endpoints: http://a":          "/endpoints is no array",
		"endpoints: [{ulr: http://a}]": "/endpoints/0 matches 0 of 2",
		"endpoints: [{url: http://a, weight: x}]": "/endpoints/0 matches 0 of 2",
		"endpoints: [{name: a}]":                  "/endpoints/0 matches 0 of 2",
	} {
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(text), &v))
		require.Contains(t, strings.Join(violations(schema, v, ""), "; "), want, text)
		if !strings.Contains(text, "name: a") { // the code asks for the URL when it validates
			path := filepath.Join(t.TempDir(), "proxy.yaml")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			c := serve.Defaults()
			require.Error(t, c.Load(path), text)
		}
	}
}

// violations is what a value breaks of the parts of JSON Schema that our schema is made of.
func violations(s map[string]any, v any, at string) (out []string) {
	bad := func(format string, args ...any) { out = append(out, at+" "+fmt.Sprintf(format, args...)) }
	for key := range s {
		if !slices.Contains([]string{"$schema", "title", "description", "default", "type", "properties", "additionalProperties", "required", "items", "oneOf", "pattern", "minimum", "maximum"}, key) {
			bad("is judged by %s, which this test does not know", key)
		}
	}
	if one, ok := s["oneOf"].([]any); ok {
		n := 0
		for _, each := range one {
			if len(violations(each.(map[string]any), v, at)) == 0 {
				n++
			}
		}
		if n != 1 {
			bad("matches %d of %d", n, len(one))
		}
		return out
	}
	types, ok := s["type"].([]any)
	if !ok {
		types = []any{s["type"]}
	}
	if !slices.ContainsFunc(types, func(t any) bool { return hasType(v, t.(string)) }) {
		bad("is no %v", types[0])
		return out
	}
	switch v := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			bad("does not match %s", p)
		}
	case int:
		if least, ok := s["minimum"].(float64); ok && float64(v) < least {
			bad("is below %v", least)
		}
		if most, ok := s["maximum"].(float64); ok && float64(v) > most {
			bad("is above %v", most)
		}
	case []any:
		for i, item := range v {
			out = append(out, violations(s["items"].(map[string]any), item, fmt.Sprintf("%s/%d", at, i))...)
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, item := range v {
			p, ok := properties[name].(map[string]any)
			if !ok {
				out = append(out, at+"/"+name+" is unknown")
				continue
			}
			out = append(out, violations(p, item, at+"/"+name)...)
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				bad("has no %s", name)
			}
		}
	}
	return out
}

func hasType(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case int:
		return name == "integer"
	case float64:
		return name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}
