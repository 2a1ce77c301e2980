package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseHeader(t *testing.T) {
	env := func(name string) (string, bool) { return "s3cret", name == "KEY" }
	for line, want := range map[string]string{
		"Accept: text/plain":           "Accept text/plain false",
		"X-Token:Bearer ${KEY}":        "X-Token Bearer s3cret true",
		"authorization: Basic abcdefg": "authorization Basic abcdefg true",
		"X-Price: 5$$":                 "X-Price 5$ false",
		"X-Empty:":                     "X-Empty  false",
	} {
		h, err := ParseHeader(line, env)
		if got := fmt.Sprint(h.Name, " ", h.Value.Reveal(), " ", h.Value.IsSecret()); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"", "Accept", ": x", "a b: c", "Host:${NO}", "X: ${KEY", "X: a\nb: c", "Connection: close"} {
		if h, err := ParseHeader(line, env); err == nil {
			t.Errorf("%q: %v", line, h)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: the error shows the secret: %v", line, err)
		}
	}
}
