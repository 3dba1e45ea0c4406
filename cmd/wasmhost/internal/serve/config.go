// Package serve is the reverse proxy behind `wasmhost serve`: settings, assembly, the admin listener and draining.
package serve

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/edge"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/lifecycle"
	"github.com/headroom-lb/headroom/cmd/wasmhost/internal/setting"
	"github.com/headroom-lb/headroom/engine/policy"
	"github.com/headroom-lb/headroom/host"
)

// Config is all that a proxy needs to know. The YAML names are those of --config files.
type Config struct {
	Listen    string      `yaml:"listen"` // address of the proxy
	Admin     string      `yaml:"admin"`  // address of the admin listener; "off" for none
	Spec      string      `yaml:"spec"`   // policy and settings
	Shards    int         `yaml:"shards"` // policy instances; each is a client of its own with its own probes
	Endpoints []Endpoint  `yaml:"endpoints" help:"the replicas: base URLs, or maps with url and more"`
	File      string      `yaml:"endpoints_file"` // a JSON file with the replicas, watched; instead of endpoints
	Engine    string      `yaml:"engine"`         // wasm or native
	Module    string      `yaml:"module"`         // a module's file; empty for the one inside this binary
	Fuel      int64       `yaml:"fuel"`           // of one call into a module from a file, in loop iterations
	Drain     Duration    `yaml:"drain"`          // longest wait for open requests after SIGTERM
	ProbeWait Duration    `yaml:"probe_wait"`     // longest wait of a request for the answers to its own probes
	Key       string      `yaml:"key"`            // header of a request whose value is its affinity key; empty for none
	Hint      string      `yaml:"hint"`           // header of a request that its own probes are told; empty for none
	Record    Duration    `yaml:"record"`         // how long decisions are kept for replay; 0 for not at all
	TokenFile string      `yaml:"token_file"`     // holds what the admin listener asks of those who change something; empty for none
	Health    Health      `yaml:",inline"`
	Attempts  Attempts    `yaml:",inline"`
	Edge      edge.Config `yaml:",inline"`
	Routes    []Route     `yaml:"routes" help:"parts of the requests with replicas and a policy of their own; what one does not set is as outside"`
	Cache     string      `yaml:"-"` // folder for compiled code; empty for none

	// Again reads the same configuration anew, nil where there is no file to read; Hangup says when.
	Again  func() (Config, error) `yaml:"-"`
	Hangup <-chan os.Signal       `yaml:"-"`

	token string // what stands in TokenFile
	lines places // where the settings of a file stand
}

// Endpoint is one replica. In YAML it is a URL, or a map with the settings below.
type Endpoint struct {
	URL      string `yaml:"url" help:"base URL, such as http://127.0.0.1:9001"`
	Name     string `yaml:"name" help:"its name; by default the URL's host and port"`
	Weight   uint32 `yaml:"weight" help:"for policies that read weights, 1 to 4294967295; 1 by default"`
	Priority uint8  `yaml:"priority" help:"for the policy priority; the least comes first"`
	Locality string `yaml:"locality" help:"for the policy locality, such as the name of a zone"`
}

// UnmarshalYAML takes a plain URL or a map.
func (e *Endpoint) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&e.URL)
	}
	if n.Kind != yaml.MappingNode {
		return setting.InLine(n, "an endpoint is a URL or a map with url")
	}
	// The decoder's check for unknown keys does not reach into a custom unmarshaller.
	if err := knownKeys(n, settingNames(Endpoint{}), "an endpoint"); err != nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		// What is left out is 1, and 0 in the host: one that is written is meant, and would be no weight.
		if value := n.Content[i+1]; n.Content[i].Value == "weight" && value.Kind == yaml.ScalarNode {
			var weight int64
			if value.Decode(&weight) == nil && (weight < 1 || weight > math.MaxUint32) {
				return setting.InLine(value, "weight %s: give 1 to %d", value.Value, uint32(math.MaxUint32))
			}
		}
	}
	type plain Endpoint
	return n.Decode((*plain)(e))
}

// Duration is a time.Duration that is written like "10s" in YAML.
type Duration = setting.Duration

// Defaults is a proxy on loopback with Prequal, without endpoints.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:8000", Admin: "127.0.0.1:9901", Spec: "prequal", Shards: 1,
		Engine: "wasm", Fuel: host.DefaultFuel, Drain: Duration(10 * time.Second), ProbeWait: Duration(host.DefaultProbeWait),
		Health: healthDefaults(), Attempts: attemptsDefaults(), Edge: edge.Defaults(),
	}
}

var headerName = regexp.MustCompile("^[A-Za-z0-9-]*$")

// AdminOff turns the admin listener off.
const AdminOff = "off"

// Load reads a YAML file over the config: what it does not name stays.
func (c *Config) Load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config %s cannot be read: %w", path, errors.Unwrap(err))
	}
	return c.decode(path, text)
}

// Overridden says that a setting does not come from the file any more, but from a flag.
func (c *Config) Overridden(name string) { c.lines.drop(name) }

