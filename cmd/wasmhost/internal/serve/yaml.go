package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decode reads one YAML document over the config; empty text changes nothing.
func (c *Config) decode(text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return plainly(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("what follows the first document would be ignored: give one document, without a further ---")
	}
	return nil
}

var (
	unknownField = regexp.MustCompile(`field (.+) not found in type \S+`)
	repeatedKey  = regexp.MustCompile(`field (.+) already set in type \S+`)
	wrongType    = regexp.MustCompile("cannot unmarshal !!\\w+(?: `(.*)`)? into (\\S+)")
)

// plainly says a decoder's errors without the names of Go's types.
func plainly(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	lines := make([]string, len(wrong.Errors))
	for i, line := range wrong.Errors {
		line = unknownField.ReplaceAllString(line, "unknown setting $1: use listen, admin, spec, shards, endpoints, endpoints_file, engine, module, fuel, drain, probe_wait, key, hint, record, token_file, health_interval, health_timeout, health_path, health_healthy, health_unhealthy, health_failures, health_panic, outlier, slow_start, retries, retry_share, retry_least, retry_status, hedge, hedge_share")
		line = repeatedKey.ReplaceAllString(line, "$1 is given twice")
		lines[i] = wrongType.ReplaceAllStringFunc(line, func(s string) string {
			m := wrongType.FindStringSubmatch(s)
			if m[1] == "" {
				return "want " + wanted(m[2])
			}
			return fmt.Sprintf("%q is not %s", m[1], wanted(m[2]))
		})
	}
	return errors.New(strings.Join(lines, "; "))
}

func wanted(goType string) string {
	switch goType {
	case "int", "int64", "uint32":
		return "a whole number"
	case "uint8":
		return "a whole number from 0 to 255"
	case "bool":
		return "true or false"
	case "string":
		return "text"
	case "[]int":
		return "a list of whole numbers"
	case "[]serve.Endpoint":
		return "a list of endpoints"
	}
	return "a map of settings"
}
