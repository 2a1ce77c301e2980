package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mete.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mete.json") // checks it against the draft, too
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judge validates a file as an editor does. isYAML is false for what cannot be
// put into JSON at all.
func judge(s *jsonschema.Schema, data []byte) (err error, isYAML bool) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, false
	}
	return s.Validate(doc), true
}

// TestSchemaFiles: the schema takes every good file, and finds what is wrong
// with the bad ones as far as one value shows it.
func TestSchemaFiles(t *testing.T) {
	s := compileSchema(t)
	good := map[string]string{
		"everything":  shownConfig,
		"run alone":   "version: 1\nrun: {duplicate_ids: skip, on_change: keep, fsync: 1s, drain_timeout: 5s, max_line: 1048576, allow_files: true, idempotency_key: off}",
		"no provider": "version: 1\ndefaults: {timeout: {connect: 1s}}",
	}
	bad := map[string]string{
		"a misspelt key":    "version: 1\nproviders: {a: {url: https://x.example, burstt: 5}}",
		"a number as time":  "version: 1\nproviders: {a: {url: https://x.example, max_wait: 5}}",
		"a rate per what":   "version: 1\nproviders: {a: {url: https://x.example, rate: 50}}",
		"a negative rate":   "version: 1\nproviders: {a: {url: https://x.example, rate: -1/s}}",
		"no url":            "version: 1\nproviders: {a: {rate: 5/s}}",
		"burst of 0":        "version: 1\nproviders: {a: {url: https://x.example, rate: 5/s, burst: 0}}",
		"burst alone":       "version: 1\nproviders: {a: {url: https://x.example, burst: 2}}",
		"a unit to buy in":  "version: 1\nproviders: {a: {url: https://x.example, limits: [{tokens: 5}]}}",
		"a misspelt burst":  "version: 1\nproviders: {a: {url: https://x.example, limits: [{requests: 5/s, burstt: 5}]}}",
		"another oversize":  "version: 1\nproviders: {a: {url: https://x.example, limits: [{tokens: 5/s, oversize: split}]}}",
		"cost in requests":  "version: 1\nproviders: {a: {url: https://x.example, cost: {requests: 1}}}",
		"a cost of nothing": "version: 1\nproviders: {a: {url: https://x.example, cost: {tokens: {}}}}",
		"a cost too many":   "version: 1\nproviders: {a: {url: https://x.example, cost: {tokens: {estimated: 1}}}}",
		"a key to come":     "version: 1\nserve: {}\nproviders: {a: {url: https://x.example}}",
		"version 2":         "version: 2\nproviders: {a: {url: https://x.example}}",
		"two places":        "version: 1\nproviders: {a: {url: https://x.example, auth: {header: a, query: b, value: c}}}",
		"a share above all": "version: 1\nproviders: {a: {url: https://x.example, retry: {budget: 1.5}}}",
		"another window":    "version: 1\nproviders: {a: {url: https://x.example, limits: [{requests: 1/d, window: fixed}]}}",
		"a bad name":        "version: 1\nproviders: {a b: {url: https://x.example}}",
		"a bad header":      "version: 1\nproviders: {a: {url: https://x.example, headers: {'x y': 1}}}",
		"nothing said":      "version: 1",
		"another fsync":     "version: 1\nrun: {fsync: 2s}",
		"a size of words":   "version: 1\nrun: {max_line: 16 megs}",
		"a key in run":      "version: 1\nrun: {retry: {attempts: 1}}",
		"a spaced header":   "version: 1\nrun: {idempotency_key: a b}",
		"another scheme":    "version: 1\nproviders: {a: {url: ftp://x.example}}",
		"no value":          "version: 1\nproviders: {a: {url: https://x.example, timeout: }}",
		"a rule of nothing": "version: 1\nproviders: {a: {url: https://x.example, classify: [{as: ok}]}}",
		"a rule to no end":  "version: 1\nproviders: {a: {url: https://x.example, classify: [{status: 404}]}}",
		"a status of 99":    "version: 1\nproviders: {a: {url: https://x.example, classify: [{status: 99, as: ok}]}}",
		"another kind":      "version: 1\nproviders: {a: {url: https://x.example, classify: [{status: 404, as: fine}]}}",
		"another reason":    "version: 1\nproviders: {a: {url: https://x.example, retry: {on: [always]}}}",
		"no reason":         "version: 1\nproviders: {a: {url: https://x.example, retry: {on: []}}}",
		"a breaker alone":   "version: 1\nproviders: {a: {url: https://x.example, breaker: {open: 5s}}}",
		"no lanes":          "version: 1\nlanes: {}\nproviders: {a: {url: https://x.example}}",
		"a heavy lane":      "version: 1\nlanes: {a: {weight: 5000}}\nproviders: {a: {url: https://x.example}}",
		"another dialect":   "version: 1\nproviders: {a: {url: https://x.example, preset: acme}}",
		"quoted number":     "version: 1\nproviders: {a: {url: https://x.example, concurrency: '5'}}",
	}
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Parse(path, data, testEnv)
		switch name := filepath.Base(path); {
		case err == nil:
			good[name] = string(data)
		case strings.Contains(err.Error(), "not YAML"), strings.Contains(err.Error(), "a tab:"), name == "structure.yaml":
			// structure.yaml has anchors, which are gone when a schema looks.
		default:
			if _, ok := judge(s, data); ok { // some editors find the double key of the others
				bad[name] = string(data)
			}
		}
	}
	starter, err := config.Starter{}.File("x")
	if err != nil {
		t.Fatal(err)
	}
	good["starter"] = string(starter)
	for name, text := range good {
		if err, ok := judge(s, []byte(text)); err != nil || !ok {
			t.Errorf("%s: refused: %v %v", name, err, ok)
		}
	}
	for name, text := range bad {
		if _, err := config.Parse(name, []byte(text), testEnv); err == nil {
			t.Errorf("%s: the parser takes it", name)
		}
		if err, ok := judge(s, []byte(text)); err == nil || !ok {
			t.Errorf("%s: the schema takes it (%v)", name, ok)
		}
	}
}

