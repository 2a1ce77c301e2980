package config

import (
	_ "embed"
	"strconv"
	"strings"
)

// Starter is what a new file says. Empty fields get an example.
type Starter struct {
	Provider string
	URL      string
	Rates    []string
	// Concurrency is how many requests may be in flight.
	Concurrency string
}

//go:embed starter.yaml
var starter string

// File returns a commented file to begin with, which needs no variable and
// gives no warning. The error is Errors: what Parse has against s, in a file
// called name.
func (s Starter) File(name string) ([]byte, error) {
	or := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	rates := s.Rates
	if len(rates) == 0 {
		rates = []string{"10/s"}
	}
	limits := "rate: " + quoteYAML(rates[0])
	if len(rates) > 1 {
		quoted := make([]string, len(rates))
		for i, r := range rates {
			quoted[i] = quoteYAML(r)
		}
		limits = "limits: [" + strings.Join(quoted, ", ") + "]"
	}
	concurrency := or(s.Concurrency, "16")
	if _, err := strconv.Atoi(concurrency); err != nil {
		concurrency = quoteYAML(concurrency)
	}
	text := strings.NewReplacer(
		"PROVIDER", quoteYAML(or(s.Provider, "api")),
		"BASE_URL", quoteYAML(or(s.URL, "https://api.example.com/v1")),
		"LIMITS", limits,
		"CONCURRENCY", concurrency,
	).Replace(starter)
	_, err := Parse(name, []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}
