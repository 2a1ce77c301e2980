package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func TestStarter(t *testing.T) {
	noEnv := func(string) (string, bool) { return "", false }
	for _, s := range []config.Starter{
		{},
		{Provider: "geo", URL: "https://geo.example.com/v1", Rates: []string{"50/s"}, Concurrency: "20"},
		{Provider: "1.5", URL: "http://127.0.0.1:7070/x y", Rates: []string{"50/s", "10000/d"}, Concurrency: "unlimited"},
	} {
		text, err := s.File("new.yaml")
		if err != nil {
			t.Fatal(err)
		}
		f, err := config.Parse("new.yaml", text, noEnv)
		if err != nil || len(f.Warnings) > 0 || len(f.Providers) != 1 {
			t.Fatalf("%+v: %v %v\n%s", s, err, f, text)
		}
		p := f.Providers[0]
		if s.Provider != "" && (p.Name != s.Provider || p.URL.String() != s.URL || len(p.Gate.Limits) != len(s.Rates)) {
			t.Errorf("%+v: got %+v", s, p)
		}
	}
	for _, bad := range []struct {
		s    config.Starter
		want string
	}{
		{config.Starter{Provider: "a b"}, `"a b" cannot be a provider's name`},
		{config.Starter{URL: "ftp://x"}, "the url must begin with https:// or http://"},
		{config.Starter{URL: "http://x\"\n  b: {url: http://y}"}, "not a URL"},
		{config.Starter{URL: "${GEO_URL}"}, "the variable GEO_URL is not set"},
		{config.Starter{Rates: []string{"50"}}, "say per what"},
		{config.Starter{Concurrency: "many"}, "concurrency must be a whole number"},
	} {
		_, err := bad.s.File("new.yaml")
		problems, ok := errors.AsType[config.Errors](err)
		if !ok || !strings.Contains(problems[0].Message, bad.want) {
			t.Errorf("%+v: got %v, want %q", bad.s, err, bad.want)
		}
	}
}

// The examples in the comments can be switched on, all at once.
func TestStarterComments(t *testing.T) {
	text, err := config.Starter{}.File("new.yaml")
	if err != nil {
		t.Fatal(err)
	}
	env := func(string) (string, bool) { return "anything", true }
	var lines []string
	for l := range strings.Lines(string(text)) {
		body := strings.TrimLeft(l, " ")
		switch rest, comment := strings.CutPrefix(body, "#"); {
		case strings.HasPrefix(body, "rate:"): // limits take its place
		case !comment:
			lines = append(lines, l)
		case strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "  "), rest == "\n", strings.HasPrefix(rest, "   "):
		default:
			lines = append(lines, l[:len(l)-len(body)]+rest)
		}
	}
	all := strings.Join(lines, "")
	f, err := config.Parse("new.yaml", []byte(all), env)
	if err != nil {
		t.Fatalf("%v\n%s", err, all)
	}
	if p := f.Provider("api"); len(f.Warnings) > 0 || len(p.Gate.Limits) != 4 || len(p.Cost) != 2 || len(p.Fallback) != 1 || !p.Idempotent || p.Auth.Header == "" || f.State.Reveal() == "" {
		t.Errorf("got %+v\n%s", f, all)
	}
	for _, v := range f.Values() {
		if v.Path[0] == "defaults" && v.Origin == config.FromDefault {
			continue
		}
		if v.Path[0] == "defaults" && v.Path[len(v.Path)-1] == "attempt" && v.Value != "1m" {
			t.Errorf("the starter calls %v a default", v.Value)
		}
	}
}
