package quota

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Every code that counts in a success is at a member that is looked at, and is
// found there.
func TestSuspiciousFindsEveryCode(t *testing.T) {
	for _, c := range codes {
		provider := c.loose + c.only
		p := knownProfile(provider)
		if p == nil {
			p = &nameless
		}
		for _, v := range c.values {
			var body any = v
			steps := strings.Split(c.path, ".")
			for _, step := range slices.Backward(steps) {
				name, each := strings.CutSuffix(step, "[]")
				if each {
					body = []any{body}
				}
				if name != "" {
					body = map[string]any{name: body}
				}
			}
			if object, ok := body.(map[string]any); ok {
				object["data"] = []any{map[string]any{"error": "}\"]\\"}, 1.5, nil}
			}
			for _, indent := range []string{"", "\t"} {
				text, err := json.MarshalIndent(body, indent, indent)
				if err != nil {
					t.Fatal(err)
				}
				if got := Suspicious(provider, text); got != c.applies(true, p) {
					t.Errorf("%s: %v", text, got)
				}
				if Suspicious(provider, text[:len(text)-1]) {
					t.Errorf("cut short: %s", text)
				}
			}
		}
	}
}

func TestSuspicious(t *testing.T) {
	for body, want := range map[string]bool{
		``:           false,
		`{}`:         false,
		`{"a":1}`:    false,
		"null":       false,
		`{"error":`:  false,
		`{"error"}`:  false,
		`{"error",}`: false,
		`[{"error":{"code":"insufficient_quota"}}]`:                         false,
		`{"error":null,"errors":[],"status":"ok"}`:                          false,
		`{"data":{"error":{"code":"slow_down"}}}`:                           false, // it is data
		`{"data":"\"error\": rate_limited"}`:                                false,
		`{"text":"a\\","status":"OVER_QUERY_LIMIT"}`:                        true,
		`{"sta\u0074us":"OVER_QUERY_LIMIT"}`:                                true,
		`{"status":"OVER\u005fQUERY_LIMIT"}`:                                true,
		`{"error":"ratelimited"}`:                                           true,
		`{"error":{"code":"slow\u005fdown"}}`:                               true,
		`{"extensions":{"cost":{"throttleStatus":{"maximumAvailable":1}}}}`: true,
		`<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>`:         true,
		`<html>`: false,
	} {
		if got := Suspicious("", []byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// FuzzSuspicious: what Parse finds in the body of a success is suspicious.
func FuzzSuspicious(f *testing.F) {
	for _, c := range codes {
		f.Add("", `{"`+c.path+`":"`+c.values[0]+`","a":["\"",{}]}`)
	}
	f.Add("shopify", `{"extensions":{"cost":{"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":1,"restoreRate":50}}}}`)
	f.Fuzz(func(t *testing.T, provider, body string) {
		r := Parse(Response{Provider: provider, Status: 200, Body: []byte(body)})
		if (r.Throttled || r.Terminal || r.Quotas != nil) && !Suspicious(provider, []byte(body)) {
			t.Errorf("%+v", r)
		}
	})
}
