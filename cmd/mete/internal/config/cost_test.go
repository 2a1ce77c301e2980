package config_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/cost"
)

func TestCosts(t *testing.T) {
	f := parse(t, `version: 1
defaults:
  cost: {tokens: len(body)/4, points: 3}
providers:
  a:
    url: https://a.example
    cost:
      tokens:
        estimate: "ceil(len(body)/4) + (body.max_tokens ?? 512)"
        actual: response.usage.total_tokens
    limits: [{name: tpm, tokens: 200000/m, bucket: true, burst: 20000, oversize: alone}, {points: "${RATE}"}]
  b: {url: https://b.example}
`)
	a, b := f.Provider("a"), f.Provider("b")
	if len(a.Cost) != 2 || a.Cost[0].Unit != "tokens" || a.Cost[0].Actual.String() != "response.usage.total_tokens" || a.Cost[1].Estimate.String() != "3" {
		t.Errorf("a: %+v", a.Cost)
	}
	if len(b.Cost) != 2 || b.Cost[0].Estimate.String() != "len(body)/4" || b.Cost[0].Actual != nil {
		t.Errorf("b: %+v", b.Cost)
	}
	if l := a.Gate.Limits[0]; l.Unit != "tokens" || l.Name != "tpm" || !l.Bucket || l.Burst != 20000 || l.Oversize != "alone" {
		t.Errorf("%+v", l)
	}
	if l := a.Gate.Limits[1]; l.Unit != "points" || l.N == 0 {
		t.Errorf("%+v", l)
	}
	n, err := a.Cost[0].Estimate.Estimate(&cost.Request{Body: []byte(`{"max_tokens":9}`), Size: 16})
	if n != 13 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	checkShown(t, f)
}

// A mistake in an expression is shown at its place.
func TestCostMistakes(t *testing.T) {
	for _, c := range []struct{ provider, want string }{
		{`cost: {tokens: "len(bdy)/4"}`, `f:2:61: cost.tokens: unknown name bdy: known here are body, row, meta, method, url`},
		{`cost: {tokens: len(bdy)/4}`, `f:2:60: cost.tokens: unknown name bdy`},
		{`cost: {tokens: "1 \x2b bdy"}`, `f:2:56: cost.tokens: unknown name bdy`}, // the text is not what stands there
		{`cost: {tokens: {estimate: response.x}}`, `f:2:67: estimate: unknown name response`},
		{`cost: {tokens: {actual: "'a'"}}`, `f:2:66: actual: a cost is a number, but got string`},
		{`cost: {tokens: "${RATE}"}`, `f:2:56: cost.tokens must be written out, without ${...}`},
		{`cost: {requests: 2}`, `f:2:48: a request costs one of requests`},
		{`cost: {"a b": 2}`, `f:2:48: "a b" cannot be a unit`},
		{`cost: {tokens: }`, `f:2:48: "tokens" has no value`},
		{`cost: {tokens: {}}`, `f:2:56: cost.tokens is empty`},
		{`cost: {tokens: {estimat: 1}}`, `f:2:57: unknown key "estimat" in cost.tokens (did you mean "estimate"?)`},
		{`cost: [tokens]`, `cost must be a mapping, not a list`},
		{`limits: [{tokens: 5/s, bucket: true}]`, `a bucket of tokens needs a burst`},
		{`limits: [{tokens: 5/s, oversize: split}]`, `oversize must be alone, not "split"`},
		{`limits: [{tokens: 5/d, window: calendar, oversize: alone}]`, `a calendar window cannot be exceeded`},
		{`limits: [{tokens: 5/s, points: 5/s}]`, `a limit counts one unit`},
		{`limits: [{"a b": 5/s}]`, `"a b" cannot be a unit`},
		{`limits: [{tokens: 90000}]`, `not a rate: "90000": say per what: 90000/s`},
	} {
		_, err := config.Parse("f", []byte("version: 1\nproviders: {a: {url: https://x.example, "+c.provider+"}}"), testEnv)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.provider, err, c.want)
		}
	}
}
