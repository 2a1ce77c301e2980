package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

// TestPlaces puts wrong keys at known places among lines of every style and
// wants exactly these places back. The YAML parser counts some lines wrongly.
func TestPlaces(t *testing.T) {
	styles := []string{
		"",
		"# comment",
		"    # comment: {",
		"    wrongA: 1",
		"    wrongB: {a: [1, 2], b: \"x: y\"}",
		"    wrongC: |\n      text: 1\n\n      more",
		"    wrongD: >-\n      text: 1\n      more\n",
		"    wrongE: \"two\n      lines\"",
		"    wrongF: two\n      lines",
		"    wrongG:\n      - a: 1\n        b: 2\n      - c",
		"    wrongH: 'it''s'   # comment",
		"    wrongI: é",
		"    timeout: {idle: 5s, wrongJ: é}",
		"    retry: {\n      attempts: 3, # comment\n      wrongK: 7 }",
		"    limits:\n      - requests: 3/s\n        wrongL: 7\n\n      - {\"requests\": 5/s, wrongM: é}",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := "version: 1\nproviders:\n"
		for i := range rapid.IntRange(1, 3).Draw(t, "providers") {
			text += fmt.Sprintf("  p%d:\n    url: https://x.example\n", i)
			picked := rapid.Permutation(styles).Draw(t, "styles")
			for _, style := range picked[:rapid.IntRange(0, len(styles)).Draw(t, "n")] {
				text += style + "\n"
			}
		}
		var want []string
		for i, line := range strings.Split(text, "\n") {
			if before, _, found := strings.Cut(line, "wrong"); found {
				want = append(want, fmt.Sprintf("%d:%d", i+1, utf8.RuneCountInString(before)+1))
			}
		}
		if rapid.Bool().Draw(t, "crlf") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		_, err := config.Parse("f", []byte(text), testEnv)
		var got []string
		problems, _ := errors.AsType[config.Errors](err)
		for _, e := range problems {
			got = append(got, fmt.Sprintf("%d:%d", e.Line, e.Col))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v in\n%s\n%v", got, want, text, err)
		}
	})
}
