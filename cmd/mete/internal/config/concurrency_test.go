package config_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/cmd/mete/internal/config"
)

func TestConcurrency(t *testing.T) {
	for text, want := range map[string]adaptive.Config{
		"auto":                          {Algorithm: adaptive.Knee},
		"aimd":                          {Algorithm: adaptive.AIMD},
		"{auto: true, max: 64, min: 4}": {Algorithm: adaptive.Knee, Min: 4, Max: 64},
		"{algorithm: failures}":         {Algorithm: adaptive.Failures},
		"{auto: true, initial: 8}":      {Algorithm: adaptive.Knee, Initial: 8},
	} {
		f, err := config.Parse("f", []byte("version: 1\nproviders: {a: {url: https://x.example, concurrency: "+text+"}}\n"), testEnv)
		if err != nil {
			t.Error(text, err)
			continue
		}
		if got := f.Providers[0].Gate.Adaptive; got == nil || *got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	// A number of a provider wins over auto of the defaults, and the other way.
	f, err := config.Parse("f", []byte("version: 1\ndefaults: {concurrency: auto}\nproviders:\n  a: {url: https://x.example, concurrency: 3}\n  b: {url: https://y.example}\n"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := f.Providers[0].Gate, f.Providers[1].Gate; a.Adaptive != nil || a.Concurrency != 3 || b.Adaptive == nil {
		t.Errorf("%+v, %+v", a, b)
	}
	for text, want := range map[string]string{
		"{auto: true, min: 9, max: 3}": "f:1:25: min 9 is above max 3",
		"{auto: false, max: 3}":        "f:1:32: auto: false with other keys says nothing",
		"{algorithm: vegas}":           "f:1:37:",
		"{max: 0}":                     "f:1:31: max must be at least 1",
		"{initail: 5}":                 `did you mean "initial"`,
	} {
		_, err := config.Parse("f", []byte("defaults: {concurrency: "+text+"}\nversion: 1\n"), testEnv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