// TestSchemaValues: whatever value the parser takes, the schema takes too. All
// values of one and two pieces are tried at each key.
func TestSchemaValues(t *testing.T) {
	s := compileSchema(t)
	pieces := []string{"0", "5", "50/", ".5", "1/15", "s", "2d", "µs", "month", " second", "r/s", " ", "%", "+", "e1",
		"none", "unlimited", "true", "429", "connect", "auth", "github", "${FIVE}", "${RATE}", "$$", "auto", "aimd", "knee", "sliding", "calendar", "UTC", "https://", "x.example"}
	keys := []string{
		"concurrency: %s", "concurrency: {auto: true, max: %s}", "concurrency: {auto: %s}", "concurrency: {algorithm: %s}", "rate: %s", "rate: 1/s, burst: %s", "limits: [%s]", "limits: [{requests: %s}]",
		"limits: [{requests: %s, window: calendar}]", "limits: [{requests: 1/d, window: %s}]", "limits: [{requests: 1/d, name: %s}]",
		"limits: [{requests: 1/d, margin: %s}]", "limits: [{requests: 1/d, bucket: %s}]", "limits: [{requests: 1/d, window: calendar, zone: %s}]",
		"timeout: {attempt: %s}", "retry: {attempts: %s}", "retry: {budget: %s}", "retry: {keep_permit: %s}", "retry: {backoff: {base: %s, max: 1000d}}",
		"retry: {on: [%s]}", "classify: [{status: %s, as: ok}]", "classify: [{status: [%s], as: ok}]", "classify: [{jq: %s, as: ok}]", "classify: [{status: 404, as: %s}]", "preset: %s", "breaker: {failures: %s}", "breaker: {failures: 1, calls: %s}",
		"max_wait: %s", "max_queue: %s", "max_pause: %s", "idempotent: %s", "headers: {x-a: %s}", "auth: {header: %s, value: x}", "auth: {query: k, value: %s}", "url: %s",
	}
	for _, key := range keys {
		accepted := 0
		for _, first := range pieces {
			for _, second := range append(pieces, "") {
				tried := []string{strconv.Quote(first + second)}
				if second == "" {
					tried = append(tried, first)
				}
				for _, value := range tried {
					text := "version: 1\nproviders: {a: {" + fmt.Sprintf(key, value) + "}}\n"
					if key != "url: %s" {
						text = strings.Replace(text, "{a: {", "{a: {url: https://x.example, ", 1)
					}
					if _, err := config.Parse("f", []byte(text), testEnv); err != nil {
						continue
					}
					accepted++
					if err, ok := judge(s, []byte(text)); err != nil && ok {
						t.Errorf("the parser takes it, the schema says %v\n%s", err, text)
					}
				}
			}
		}
		if accepted == 0 {
			t.Errorf("%s: none of the tried values was good", key)
		}
	}
}

// FuzzSchema: the schema never refuses a file that can be used.
func FuzzSchema(f *testing.F) {
	s := compileSchema(f)
	f.Add([]byte(shownConfig))
	f.Add([]byte("version: 1\nproviders: {a: {url: https://x.example, limits: [5/1m30s, {requests: 0}], retry: {budget: 2e-1}}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := config.Parse("f", data, testEnv); err != nil {
			return
		}
		if err, ok := judge(s, data); err != nil && ok {
			t.Fatalf("refused: %v", err)
		}
	})
}
