package config_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/config"
)

// parse reads a file that must be good.
func parse(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("mete.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// provider reads the provider with the given lines.
func provider(t *testing.T, lines string) (*config.Provider, []*config.Error) {
	t.Helper()
	f := parse(t, "version: 1\nproviders:\n  a:\n    url: https://x.example\n"+lines)
	return f.Provider("a"), f.Warnings
}

func TestEverything(t *testing.T) {
	f := parse(t, "\ufeff"+strings.ReplaceAll(`# a comment
version: 1
state: /var/lib/mete
defaults:
  concurrency: 8
  timeout: {connect: 3s, ttfb: 20s, idle: 10s, attempt: 2m}
  retry: {attempts: 6, backoff: {base: 1s, max: 1m}, budget: 20%, keep_permit: true}
  max_wait: 90s
  max_queue: 100
  max_pause: 2d
providers:
  zeta:
    url: https://zeta.example/v1
    auth: {header: Authorization, value: "Bearer ${SECRET}"}
    headers: {anthropic-version: 2023-06-01, x-number: 1.10}
    concurrency: 32
    timeout: {attempt: 10m}
    retry: {attempts: 2, budget: none}
    limits:
      - {name: rpm, requests: 500/m, burst: 5, margin: 20ms}
      - 5000/h
      - {requests: 600/m, bucket: true, burst: 20, name: bucket}
      - {name: daily, requests: 10000/d, window: calendar, zone: America/Los_Angeles}
      - {name: monthly, requests: 200000/month, window: calendar}
    idempotent: true
    max_wait: none
    max_queue: none
  alpha:
    url: http://localhost:8080
    auth: {query: key, value: "${SECRET}"}
    rate: ${RATE}
    burst: ${FIVE}
    concurrency: unlimited
    timeout: {attempt: none}
`, "\n", "\r\n"))
	if len(f.Warnings) > 0 {
		t.Errorf("warnings: %v", config.Errors(f.Warnings))
	}
	if f.Version != 1 || f.State.Reveal() != "/var/lib/mete" || f.Defaults.Concurrency != 8 || len(f.Providers) != 2 {
		t.Errorf("got %+v", f)
	}
	zeta, alpha := f.Providers[0], f.Providers[1]
	wantGate := mete.Config{
		Name:        "zeta",
		Concurrency: 32,
		Limits: []mete.Limit{
			{Name: "rpm", N: 500, Per: time.Minute, Burst: 5, Margin: 20 * time.Millisecond},
			{N: 5000, Per: time.Hour, Burst: 1},
			{Name: "bucket", N: 600, Per: time.Minute, Burst: 20, Bucket: true},
			{Name: "daily", N: 10000, Burst: 1, Calendar: "day", Zone: "America/Los_Angeles"},
			{Name: "monthly", N: 200000, Burst: 1, Calendar: "month"},
		},
		Retry:   mete.Retry{Attempts: 2, Base: time.Second, Max: time.Minute, KeepPermit: true},
		Timeout: 10 * time.Minute,
		MaxWait: -1,
		Learn:   mete.LearnCap,
	}
	if !reflect.DeepEqual(zeta.Gate, wantGate) {
		t.Errorf("zeta's gate:\n got %+v\nwant %+v", zeta.Gate, wantGate)
	}
	if want := (config.Timeout{Connect: 3 * time.Second, TTFB: 20 * time.Second, Idle: 10 * time.Second, Attempt: 10 * time.Minute}); zeta.Timeout != want {
		t.Errorf("zeta's timeout: got %+v, want %+v", zeta.Timeout, want)
	}
	if zeta.Auth.Header != "Authorization" || zeta.Auth.Value.Reveal() != "Bearer "+secretValue || !zeta.Idempotent || zeta.MaxPause != 48*time.Hour {
		t.Errorf("zeta: got %+v", zeta)
	}
	if got := fmt.Sprint(zeta.Headers); got != "[{anthropic-version 2023-06-01} {x-number 1.10}]" {
		t.Errorf("headers: got %s", got)
	}
	if got := zeta.Base().String(); got != "https://zeta.example/v1" {
		t.Errorf("base: got %s", got)
	}
	wantGate = mete.Config{
		Name:     "alpha",
		Limits:   []mete.Limit{{N: 50, Per: time.Second, Burst: 5}},
		Retry:    mete.Retry{Attempts: 6, Base: time.Second, Max: time.Minute, Budget: 0.2, KeepPermit: true},
		MaxWait:  90 * time.Second,
		MaxQueue: 100,
		Learn:    mete.LearnCap,
	}
	if !reflect.DeepEqual(alpha.Gate, wantGate) {
		t.Errorf("alpha's gate:\n got %+v\nwant %+v", alpha.Gate, wantGate)
	}
	for _, p := range f.Providers {
		if _, err := mete.New(p.Gate); err != nil {
			t.Errorf("the library refuses what the file says: %v", err)
		}
	}
	if f.Provider("beta") != nil {
		t.Error("a provider that is not there")
	}
}

func TestDefaults(t *testing.T) {
	p, warnings := provider(t, "")
	want := mete.Config{
		Name:        "a",
		Concurrency: 16,
		Learn:       mete.LearnCap,
		Limits:      []mete.Limit{},
		Retry:       mete.Retry{Attempts: 4, Base: 500 * time.Millisecond, Max: 30 * time.Second},
		Timeout:     time.Minute,
	}
	if !reflect.DeepEqual(p.Gate, want) || p.Timeout.Connect != 5*time.Second || p.MaxPause != 24*time.Hour || p.Idempotent {
		t.Errorf("got %+v", p)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", config.Errors(warnings))
	}
}

// TestZero: projects disagree on what 0 means, without a word
// (stefanprodan/AspNetCoreRateLimit#18, MarcGiffing/bucket4j-spring-boot-starter#415,
// envoyproxy/gateway#9273, projectdiscovery/nuclei#5667).
func TestZero(t *testing.T) {
	for _, c := range []struct {
		lines   string
		pass    int // of 1000 calls
		warning string
	}{
		{"", 1000, ""},
		{"    rate: unlimited\n", 1000, ""},
		{"    limits: []\n", 1000, ""},
		{"    concurrency: unlimited\n", 1000, ""},
		{"    rate: 0\n", 0, "a rate of 0 blocks a: nothing will be sent; remove it for no limit"},
		{"    limits: [0/s]\n", 0, "a rate of 0 blocks a: nothing will be sent; remove it for no limit"},
		{"    concurrency: 0\n", 0, "concurrency 0 pauses: nothing will be sent; write unlimited for no bound"},
	} {
		p, warnings := provider(t, c.lines)
		gate, err := mete.New(p.Gate)
		if err != nil {
			t.Fatal(err)
		}
		pass := 0
		for range 1000 {
			if permit, ok := gate.TryAcquire(mete.Call{}); ok {
				permit.Release()
				pass++
			}
		}
		if pass != c.pass {
			t.Errorf("%q: %d calls pass, want %d", c.lines, pass, c.pass)
		}
		if c.warning == "" != (len(warnings) == 0) || c.warning != "" && warnings[0].Message != c.warning {
			t.Errorf("%q: got warnings %v", c.lines, config.Errors(warnings))
		}
	}
	for _, c := range []struct{ line, want string }{
		{"rate: -1", "f:4:11: rate must not be negative"},
		{"rate: -1/s", "f:4:11: rate must not be negative"},
		{"limits: [-1/s]", "f:4:14: a limit must not be negative"},
		{"concurrency: -1", "f:4:18: concurrency must not be negative"},
		{"limits: [{requests: 5/s, burst: 0}]", "f:4:37: burst must be at least 1"},
		{"limits: [{requests: 5/s, burst: -1}]", "f:4:37: burst must not be negative"},
	} {
		_, err := config.Parse("f", []byte("version: 1\nproviders:\n  a:\n    "+c.line+"\n    url: https://x.example\n"), testEnv)
		if err == nil || !strings.HasPrefix(err.Error(), c.want+"\n") {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
}

// TestBurstIsSmall: "5000/h" let 5,000 requests go in the first second
// (jhurliman/node-rate-limiter#38). The burst is 1 unless the file says more.
func TestBurstIsSmall(t *testing.T) {
	p, _ := provider(t, "    limits: [5000/h, {requests: 80/m, burst: 10}]\n")
	if p.Gate.Limits[0].Burst != 1 || p.Gate.Limits[1].Burst != 10 {
		t.Errorf("got %+v", p.Gate.Limits)
	}
}

func TestNeverReached(t *testing.T) {
	for _, c := range []struct {
		limits string
		want   string // the limit that is warned of
	}{
		{"[5/h, 10000/d]", "10000/d"},
		{"[500/m, 10000/d]", ""},
		{"[50/s, 3000/m]", ""},     // just reached
		{"[100/s, 50/m]", "100/s"}, // the minute allows less than one second may
		{"[5/15s, 21/m]", "21/m"},  // four windows of 5
		{"[5/15s, 20/m]", ""},      //
		{"[5/25s, 15/m]", ""},      // three windows touch a minute
		{"[{requests: 5/h, bucket: true, burst: 1000}, 1000/d]", ""},
		{"[{requests: 5/h, bucket: true, burst: 10}, 1000/d]", "1000/d"},
		{"[{requests: 10/d, window: calendar}, {requests: 1000/month, window: calendar}]", "1000/month"},
		{"[{requests: 10/d, window: calendar}, 15/h]", ""}, // two days meet in an hour
		{"[5/h, {requests: 200/d, window: calendar}]", "200/d"},
	} {
		_, warnings := provider(t, "    limits: "+c.limits+"\n")
		got := ""
		for _, w := range warnings {
			limit, _, _ := strings.Cut(w.Message, " is never reached")
			got += limit
		}
		if got != c.want {
			t.Errorf("%s: got a hint on %q, want %q", c.limits, got, c.want)
		}
	}
}

func ExampleParse() {
	file, err := config.Parse("mete.yaml", []byte(`
version: 1
providers:
  geocoder:
    url: https://geo.example.com/v1
    auth: {header: Authorization, value: "Bearer ${GEO_KEY}"}
    rate: 50/s
`), func(name string) (string, bool) { return "sk-12345", name == "GEO_KEY" })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	geo := file.Provider("geocoder")
	fmt.Println(geo.Gate.Limits[0], geo.Gate.Concurrency, geo.Auth.Value)
	fmt.Println(file.Mask("the provider said: bad key sk-12345"))
	// Output:
	// 50/s 16 ***
	// the provider said: bad key ***
}
