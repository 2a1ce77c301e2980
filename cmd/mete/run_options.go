package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// prepare turns flags and file into a run. Every error is one of usage:
// nothing has been sent.
func (f *runFlags) prepare(c *cobra.Command, args []string) (*runJob, error) {
	for _, e := range []struct {
		flag, value string
		allowed     []string
	}{
		{"body", f.bodies, []string{"auto", "file", "none"}},
		{"on-bad-row", f.onBadRow, []string{"fail", "emit", "skip"}},
		{"summary", f.summary, []string{"text", "json", "none"}},
	} {
		if !slices.Contains(e.allowed, e.value) {
			return nil, fmt.Errorf("--%s %s: want %s", e.flag, e.value, strings.Join(e.allowed, ", "))
		}
	}
	if f.retries < 0 {
		return nil, fmt.Errorf("--retry %d: want 0 or more", f.retries)
	}
	for _, e := range []struct {
		flag string
		time time.Duration
	}{
		{"timeout", f.timeout}, {"retry-delay", f.retryDelay},
	} {
		if e.time < 0 {
			return nil, fmt.Errorf("--%s %v: want 0 or more", e.flag, e.time)
		}
	}
	if f.resume && f.overwrite {
		return nil, errors.New("--resume and --overwrite exclude each other")
	}
	if f.output == "" && (f.resume || f.overwrite) {
		return nil, errors.New("--resume and --overwrite need -o FILE")
	}
	mode, err := progress.ParseMode(f.progress)
	if err != nil {
		return nil, fmt.Errorf("--progress: %w", err)
	}
	file := config.Empty()
	if f.configFile != "" {
		if file, err = config.Load(f.configFile, os.LookupEnv); err != nil {
			return nil, err
		}
	}
	j := &runJob{
		flags: f, args: args, stdin: c.InOrStdin(), stdout: c.OutOrStdout(), stderr: &quietable{Writer: c.ErrOrStderr()},
		scan: input.Scannable(args), id: newRunID(), how: file.Run,
	}
	j.bounds = &f.bounds
	j.input = input.Options{Format: f.format, MaxLine: int(j.how.MaxLine), AllowFiles: j.how.AllowFiles, OnDuplicate: j.how.DuplicateIDs}
	lines, err := linesOf(f.headers)
	if err != nil {
		return nil, err
	}
	if err := f.table.apply(&j.input, lines); err != nil {
		return nil, err
	}
	if err := f.bounds.checkFailures(f.output, args, f.resume, f.overwrite); err != nil {
		return nil, err
	}
	j.display = f.display(mode, j)
	if err := f.options(c, j, file, lines); err != nil {
		return nil, err
	}
	return j, nil
}

func (f *runFlags) display(mode progress.Mode, j *runJob) progress.Options {
	d := progress.Options{Out: j.stderr, Width: func() int { return 80 }}
	if w, ok := j.stderr.Writer.(*os.File); ok {
		d = progress.Detect(w, "auto", os.Getenv)
		d.Out = j.stderr
	}
	d.Mode, d.Quiet = mode, f.quiet
	// Short lines for a person and a moving bar do not go together.
	if out, ok := j.stdout.(*os.File); ok && f.output == "" && isatty.IsTerminal(out.Fd()) {
		if d.Mode == progress.Auto {
			d.Mode = progress.None
		}
		j.options.Render = render
	}
	if d.Width == nil {
		d.Width = func() int { return 80 }
	}
	return d
}

// options fills in what the runner needs.
func (f *runFlags) options(c *cobra.Command, j *runJob, file *config.File, lines []string) error {
	o := &j.options
	o.Run = j.id
	o.UserAgent = "mete/" + version()
	o.OnBadRow, o.OnChange = f.onBadRow, j.how.OnChange
	o.Bodies = runner.Bodies(f.bodies)
	o.Idempotent = f.idempotent
	o.Grace = j.how.DrainTimeout
	o.IdempotencyHeader = j.how.IdempotencyKey
	headers, err := requestHeaders(lines)
	if err != nil {
		return err
	}
	o.Headers = headers
	j.mask = func(text string) string {
		text = file.Mask(text)
		for _, h := range headers {
			if v := h.Value.Reveal(); h.Value.IsSecret() && len(v) >= 4 {
				text = strings.ReplaceAll(text, v, "***")
			}
		}
		return text
	}
	o.Mask = j.mask
	if o.TLS, err = f.tls(); err != nil {
		return err
	}
	limits, err := f.flagLimits()
	if err != nil {
		return err
	}
	costs, err := f.costs.rules()
	if err != nil {
		return err
	}
	if o.MaxCost, err = f.costs.most(); err != nil {
		return err
	}
	concurrency, auto, err := f.flagConcurrency()
	if err != nil {
		return err
	}
	state, err := f.stateFolder(file)
	if err != nil {
		return err
	}
	spec := func(base runner.Spec) runner.Spec {
		f.override(c, &base, limits, concurrency, auto)
		base.Gate.State = state
		base.Costs = over(base.Costs, costs)
		base.Bounds = slices.Sorted(maps.Keys(o.MaxCost))
		return base
	}
	o.Other = spec(runner.Spec{
		Gate: mete.Config{
			Concurrency: file.Defaults.Concurrency, Adaptive: file.Defaults.Adaptive, Retry: file.Defaults.Retry, Breaker: file.Defaults.Breaker, Lanes: file.Lanes,
			Learn: file.Defaults.Learn,
		},
		Timeout: file.Defaults.Timeout, MaxPause: file.Defaults.MaxPause,
		Classify: file.Defaults.Classify, RetryOn: file.Defaults.RetryOn, Costs: file.Defaults.Cost,
	})
	o.Providers = map[string]*runner.Spec{}
	for i := range file.Providers {
		p := &file.Providers[i]
		s := spec(runner.Spec{
			Base: p.Base(), Auth: p.Auth, Headers: p.Headers, Gate: p.Gate,
			Timeout: p.Timeout, Idempotent: p.Idempotent, MaxPause: p.MaxPause,
			Preset: p.Preset, Classify: p.Classify, RetryOn: p.RetryOn, Costs: p.Cost,
			Fallback: p.Fallback, MaxWait: p.Gate.MaxWait,
		})
		o.Providers[p.Name] = &s
	}
	if err := f.fallbacks(o, file); err != nil {
		return err
	}
	if err := f.bounds.apply(c, o); err != nil {
		return err
	}
	if err := f.cache.apply(c, o); err != nil {
		return err
	}
	if f.bounds.retryFailed && !f.resume {
		return errors.New("--retry-failed goes with --resume")
	}
	j.input.Check = o.Check
	return f.resolve(j, file)
}

