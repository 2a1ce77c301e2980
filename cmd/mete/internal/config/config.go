// Package config reads mete's configuration file: YAML, decoded strictly, with
// every problem reported at once at its place.
//
// A key that is not known is an error, and so is one that a later mete will
// know: nothing in the file is ever silently ignored. Whatever came from
// ${VAR} or ${file:path} is a Secret and prints as "***".
package config

import (
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/cost"
)

// Version is the version of the file format that this package reads.
const Version = 1

// File is a configuration file. It can be printed and marshalled as a whole:
// no secret appears.
type File struct {
	Version int
	// Defaults hold for every provider that does not say otherwise.
	Defaults Settings
	// Run is how `mete run` treats its input, its output and its end.
	Run Run
	// Lanes are the orders of service at every provider, the usual one first.
	Lanes []mete.Lane
	// Providers are in the order of the file. Their names are unique.
	Providers []Provider
	// State is the folder for what must survive a restart. Empty means the
	// user's state folder.
	State Secret
	// Warnings are what is probably not meant, in the order of the lines.
	Warnings []*Error

	// A function closes over the secrets, because fmt would print them from a
	// struct or a pointer to one.
	mask func(string) string
	// source returns what the file was read from; nil if it was not read.
	source func() (*decoder, *node)
}

// Settings are what defaults and a provider both can say. Except where it says
// otherwise, 0 means no bound.
type Settings struct {
	// Concurrency is how many calls may be in flight at once. "concurrency: 0",
	// which pauses, is -1 here and in mete.Config.
	Concurrency int
	// Adaptive finds it instead; nil does not.
	Adaptive *adaptive.Config
	Retry    mete.Retry
	Timeout  Timeout
	// Cost is what a request costs in other units than requests.
	Cost []cost.Rule
	// MaxWait is 0 if the file does not say, and -1 for no bound, as in
	// mete.Config.
	MaxWait  time.Duration
	MaxQueue int
	// MaxPause is the longest pause that `mete run` sits out.
	MaxPause time.Duration
	// RetryOn narrows what is repeated: words of retry.on and statuses. None
	// means all that safely can be.
	RetryOn []string
	// Classify are rules of what answers mean.
	Classify classify.Rules
	Breaker  breaker.Config
	// Learn is what becomes of the quotas that responses show.
	Learn mete.Learn
}

// Timeout are the bounds of one attempt and of its phases. 0 means no bound.
type Timeout struct {
	Connect time.Duration // to dial and shake hands
	TTFB    time.Duration // from the end of the request to the first byte
	Idle    time.Duration // between two reads of the body
	Attempt time.Duration // all of it
}

// Provider is one remote API.
type Provider struct {
	Name string
	// URL is the base address; see Base.
	URL     Secret
	Auth    Auth
	Headers []Header
	// Gate is what the library needs.
	Gate    mete.Config
	Timeout Timeout
	// Cost is what a request costs in other units than requests.
	Cost []cost.Rule
	// Idempotent says that repeating any request is safe, a POST too.
	Idempotent bool
	// MaxPause is the longest pause that `mete run` sits out.
	MaxPause time.Duration
	// Preset is the dialect of the quota headers, for quota.Parse.
	Preset   string
	RetryOn  []string
	Classify classify.Rules
	// Fallback are the providers to ask in its place, in order. No way through
	// them leads back.
	Fallback []string
}

// Base returns the parsed base address, a new copy at each call. It may hold
// secrets: print URL instead.
func (p *Provider) Base() *url.URL {
	u, err := url.Parse(p.URL.Reveal())
	if err != nil {
		return &url.URL{} // only for a Provider that Parse did not make
	}
	return u
}

// Auth is the credential of a provider: a header or a query parameter. Both
// names are empty when there is none.
type Auth struct {
	Header, Query string
	Value         Secret
}

// Header is one header field that goes with every request.
type Header struct {
	Name  string
	Value Secret
}

// Provider returns the provider of that name, or nil.
func (f *File) Provider(name string) *Provider {
	for i := range f.Providers {
		if f.Providers[i].Name == name {
			return &f.Providers[i]
		}
	}
	return nil
}

// Mask replaces every secret of the file that has at least 4 bytes by "***" in
// text, also where it is escaped as in a URL or in JSON. It costs one pass over
// the text per secret.
func (f *File) Mask(text string) string {
	if f.mask == nil {
		return text
	}
	return f.mask(text)
}

// Load reads the file at path. env looks up variables; os.LookupEnv is the
// usual one. The error is Errors; for a file that cannot be opened it wraps the
// cause, as in fs.ErrNotExist.
func Load(path string, env func(string) (string, bool)) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, Errors{{File: path, Message: "cannot be read: " + reason(err), cause: err}}
	}
	return Parse(path, data, env)
}

