package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
)

// Route is a part of the requests with replicas, a policy and a pool of its own. What it does not set is as outside of
// routes.
type Route struct {
	Name   string
	Match  Match
	Config Config // with the settings from outside filled in by Validate

	own *yaml.Node // its settings, as they stand in the file
}

// Match says which requests a route has: those for its host, or any, whose path is its path or below it. The longest
// path wins, and a host comes before none.
type Match struct {
	Host string `yaml:"host" help:"a host, without port; any by default"`
	Path string `yaml:"path" help:"a path, for itself and what is below it; any by default"`
}

// onlyRoute is the name of the route of a config without routes.
const onlyRoute = "default"

// perRoute are the settings that a route may have of its own.
var perRoute = append([]string{
	"spec", "shards", "endpoints", "endpoints_file", "engine", "module", "fuel", "probe_wait", "key", "hint", "record",
}, append(settingNames(Health{}), settingNames(Attempts{})...)...)

var routeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// UnmarshalYAML takes name and match, and keeps the rest for Validate: it goes over settings that may be read later.
func (r *Route) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return setting.InLine(n, "a route is a map with name, match and settings")
	}
	r.own = &yaml.Node{Kind: yaml.MappingNode, Tag: n.Tag, Line: n.Line}
	var errs []string
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		var err error
		switch {
		case given[key.Value]: // the decoder's check does not reach into a custom unmarshaller
			err = setting.InLine(key, "%s is given twice", key.Value)
		case key.Value == "name":
			err = value.Decode(&r.Name)
		case key.Value == "match":
			if err = knownKeys(value, settingNames(Match{}), "a match"); err == nil {
				err = value.Decode(&r.Match)
			}
		case slices.Contains(perRoute, key.Value):
			r.own.Content = append(r.own.Content, key, value)
		case slices.Contains(names(), key.Value):
			err = setting.InLine(key, "%s is a setting of the whole proxy: give it outside of routes", key.Value)
		default:
			err = setting.InLine(key, "unknown setting %s of a route: %s", key.Value, setting.Use(key.Value, append([]string{"name", "match"}, perRoute...)))
		}
		given[key.Value] = true
		if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) {
			errs = append(errs, wrong.Errors...)
		} else if err != nil {
			return err
		}
	}
	if len(errs) > 0 {
		return &yaml.TypeError{Errors: errs}
	}
	return nil
}

// resolve fills in what a route does not set.
func (r *Route) resolve(c Config) error {
	r.Config = c
	r.Config.Routes, r.Config.Endpoints = nil, slices.Clone(c.Endpoints)
	if r.own == nil {
		return nil
	}
	for i := 0; i < len(r.own.Content); i += 2 {
		switch r.own.Content[i].Value { // one way to name the replicas goes over the other
		case "endpoints":
			r.Config.File = ""
		case "endpoints_file":
			r.Config.Endpoints = nil
		}
	}
	if err := r.own.Decode(&r.Config); err != nil {
		return plainly(c.lines.file, err)
	}
	return nil
}

// validateRoutes names the first route that cannot be served.
func (c *Config) validateRoutes() error {
	byName, byMatch := map[string]bool{}, map[Match]string{}
	for i := range c.Routes {
		r, at := &c.Routes[i], "routes."+strconv.Itoa(i)
		if !routeName.MatchString(r.Name) {
			return setting.At(at, fmt.Errorf("a route has the name %q: give each one of letters, digits, dots and dashes", r.Name))
		}
		in := func(err error) error { return setting.At(at, fmt.Errorf("route %q: %w", r.Name, err)) }
		switch {
		case byName[r.Name]:
			return in(errors.New("another route has this name: name each once"))
		case r.Match.Path != "" && (r.Match.Path[0] != '/' || strings.ContainsAny(r.Match.Path, " ?#%")),
			strings.Contains(r.Match.Path, "//"), climbs(r.Match.Path):
			return in(setting.At("match", fmt.Errorf("the path %q is none: give one such as /api, as it is after decoding", r.Match.Path)))
		case strings.ContainsAny(r.Match.Host, " /:*@"), r.Match.Host == ".":
			return in(setting.At("match", fmt.Errorf("the host %q is none: give a name such as example.com, without port", r.Match.Host)))
		}
		r.Match.Host, r.Match.Path = strings.ToLower(strings.TrimSuffix(r.Match.Host, ".")), strings.TrimSuffix(r.Match.Path, "/")
		if other, ok := byMatch[r.Match]; ok {
			return in(setting.At("match", fmt.Errorf("route %q has the same match, so that this one would have no requests: give it another host or path", other)))
		}
		byName[r.Name], byMatch[r.Match] = true, r.Name
		if err := r.resolve(*c); err != nil {
			return err
		}
		if err := r.Config.validatePolicy(); err != nil {
			return in(err)
		}
	}
	return nil
}

// served are the routes of a validated config: one for all requests if it has none.
func (c *Config) served() []Route {
	if len(c.Routes) > 0 {
		return c.Routes
	}
	return []Route{{Name: onlyRoute, Config: *c}}
}

// takes says whether a request is the route's.
func (m Match) takes(r *http.Request) bool {
	if m.Host != "" {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if strings.ToLower(strings.TrimSuffix(host, ".")) != m.Host {
			return false
		}
	}
	rest, ok := strings.CutPrefix(merged(r.URL.Path), m.Path)
	return ok && (rest == "" || rest[0] == '/')
}

// merged is a path with one slash where there are several, as many replicas read it.
func merged(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// climbs says whether a path has a segment "." or "..", also with parameters behind it or after a backslash: some replicas
// would read the path as another one, which may be another route's.
func climbs(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// before orders matches: one that takes a part of another's requests comes first.
func (m Match) before(o Match) int {
	if (m.Host == "") != (o.Host == "") {
		return len(o.Host) - len(m.Host)
	}
	return len(o.Path) - len(m.Path)
}

func (m Match) String() string {
	if m.Host+m.Path == "" {
		return "everything"
	}
	return m.Host + m.Path + "/"
}

func knownKeys(n *yaml.Node, known []string, what string) error {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(known, key.Value) {
			return setting.InLine(key, "unknown key %q of %s: %s", key.Value, what, setting.Use(key.Value, known))
		}
	}
	return nil
}

func settingNames(of any) (out []string) {
	eachSetting(reflect.ValueOf(of), func(name string, _ reflect.StructField, _ reflect.Value) { out = append(out, name) })
	return out
}
