package serve

import (
	"reflect"
	"strings"
)

// eachSetting calls f with every setting of a struct by its YAML name, those of inlined structs too.
func eachSetting(v reflect.Value, f func(name string, field reflect.StructField, v reflect.Value)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, inline, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case inline == "inline":
			eachSetting(v.Field(i), f)
		case field.IsExported() && name != "-":
			f(name, field, v.Field(i))
		}
	}
}

// names are the settings of a file.
func names() []string { return settingNames(Config{}) }

// texts are the settings that are text.
func texts() (out []string) {
	for _, v := range []any{Config{}, Endpoint{}, Match{}} {
		eachSetting(reflect.ValueOf(v), func(name string, _ reflect.StructField, v reflect.Value) {
			if v.Kind() == reflect.String {
				out = append(out, name)
			}
		})
	}
	return append(out, "name")
}