// ProviderNames returns the names of the providers in the file at path, as far
// as it can be read, for completion while one types. Nothing is checked, and no
// variable is looked up.
func ProviderNames(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	s := &shown{root: (&decoder{}).parseTree(data)}
	var names []string
	if n := s.find("providers"); n != nil {
		for _, p := range n.pairs {
			if providerName.MatchString(p.key.text) {
				names = append(names, p.key.text)
			}
		}
	}
	return names
}

// Parse reads a configuration. Errors call it name, and secret files with a
// relative path are looked for in name's folder. The error is Errors and has
// all problems of the file; only bad YAML hides what else may be wrong.
func Parse(name string, data []byte, env func(string) (string, bool)) (*File, error) {
	// The parser miscounts lines that end in CRLF.
	data = []byte(strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"))
	d := &decoder{name: name, env: env}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		d.lines = append(d.lines, line)
	}
	root := d.parseTree(data)
	f := &File{Defaults: builtin(), Run: builtinRun(), mask: d.secret.mask, source: func() (*decoder, *node) { return d, root }}
	if root == nil && d.parsed {
		d.errorAt(1, 1, "the file is empty: it needs version: %d and providers", Version)
	}
	if root != nil {
		d.hideLiterals(root, false)
		d.file(root, f)
	}
	if len(d.errs) > 0 {
		return nil, Errors(d.finish(d.errs))
	}
	f.Warnings = d.finish(d.warnings)
	return f, nil
}

// decoder gathers what is wrong while it reads.
type decoder struct {
	name     string
	env      func(string) (string, bool)
	lines    []string
	parsed   bool // the file is YAML, so hidden is complete
	errs     []*Error
	warnings []*Error
	hidden   secrets // what no source line shows
	secret   secrets // what File.Mask masks
}

// builtin are the settings of a provider when the file says nothing. MaxWait
// stays open: a batch waits for as long as it takes, a gateway does not.
func builtin() Settings {
	return Settings{
		Concurrency: 16,
		Retry:       mete.Retry{Attempts: 4, Base: 500 * time.Millisecond, Max: 30 * time.Second},
		Timeout:     Timeout{Connect: 5 * time.Second, Attempt: 60 * time.Second},
		MaxPause:    24 * time.Hour,
		Learn:       mete.LearnCap,
	}
}

// file decodes the top of the file.
func (d *decoder) file(root *node, f *File) {
	top := d.section(root, "file", "")
	if top == nil {
		return
	}
	if n := top["version"]; n == nil {
		d.errorf(root, "version is missing: write version: %d", Version)
	} else if v, ok := d.count(n, "version", 1); ok && v != Version {
		d.errorf(n, "version %d is not known: this mete reads version %d", v, Version)
	} else {
		f.Version = v
	}
	if n := top["state"]; n != nil {
		f.State, _ = d.freeText(n, "state")
	}
	if n := top["defaults"]; n != nil {
		if s := d.section(n, "defaults", "defaults"); s != nil {
			d.settings(s, &f.Defaults, "defaults")
		}
	}
	if n := top["run"]; n != nil {
		d.run(n, &f.Run)
	}
	if n := top["lanes"]; n != nil {
		f.Lanes = d.lanes(n)
	}
	providers := top["providers"]
	if providers == nil {
		// Rows that name no provider need none.
		if !top.has("providers") && !top.has("run") && !top.has("defaults") {
			d.errorf(root, "providers is missing: it needs at least one")
		}
		return
	}
	if !d.is(providers, mapping, "providers", "providers: {NAME: {url: https://...}}") {
		return
	}
	if len(providers.pairs) == 0 {
		d.errorf(providers, "providers is empty: it needs at least one")
	}
	seen := map[string]*node{}
	for _, p := range providers.pairs {
		if p.key.kind == refused || p.value.kind == refused {
			continue
		}
		name := p.key.text
		if first := seen[strings.ToLower(name)]; first != nil {
			d.errorf(p.key, "provider %q is already on line %d; names that differ only in case count as equal", name, first.line)
			continue
		}
		seen[strings.ToLower(name)] = p.key
		if !providerName.MatchString(name) {
			d.errorf(p.key, "%q cannot be a provider's name: use up to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit", name)
		}
		provider := d.provider(p, f.Defaults)
		provider.Gate.Lanes = f.Lanes
		f.Providers = append(f.Providers, provider)
	}
	d.fallbacks(providers, f)
}
