package serve

import (
	"reflect"
	"strings"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Schema is the JSON Schema of --config files, made of the config's types and defaults. Help explains a setting, by its
// name; where it says nothing the field's own help tag does.
func Schema(help func(name string) string) map[string]any {
	s := schemaOf(reflect.ValueOf(Defaults()), help)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "wasmhost serve --config"
	return s
}

// written says how the types are written that YAML does not have.
var written = map[reflect.Type]map[string]any{
	reflect.TypeFor[setting.Duration](): {"type": []string{"integer", "string"}, "minimum": 0, "maximum": 0, "pattern": `^[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`},
	reflect.TypeFor[setting.Size]():     {"type": []string{"integer", "string"}, "minimum": 0, "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB)?$"},
}

// schemaOf describes a value's type; the value itself has the defaults.
func schemaOf(v reflect.Value, help func(string) string) map[string]any {
	if s, ok := written[v.Type()]; ok {
		out := map[string]any{}
		for k, v := range s {
			out[k] = v
		}
		return out
	}
	switch v.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint8:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": 255}
	case reflect.Uint32:
		return map[string]any{"type": "integer", "minimum": 1, "maximum": 1<<32 - 1} // a weight
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(reflect.Zero(v.Type().Elem()), help)}
	case reflect.Struct:
		return mapping(v, help)
	}
	panic("a setting of a kind that the schema does not know: " + v.Type().String())
}

func mapping(v reflect.Value, help func(string) string) map[string]any {
	if v.Type() == reflect.TypeFor[Route]() {
		return routeSchema(help)
	}
	properties := map[string]any{}
	eachSetting(v, func(name string, field reflect.StructField, value reflect.Value) {
		if name == "routes" && v.IsZero() {
			return // a route has no routes
		}
		s := schemaOf(value, help)
		text := field.Tag.Get("help")
		if text == "" {
			text = help(name)
		}
		if text != "" {
			s["description"] = text
		}
		if d := shown(value); d != nil {
			s["default"] = d
		}
		properties[name] = s
	})
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if v.Type() == reflect.TypeFor[Endpoint]() {
		out["required"] = []string{"url"}
		return map[string]any{"oneOf": []any{map[string]any{"type": "string"}, out}}
	}
	return out
}

// routeSchema is the settings that a route may have of its own, without defaults: those stand outside.
func routeSchema(help func(string) string) map[string]any {
	all := mapping(reflect.ValueOf(Config{}), help)["properties"].(map[string]any)
	properties := map[string]any{
		"name":  map[string]any{"type": "string", "pattern": routeName.String(), "description": "its name, in metrics, in the admin listener and over reloads"},
		"match": mapping(reflect.ValueOf(Match{}), help),
	}
	for _, name := range perRoute {
		properties[name] = all[name]
	}
	return map[string]any{"type": "object", "additionalProperties": false, "required": []string{"name"}, "properties": properties}
}

// shown is a default as a file would have it; nil where there is none.
func shown(v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	switch d := v.Interface().(type) {
	case setting.Duration:
		return short(d.String())
	case setting.Size:
		return d.String()
	}
	return v.Interface()
}

// short is a duration without parts that are zero: 10m rather than 10m0s.
func short(d string) string {
	if s, ok := strings.CutSuffix(d, "m0s"); ok {
		d = s + "m"
	}
	if s, ok := strings.CutSuffix(d, "h0m"); ok {
		d = s + "h"
	}
	return d
}