// Validate names the first setting that cannot be served, where it stands, and what would be right. It fills in the
// names of endpoints that have none.
func (c *Config) Validate() error { return c.lines.locate(c.validate()) }

func (c *Config) validate() error {
	if err := setting.At("listen", lifecycle.CheckAddr("--listen", c.Listen)); err != nil {
		return err
	}
	if c.Admin != AdminOff {
		if err := setting.At("admin", lifecycle.CheckAddr("--admin", c.Admin)); err != nil {
			return err
		}
		if c.Admin == c.Listen && !strings.HasSuffix(c.Admin, ":0") {
			return setting.Errorf("admin", "%s is --listen's, too: choose another port", c.Admin)
		}
	}
	if c.Drain < 0 {
		return setting.Errorf("drain", "is %s: give 0 or more", c.Drain)
	}
	if err := c.readToken(); err != nil {
		return err
	}
	if err := c.Edge.Validate(); err != nil {
		return err
	}
	if len(c.Routes) > 0 {
		return c.validateRoutes()
	}
	return c.validatePolicy()
}

// validatePolicy looks at what a route has of its own.
func (c *Config) validatePolicy() error {
	switch {
	case c.Engine != "wasm" && c.Engine != "native":
		return setting.Errorf("engine", "is %q: give wasm or native", c.Engine)
	case c.Engine == "native" && c.Module != "":
		return setting.Errorf("module", "and --engine native exclude each other: leave one out")
	case c.Shards < 1 || c.Shards > 64:
		return setting.Errorf("shards", "is %d: give 1 to 64", c.Shards)
	case c.Fuel < host.LeastFuel || c.Fuel > host.MostFuel:
		return setting.Errorf("fuel", "is %d: give %d to %d", c.Fuel, host.LeastFuel, host.MostFuel)
	case c.Record < 0 || c.Record > Duration(time.Hour):
		return setting.Errorf("record", "is %s: give 0 for none, or up to 1h", c.Record)
	case c.ProbeWait <= 0 || c.ProbeWait > Duration(time.Minute):
		return setting.Errorf("probe_wait", "is %s: give more than 0, at most 1m", c.ProbeWait)
	case !headerName.MatchString(c.Key):
		return setting.Errorf("key", "is %q: give the name of a header", c.Key)
	case !headerName.MatchString(c.Hint):
		return setting.Errorf("hint", "is %q: give the name of a header", c.Hint)
	case c.File != "" && len(c.Endpoints) > 0:
		return setting.Errorf("endpoints_file", "and endpoints given one by one exclude each other: leave one out")
	case c.File == "" && len(c.Endpoints) == 0:
		return setting.At("endpoints", errors.New("no endpoints: give --endpoint URL for each replica, --endpoints-file FILE, or endpoints in --config"))
	}
	// The built-in module knows the same policies as this binary, and a file of one's own may know others.
	if c.Module == "" {
		if _, err := policy.Parse(c.Spec); err != nil {
			return setting.Errorf("spec", "%q: %w", c.Spec, setting.Suggest(err))
		}
	}
	if err := setting.At("endpoints", named(c.Endpoints)); err != nil {
		return err
	}
	if err := c.Attempts.validate(); err != nil {
		return err
	}
	return c.Health.validate(c.Endpoints)
}

// named checks endpoints and fills in the names of those that have none.
func named(endpoints []Endpoint) error {
	seen := map[string]bool{}
	for i := range endpoints {
		e := &endpoints[i]
		u, err := baseURL(e.URL)
		if err != nil {
			return setting.At(strconv.Itoa(i), err)
		}
		if e.Name == "" {
			e.Name = u.Host
		}
		if seen[e.Name] {
			return setting.At(strconv.Itoa(i), fmt.Errorf("endpoint %q is given twice: name each once", e.Name))
		}
		seen[e.Name] = true
	}
	return nil
}

// readModule reads the module's file; nil for the module inside this binary, and for none.
func (c *Config) readModule() ([]byte, error) {
	if c.Module == "" {
		return nil, nil
	}
	code, err := os.ReadFile(c.Module)
	if err != nil {
		return nil, setting.Errorf("module", "%s cannot be read: %w", c.Module, errors.Unwrap(err))
	}
	return code, nil
}

// leastToken is the shortest token that is not guessed, in bytes.
const leastToken = 16

func (c *Config) readToken() error {
	if c.TokenFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return setting.Errorf("token_file", "%s cannot be read: %w", c.TokenFile, errors.Unwrap(err))
	}
	if c.token = strings.TrimSpace(string(text)); len(c.token) < leastToken {
		return setting.Errorf("token_file", "%s: the token in it has %d bytes: give at least %d", c.TokenFile, len(c.token), leastToken)
	}
	return nil
}

// baseURL checks where an endpoint is reached.
func baseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("endpoint %q is not a base URL: give one such as http://127.0.0.1:9001", text)
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) {
		return nil, fmt.Errorf("endpoint %q has no such port: give 1 to 65535", text)
	}
	return u, nil
}
