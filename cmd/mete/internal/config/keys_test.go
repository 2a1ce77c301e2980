package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// homes are files with room for one more key of each kind of mapping.
var homes = map[string]string{
	"file":     "%s\nversion: 1\nproviders: {a: {url: https://x.example}}\n",
	"defaults": "version: 1\nproviders: {a: {url: https://x.example}}\ndefaults:\n  %s\n",
	"run":      "version: 1\nproviders: {a: {url: https://x.example}}\nrun:\n  %s\n",
	"provider": "version: 1\nproviders:\n  a:\n    url: https://x.example\n    %s\n",
	"auth":     "version: 1\nproviders:\n  a:\n    url: https://x.example\n    auth:\n      value: ${V}\n      %s\n",
	"timeout":  "version: 1\nproviders:\n  a:\n    url: https://x.example\n    timeout:\n      %s\n",
	"retry":    "version: 1\nproviders:\n  a:\n    url: https://x.example\n    retry:\n      %s\n",
	"backoff":  "version: 1\nproviders:\n  a:\n    url: https://x.example\n    retry:\n      backoff:\n        %s\n",
	"breaker":  "version: 1\nproviders:\n  a:\n    url: https://x.example\n    breaker:\n      %s\n",
	"adaptive": "version: 1\nproviders:\n  a:\n    url: https://x.example\n    concurrency:\n      %s\n",
	"lane":     "version: 1\nproviders: {a: {url: https://x.example}}\nlanes:\n  a:\n    %s\n",
	"rule":     "version: 1\nproviders:\n  a:\n    url: https://x.example\n    classify:\n    - as: auth\n      %s\n",
	"cost":     "version: 1\nproviders:\n  a:\n    url: https://x.example\n    cost:\n      tokens:\n        %s\n",
	"limit":    "version: 1\nproviders:\n  a:\n    url: https://x.example\n    limits:\n    - requests: 7/d\n      %s\n",
}

// home returns a file with the key at its example and, the second time, the
// same file without it.
func home(kind string, k key) (with, without string) {
	text := homes[kind]
	line := k.name + ": " + k.example
	switch kind + "." + k.name {
	case "file.version":
		text = strings.Replace(text, "version: 1\n", "", 1)
	case "file.providers":
		text = strings.Replace(text, "providers: {a: {url: https://x.example}}\n", "", 1)
	case "provider.url":
		text = strings.Replace(text, "    url: https://x.example\n", "", 1)
	case "provider.burst":
		text = strings.Replace(text, "    url: ", "    rate: 9/s\n    url: ", 1)
	case "provider.fallback":
		text = strings.Replace(text, "providers:\n", "providers:\n  other: {url: https://y.example}\n", 1)
	case "auth.value":
		text = strings.Replace(text, "value: ${V}\n", "header: x-key\n", 1)
	case "breaker.window", "breaker.calls", "breaker.open", "breaker.probes":
		text = strings.Replace(text, "%s", "failures: 30%%\n      %s", 1)
	case "rule.as":
		text = strings.Replace(text, "as: auth", "status: 404", 1)
	case "limit." + requests:
		text = strings.Replace(text, "requests: 7/d", "name: x", 1)
	case "limit.zone", "limit.budget":
		text = strings.Replace(text, "requests: 7/d", "requests: 7/d\n      window: calendar", 1)
	}
	return fmt.Sprintf(text, line), fmt.Sprintf(text, "")
}

func anyEnv(string) (string, bool) { return "any", true }

// TestKeys: each key of the table is read and changes something. A key that is
// known but ignored was the report: traefik/traefik#7129.
func TestKeys(t *testing.T) {
	for kind, keys := range known {
		if homes[kind] == "" {
			t.Fatalf("no file to try the keys of %s in", kind)
		}
		for _, k := range keys {
			with, without := home(kind, k)
			f, err := Parse("mete.yaml", []byte(with), anyEnv)
			if err != nil {
				t.Errorf("%s.%s: the example is refused: %v\n%s", kind, k.name, err, with)
				continue
			}
			before, err := Parse("mete.yaml", []byte(without), anyEnv)
			if err == nil && say(f) == say(before) {
				t.Errorf("%s.%s: %s changes nothing", kind, k.name, k.example)
			}
		}
	}
}

// say returns every value without its origin.
func say(f *File) string {
	var b strings.Builder
	for _, v := range f.Values() {
		fmt.Fprintln(&b, v.Path, v.Value)
	}
	return b.String()
}

// TestKeyDefaults: the table calls default what holds when the file is silent.
func TestKeyDefaults(t *testing.T) {
	f, err := Parse("mete.yaml", []byte("version: 1\nproviders: {a: {url: https://x.example, limits: [1/s, {requests: 1/d, window: calendar}, {requests: 2/s, bucket: true}]}}\n"), anyEnv)
	if err != nil {
		t.Fatal(err)
	}
	def := map[string]string{} // by the last two steps of the path
	for kind, keys := range known {
		for _, k := range keys {
			def[kind+" "+k.name] = k.def
		}
	}
	seen := 0
	for _, v := range f.Values() {
		if v.Origin != FromDefault {
			continue
		}
		kind := v.Path[len(v.Path)-2]
		switch {
		case strings.HasPrefix(kind, "["):
			kind = "limit"
		case kind == "a":
			kind = "provider"
		}
		name := v.Path[len(v.Path)-1]
		if name == "margin" {
			continue // depends on the period
		}
		seen++
		if got := fmt.Sprint(v.Value); def[kind+" "+name] != got {
			t.Errorf("%v: the table says %q, in force is %q", v.Path, def[kind+" "+name], got)
		}
	}
	if seen < 30 {
		t.Errorf("only %d defaults were looked at", seen)
	}
}

// TestSchemaKeys: the schema has the keys of the parser, all of them and no
// other, and calls every mapping closed.
func TestSchemaKeys(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties           map[string]struct{ Description string }
			AdditionalProperties any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for kind, keys := range known {
		def := schema.Defs[kind]
		closed := def.AdditionalProperties == false
		if kind == "limit" { // any other word is a unit with a rate
			_, rate := def.AdditionalProperties.(map[string]any)["$ref"]
			closed = rate
		}
		if !closed || len(def.Properties) != len(keys) {
			t.Errorf("%s: %d keys, the schema has %d and says %v of others", kind, len(keys), len(def.Properties), def.AdditionalProperties)
		}
		for _, k := range keys {
			if def.Properties[k.name].Description == "" {
				t.Errorf("%s.%s is not described in the schema", kind, k.name)
			}
		}
	}
	for kind, def := range schema.Defs {
		for name := range def.Properties {
			if !knows(kind, name) {
				t.Errorf("%s.%s is in the schema, but the parser does not know it", kind, name)
			}
		}
	}
}
