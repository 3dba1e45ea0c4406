package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// decode reads one YAML document over the config; empty text changes nothing.
func (c *Config) decode(file string, text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return plainly(file, err)
	}
	var next yaml.Node
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: what follows the first document would be ignored: give one document, without a further ---", file, max(next.Line, 1))
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return plainly(file, err)
	}
	c.lines = places{file, map[string]int{}}
	return c.lines.note("", &document)
}

// places is where the settings of a file stand: lines by path, as [setting.Error] has them.
type places struct {
	file string
	line map[string]int
}

// note walks a document. It refuses fractions, which the decoder would cut to whole numbers: no setting is one.
func (p *places) note(path string, n *yaml.Node) (err error) {
	below := func(name string, key, value *yaml.Node) {
		name = strings.TrimPrefix(path+"."+name, ".")
		p.line[name] = key.Line
		err = errors.Join(err, p.note(name, value))
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return p.note(path, n.Content[0])
	case yaml.AliasNode:
		// A list or a map was looked at where it stands, and may hold itself or grow without end.
		if n.Alias.Kind == yaml.ScalarNode {
			return p.note(path, n.Alias)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			below(n.Content[i].Value, n.Content[i], n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			below(strconv.Itoa(i), item, item)
		}
	case yaml.ScalarNode:
		if n.Tag == "!!float" && !slices.Contains(texts(), path[strings.LastIndexByte(path, '.')+1:]) {
			return fmt.Errorf("%s:%d: %q is not a whole number", p.file, n.Line, n.Value)
		}
	}
	return err
}

// drop forgets a setting.
func (p *places) drop(name string) {
	for path := range p.line {
		if path == name || strings.HasPrefix(path, name+".") {
			delete(p.line, path)
		}
	}
}

// locate puts file and line before an error about a setting of the file: its own or, where the file does not have it, that
// of what it would stand in.
func (p *places) locate(err error) error {
	var at *setting.Error
	if !errors.As(err, &at) {
		return err
	}
	for path := at.Path; path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
		if line := p.line[path]; line > 0 {
			return fmt.Errorf("%s:%d: %w", p.file, line, err)
		}
	}
	return err
}

var (
	unknownField = regexp.MustCompile(`field (.+) not found in type \S+`)
	repeatedKey  = regexp.MustCompile(`field (.+) already set in type \S+`)
	wrongType    = regexp.MustCompile("cannot unmarshal !!\\w+(?: `(.*)`)? into (\\S+)")
	withLine     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (?s:(.*))$`)
)

// plainly says a decoder's errors with file and line, each on a line of its own, and without the names of Go's types.
func plainly(file string, err error) error {
	lines := []string{err.Error()}
	if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) {
		lines = wrong.Errors
	}
	var out []error
	for _, line := range lines {
		if m := unknownField.FindStringSubmatch(line); m != nil {
			line = unknownField.ReplaceAllLiteralString(line, "unknown setting "+m[1]+": "+setting.Use(m[1], names()))
		}
		line = repeatedKey.ReplaceAllString(line, "$1 is given twice")
		line = wrongType.ReplaceAllStringFunc(line, func(s string) string {
			m := wrongType.FindStringSubmatch(s)
			if m[1] == "" {
				return "want " + wanted(m[2])
			}
			return fmt.Sprintf("%q is not %s", m[1], wanted(m[2]))
		})
		if m := withLine.FindStringSubmatch(line); m != nil {
			out = append(out, fmt.Errorf("%s:%s: %s", file, m[1], m[2]))
		} else {
			out = append(out, fmt.Errorf("%s: %s", file, line))
		}
	}
	return errors.Join(out...)
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
	case "[]serve.Route":
		return "a list of routes"
	}
	return "a map of settings"
}