// fallbacks reads --fallback.
func (f *runFlags) fallbacks(o *runner.Options, file *config.File) error {
	if f.fallback == "" {
		return nil
	}
	for name := range strings.SplitSeq(f.fallback, ",") {
		switch name = strings.TrimSpace(name); {
		case o.Providers[name] == nil:
			return fmt.Errorf("--fallback %s is not in %s%s", name, orNone(f.configFile), didYouMean(name, file))
		case slices.Contains(o.Fallback, name):
			return fmt.Errorf("--fallback names %s twice", name)
		}
		o.Fallback = append(o.Fallback, name)
	}
	return nil
}

// resolve says how relative URLs become absolute.
func (f *runFlags) resolve(j *runJob, file *config.File) error {
	o := &j.options
	if f.baseURL != "" {
		u, err := url.Parse(f.baseURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			return fmt.Errorf("--base-url wants http:// or https:// and a host")
		}
		j.input.BaseURL = u
	}
	o.Provider = f.provider
	if f.provider != "" {
		p := o.Providers[f.provider]
		if p == nil {
			return fmt.Errorf("--provider %s is not in %s%s", f.provider, orNone(f.configFile), didYouMean(f.provider, file))
		}
		if j.input.BaseURL == nil {
			j.input.BaseURL = p.Base
		}
	}
	j.input.ResolveProvider = func(name string) (*url.URL, bool) {
		if p := o.Providers[name]; p != nil {
			return p.Base, true
		}
		return nil, false
	}
	return nil
}

func orNone(path string) string {
	if path == "" {
		return "a configuration: name one with -f FILE"
	}
	return path
}

func didYouMean(_ string, file *config.File) string {
	if len(file.Providers) == 0 {
		return ""
	}
	var names []string
	for _, p := range file.Providers {
		names = append(names, p.Name)
	}
	return ", which has " + strings.Join(names, ", ")
}

// linesOf reads -H, and the files that it names.
func linesOf(flags []string) ([]string, error) {
	var lines []string
	for _, h := range flags {
		path, ok := strings.CutPrefix(h, "@")
		if !ok {
			lines = append(lines, h)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("-H @%s: %w", path, err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// requestHeaders are those lines of -H that are the same for every row. A value
// with ${VAR} is a secret.
func requestHeaders(lines []string) ([]config.Header, error) {
	var headers []config.Header
	for _, line := range lines {
		if isTemplate(line) {
			continue
		}
		h, err := config.ParseHeader(line, os.LookupEnv)
		if err != nil {
			return nil, fmt.Errorf("-H: %w", err)
		}
		headers = append(headers, h)
	}
	return headers, nil
}

func (f *runFlags) tls() (*tls.Config, error) {
	if !f.insecure && f.cacert == "" {
		return nil, nil
	}
	cfg := &tls.Config{InsecureSkipVerify: f.insecure}
	if f.cacert != "" {
		pem, err := os.ReadFile(f.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert %s: no certificate in it", f.cacert)
		}
	}
	return cfg, nil
}

// stateFolder is where durable state goes; empty is nowhere.
func (f *runFlags) stateFolder(file *config.File) (string, error) {
	dir := f.state
	if dir == "" {
		dir = file.State.Reveal()
	}
	switch dir {
	case "none":
		return "", nil
	case "":
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", nil // nobody's home: keep nothing
			}
			base = filepath.Join(home, ".local", "state")
		}
		return filepath.Join(base, "mete"), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("--state: %w", err)
	}
	return dir, nil
}

// fingerprints tell a resume what has changed, without telling secrets.
func (j *runJob) fingerprints() map[string]string {
	hash := func(parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		return hex.EncodeToString(sum[:8])
	}
	o := &j.options
	var limits []string
	for name, s := range o.Providers {
		limits = append(limits, fmt.Sprint(name, s.Gate.Concurrency, s.Gate.Limits))
	}
	slices.Sort(limits)
	limits = append(limits, fmt.Sprint(o.Other.Gate.Concurrency, o.Other.Gate.Limits))
	return map[string]string{
		"limits":   hash(limits...),
		"template": hash(append(templateParts(&j.input), j.flags.baseURL, j.flags.provider)...),
	}
}

func newRunID() string {
	return time.Now().UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}
