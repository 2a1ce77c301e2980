package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/rate"
)

// shownConfig has every setting, and a secret at every place.
const shownConfig = `version: 1
state: ${STATE:-/var/lib/mete}
defaults:
  concurrency: 8
  timeout: {connect: 3s}
  retry: {budget: 20%, on: [connect, 429, 5xx]}
  classify: [{status: 529, as: overloaded}]
lanes:
  urgent: {weight: 4.5, reserve: 20%, cap: 80%, max_queue: 200, max_wait: 5s}
  bulk:
providers:
  zeta:
    url: https://zeta.example/v1
    auth:
      header: Authorization
      value: "Bearer ${SECRET}"
    headers: {x-price: "5 $$ a: piece", user-agent: acme, x-secret: "${SECRET}", "*x": "no"}
    concurrency: unlimited
    rate: ${RATE}
    burst: 5
    limits:
      - 5000/h
      - {name: docs, requests: 600/m, bucket: true, burst: 20}
      - {name: daily, requests: 10000/d, window: calendar}
    timeout: {attempt: 10m, ttfb: 90s}
    retry:
      attempts: 2
    max_wait: none
    idempotent: true
    preset: openai
    classify:
      - {status: 429, jq: '.error.code == "insufficient_quota"', as: quota_exhausted}
      - status: [403, 429]
        jq: .error as $$e | $$e.type == "slow"
        as: rate_limited
    fallback: ["1.5"]
  "1.5":
    url: "${BASE:-http://localhost:8080}"
    rate: unlimited
    concurrency: 0
    max_pause: 2d
    cost: {tokens: len(body)/4}
    breaker: {failures: 50%, open: 1m}
    headers_learn: "off"
    retry: {on: [timeout]}
  none:
    url: http://localhost:8080
    classify: []
`

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
	if strings.Contains(got, secretValue) {
		t.Errorf("%s shows a secret", name)
	}
}

