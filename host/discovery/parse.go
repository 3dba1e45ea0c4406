package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/host"
)

// parse reads the text of an endpoints file. Errors begin with line:column: of what is wrong.
func parse(text []byte, check func(host.Endpoint) error) ([]host.Endpoint, error) {
	p := parser{text: text, dec: json.NewDecoder(bytes.NewReader(text)), check: check, names: map[string]int{}}
	p.dec.UseNumber()
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			return nil, p.at(len(text)-len(rest), errors.New("this is not UTF-8"))
		}
		rest = rest[size:]
	}
	// Syntax first, and of the whole: the decoder of tokens counts its offsets in more than one way.
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		offset := len(text)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && !strings.HasPrefix(syntax.Error(), "unexpected end") {
			offset = int(syntax.Offset) - 1
		}
		return nil, p.at(offset, err)
	}
	if err := p.file(); err != nil {
		return nil, err
	}
	return p.endpoints, nil
}

// placedError is wrong at a place in the text.
type placedError struct {
	line, column int // from 1 on; columns count characters
	err          error
}

func (e *placedError) Error() string { return fmt.Sprintf("%d:%d: %v", e.line, e.column, e.err) }
func (e *placedError) Unwrap() error { return e.err }

// placed puts a place before an error.
func placed(place string, err error) error {
	var at *placedError
	if errors.As(err, &at) {
		return fmt.Errorf("%s:%w", place, err)
	}
	return fmt.Errorf("%s: %w", place, err)
}

type parser struct {
	text      []byte
	dec       *json.Decoder
	check     func(host.Endpoint) error
	names     map[string]int // to where it stands
	endpoints []host.Endpoint
}

func (p *parser) at(offset int, err error) error {
	before := p.text[:min(max(offset, 0), len(p.text))]
	line := bytes.LastIndexByte(before, '\n') + 1
	return &placedError{bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[line:]) + 1, err}
}

// next is the next token and where it begins.
func (p *parser) next() (json.Token, int, error) {
	start := int(p.dec.InputOffset())
	for start < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[start]) >= 0 {
		start++
	}
	t, err := p.dec.Token()
	return t, start, err
}

func (p *parser) open(d json.Delim, what string) error {
	t, at, err := p.next()
	if err == nil && t != d {
		err = p.at(at, fmt.Errorf("want %s, in %c…", what, d))
	}
	return err
}

func (p *parser) file() error {
	seen := 0
	err := p.object("an object with endpoints", []string{"endpoints"}, func(string) error {
		seen++
		if err := p.open('[', "a list of endpoints"); err != nil {
			return err
		}
		for p.dec.More() {
			if err := p.endpoint(); err != nil {
				return err
			}
		}
		_, _, err := p.next()
		return err
	})
	if err != nil {
		return err
	}
	if seen == 0 {
		return p.at(len(p.text), errors.New(`"endpoints" is missing`))
	}
	return nil
}

// object reads an object whose keys are among those given, each once; value reads what a key has.
func (p *parser) object(what string, keys []string, value func(key string) error) error {
	if err := p.open('{', what); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		t, at, err := p.next()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if !slices.Contains(keys, key) {
			return p.at(at, fmt.Errorf("unknown field %q: use %s", key, strings.Join(keys, ", ")))
		}
		if seen[key] {
			return p.at(at, fmt.Errorf("%q is given twice", key))
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, _, err := p.next()
	return err
}

var fields = []string{"address", "name", "weight", "priority", "locality", "status"}

func (p *parser) endpoint() error {
	start := int(p.dec.InputOffset())
	for start < len(p.text) && p.text[start] != '{' {
		start++
	}
	var ep host.Endpoint
	nameAt := start
	err := p.object("an endpoint", fields, func(key string) (err error) {
		switch key {
		case "address":
			ep.Addr, _, err = p.word(key)
		case "name":
			ep.Name, nameAt, err = p.word(key)
		case "locality":
			ep.Locality, _, err = p.word(key)
		case "weight":
			var n uint64
			n, err = p.number(key, 1, math.MaxUint32)
			ep.Weight = uint32(n)
		case "priority":
			var n uint64
			n, err = p.number(key, 0, math.MaxUint8)
			ep.Priority = uint8(n)
		case "status":
			word, at, err := p.word(key)
			if err != nil {
				return err
			}
			var ok bool
			if ep.Status, ok = engine.ParseStatus(word); !ok {
				return p.at(at, fmt.Errorf("status %q: use ready, draining or unavailable", word))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if ep.Addr == "" {
		return p.at(start, errors.New(`an endpoint needs an "address"`))
	}
	if ep.Name == "" {
		ep.Name = nameOf(ep.Addr)
	}
	if first, twice := p.names[ep.Name]; twice {
		var was *placedError
		errors.As(p.at(first, nil), &was)
		return p.at(nameAt, fmt.Errorf("%w: %q stands at %d:%d too", engine.ErrDuplicateID, ep.Name, was.line, was.column))
	}
	if p.check != nil {
		if err := p.check(ep); err != nil {
			return p.at(start, err)
		}
	}
	p.names[ep.Name] = nameAt
	p.endpoints = append(p.endpoints, ep)
	return nil
}

// nameOf is the name of an endpoint that has none: the address without its scheme.
func nameOf(addr string) string {
	if _, rest, ok := strings.Cut(addr, "://"); ok && rest != "" {
		return rest
	}
	return addr
}

// word reads a text that is not empty.
func (p *parser) word(key string) (string, int, error) {
	t, at, err := p.next()
	if err != nil {
		return "", at, err
	}
	if s, ok := t.(string); ok && s != "" {
		return s, at, nil
	}
	return "", at, p.at(at, fmt.Errorf("%s: want text that is not empty", key))
}

func (p *parser) number(key string, least, most uint64) (uint64, error) {
	t, at, err := p.next()
	if err != nil {
		return 0, err
	}
	if n, ok := t.(json.Number); ok {
		if v, err := strconv.ParseUint(n.String(), 10, 64); err == nil && v >= least && v <= most {
			return v, nil
		}
	}
	return 0, p.at(at, fmt.Errorf("%s: want a whole number from %d to %d", key, least, most))
}