func yamlOf(t *testing.T, values []config.Value, origins bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := config.WriteYAML(&b, values, origins); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func written(values []config.Value) []config.Value {
	return slices.DeleteFunc(slices.Clone(values), func(v config.Value) bool { return !v.Written })
}

// A key that is silently a default, and a burst that nobody sees, were the
// reports: traefik/traefik#7129, jhurliman/node-rate-limiter#38.
func TestShow(t *testing.T) {
	f := parse(t, shownConfig)
	golden(t, "show_effective.golden", yamlOf(t, f.Values(), true))
	golden(t, "show.golden", yamlOf(t, written(f.Values()), false))
	var b bytes.Buffer
	if err := config.WriteJSON(&b, f.Values(), true); err != nil {
		t.Fatal(err)
	}
	golden(t, "show.json.golden", b.String())
	again := yamlOf(t, parse(t, shownConfig).Values(), true)
	if again != yamlOf(t, f.Values(), true) {
		t.Error("the order changes")
	}
}

// What is shown says the same as the file, and JSON the same as YAML.
func TestShowRoundTrip(t *testing.T) {
	f := parse(t, shownConfig)
	checkShown(t, f)
}

func checkShown(t *testing.T, f *config.File) {
	t.Helper()
	text := strings.ReplaceAll(yamlOf(t, f.Values(), true), "    url: \"***\"", "    url: http://masked.example")
	again, err := config.Parse("again", []byte(text), testEnv)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i, p := range f.Providers {
		q := again.Providers[i]
		for j := range p.Gate.Limits {
			// Written out, they are the same.
			l := &p.Gate.Limits[j]
			l.Margin = max(l.Margin, q.Gate.Limits[j].Margin)
			if l.Calendar != "" && l.Zone == "" {
				l.Zone = "UTC"
			}
		}
		if p.Gate.MaxWait == 0 {
			p.Gate.MaxWait = time.Minute
		}
		if d := p.Gate.Retry.Budget - q.Gate.Retry.Budget; d < 1e-9 && d > -1e-9 {
			q.Gate.Retry.Budget = p.Gate.Retry.Budget
		}
		sameRules := slices.EqualFunc(p.Classify, q.Classify, func(a, b classify.Rule) bool {
			return slices.Equal(a.Status, b.Status) && a.JQ == b.JQ && a.As == b.As
		})
		if !sameRules || !slices.Equal(p.RetryOn, q.RetryOn) || p.Preset != q.Preset {
			t.Fatalf("got  %+v\nwant %+v\n%s", q, p, text)
		}
		if !reflect.DeepEqual(p.Gate, q.Gate) || p.Timeout != q.Timeout || p.MaxPause != q.MaxPause || p.Name != q.Name {
			t.Fatalf("got  %+v\nwant %+v\n%s", q, p, text)
		}
		for j, h := range p.Headers {
			if !h.Value.IsSecret() && q.Headers[j].Value.Reveal() != f.Mask(h.Value.Reveal()) {
				t.Fatalf("header %+v, want %+v", q.Headers[j], h)
			}
		}
	}
	var b bytes.Buffer
	if err := config.WriteJSON(&b, f.Values(), false); err != nil {
		t.Fatal(err)
	}
	var fromJSON struct{ Config any }
	var fromYAML any
	if err := json.Unmarshal(b.Bytes(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(yamlOf(t, f.Values(), false)), &fromYAML); err != nil {
		t.Fatal(err)
	}
	inJSON, _ := json.Marshal(fromJSON.Config)
	inYAML, _ := json.Marshal(fromYAML)
	if got := strings.ReplaceAll(string(inYAML), "$$", "$"); got != strings.ReplaceAll(string(inJSON), "$$", "$") {
		t.Fatalf("YAML and JSON differ:\n%s\n%s", got, inJSON)
	}
}

// Flags replace what the file says, in every provider.
func TestShowFlags(t *testing.T) {
	f := parse(t, shownConfig)
	f.Provider("zeta").Gate.Concurrency = 5
	f.Provider("zeta").Gate.Limits = f.Provider("zeta").Gate.Limits[:1]
	got := strings.Join(strings.Fields(yamlOf(t, f.Values("concurrency", "limits"), true)), " ")
	for _, want := range []string{
		"concurrency: 5 # flag", "- requests: 50/s # flag", "burst: 5 # flag", "attempt: 10m # mete.yaml:25",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q: %s", want, got)
		}
	}
}

// FuzzShow: whatever can be read is shown as what it is.
func FuzzShow(f *testing.F) {
	f.Add([]byte(shownConfig))
	f.Add([]byte("version: 1\nproviders: {a: {url: https://x.example, rate: 0.3/h, headers: {x: \"\\u0085\\t' \"}}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("f", data, testEnv)
		if err != nil {
			return
		}
		checkShown(t, file)
	})
}

// The margin that is shown is the one that the limiter keeps.
func TestShowMargin(t *testing.T) {
	for _, per := range []string{"1ms", "1s", "2s", "5s", "1m", "24h"} {
		synctest.Test(t, func(t *testing.T) {
			period, _ := time.ParseDuration(per)
			l, err := rate.New(rate.Window{N: 1, Per: period})
			if err != nil {
				t.Fatal(err)
			}
			l.Allow(1)
			wait, err := l.Peek(1)
			if err != nil {
				t.Fatal(err)
			}
			f := parse(t, "version: 1\nproviders: {a: {url: http://localhost, rate: 1/"+per+"}}\n")
			for _, v := range f.Values() {
				if v.Path[len(v.Path)-1] == "margin" && v.Value != (wait-period).String() {
					t.Errorf("1/%s: shows %v, the limiter keeps %v", per, v.Value, wait-period)
				}
			}
		})
	}
}

// A concurrency below rate x latency is a second limit that nobody sees.
func TestCheckLatency(t *testing.T) {
	f := parse(t, `version: 1
defaults: {concurrency: 16}
providers:
  slow: {url: http://localhost, limits: [1000/h, 50/s]}
  ok: {url: http://localhost, rate: 50/s, concurrency: 100}
  open: {url: http://localhost, rate: 50/s, concurrency: unlimited}
  paused: {url: http://localhost, rate: 50/s, concurrency: 0}
  daily: {url: http://localhost, limits: [{requests: 10/d, window: calendar}], concurrency: 1}
  free: {url: http://localhost, concurrency: 1}
  own:
    url: http://localhost
    rate: 300/m
    concurrency: 3
`)
	got := ""
	for _, e := range f.CheckLatency(2 * time.Second) {
		got += e.Error() + "\n"
	}
	want := "mete.yaml:4:3: concurrency 16 is too low for 50/s of slow: 50/s x 2s needs 100 in flight, and 16 carry 8/s; write concurrency: 200 to have some to spare\n" +
		"mete.yaml:13:18: concurrency 3 is too low for 300/m of own: 300/m x 2s needs 10 in flight, and 3 carry 90/m; write concurrency: 20 to have some to spare\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if late := f.CheckLatency(100 * time.Millisecond); len(late) > 0 {
		t.Errorf("warns of what fits: %v", config.Errors(late))
	}
	if none := (&config.File{}).CheckLatency(time.Second); none != nil {
		t.Error(none)
	}
}
