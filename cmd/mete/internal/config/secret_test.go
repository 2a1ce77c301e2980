package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

// TestSecretsStayHidden prints a file with a secret in every place that may hold
// one, in every way that Go prints things.
func TestSecretsStayHidden(t *testing.T) {
	f := parse(t, `version: 1
state: "/tmp/${SECRET}"
providers:
  a:
    url: https://${SECRET}.example.com/${SECRET}
    auth: {header: Authorization, value: "Bearer ${SECRET}"}
    headers: {x-plain: plain text, x-tenant: "${SECRET}", x-api-key: sk-do-not-show-2}
  b:
    url: https://b.example.com
    auth: {query: key, value: sk-do-not-show-3}
`)
	if len(f.Warnings) != 2 {
		t.Errorf("got warnings %v, want one for each literal secret", config.Errors(f.Warnings))
	}
	type outside struct { // as another package would keep it
		file  *config.File
		plain config.File
		all   []config.Provider
		auth  config.Auth
	}
	kept := outside{f, *f, f.Providers, f.Providers[0].Auth}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{f, *f, f.Providers, f.Providers[0].Auth.Value, &f.Providers[0].Auth.Value, kept, &kept} {
			hidden(t, verb, fmt.Sprintf(verb, v))
		}
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	hidden(t, "json", string(data))
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "file", f, "value", f.Providers[0].Auth.Value, "auth", f.Providers[0].Auth)
	}
	hidden(t, "slog", log.String())
	hidden(t, "warnings", config.Errors(f.Warnings).Error())

	if got := fmt.Sprint(f.Providers[0].Headers[0]); got != "{x-plain plain text}" {
		t.Errorf("what is not secret must be shown: got %s", got)
	}
	said := "no " + secretValue + ", sk-do-not-show-2 or Bearer " + secretValue + " and sk-do-not-show-3"
	if got := f.Mask(said); got != "no ***, *** or *** and ***" && got != "no ***, *** or Bearer *** and ***" {
		t.Errorf("Mask: got %q", got)
	}
}

// hidden fails if text holds the secret, in hexadecimal too.
func hidden(t *testing.T, how, text string) {
	t.Helper()
	for _, form := range []string{secretValue, fmt.Sprintf("%x", secretValue)} {
		if strings.Contains(text, form) {
			t.Errorf("%q shows the secret: %.300s", how, text)
		}
	}
}

// TestSecretTwice: a secret that stands somewhere else too is masked there, in
// the message and in the source lines.
func TestSecretTwice(t *testing.T) {
	_, err := config.Parse("f", []byte(`version: 1
providers:
  a:
    url: https://x.example
    auth: {header: x-key, value: `+secretValue+`}
    rate: `+secretValue+`
`), testEnv)
	if err == nil || !strings.Contains(err.Error(), `f:6:11: not a rate: "***"`) {
		t.Fatalf("got %v", err)
	}
	hidden(t, "error", err.Error())
}

// TestMaskEscaped: a transport error quotes the URL, and a log quotes the error.
func TestMaskEscaped(t *testing.T) {
	secret := "a+b/c \"d\""
	f, err := config.Parse("f", []byte("version: 1\nproviders: {a: {url: https://x.example, auth: {query: key, value: \"${K}\"}}}\n"),
		func(string) (string, bool) { return secret, true })
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), fmt.Sprintf("%q", secret)} {
		if got := f.Mask("<" + text + ">"); got != "<***>" && got != `<"***">` {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

// TestMaskOverlapping compares Mask with marking every byte of every hit.
func TestMaskOverlapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ab]{4,8}`)
		values := rapid.SliceOfN(letters, 1, 4).Draw(t, "values")
		from := rapid.IntRange(0, len(values[0])-4).Draw(t, "from")
		values = append(values, values[0][from:from+4]) // one inside another
		text := ""
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			v := rapid.SampledFrom(append(values, "c")).Draw(t, "part")
			text += v[rapid.IntRange(0, len(v)-1).Draw(t, "from"):]
		}
		file := "version: 1\nproviders: {p: {url: https://x.example, headers: {"
		for i := range values {
			file += fmt.Sprintf("x-%d: \"${V%d}\", ", i, i)
		}
		f, err := config.Parse("f", []byte(file+"}}}\n"), func(name string) (string, bool) {
			return values[name[1]-'0'], true
		})
		if err != nil {
			t.Fatal(err)
		}
		hit := make([]bool, len(text))
		for _, v := range values {
			for i := range text {
				if strings.HasPrefix(text[i:], v) {
					for j := range v {
						hit[i+j] = true
					}
				}
			}
		}
		want := ""
		for i := range text {
			switch {
			case !hit[i]:
				want += text[i : i+1]
			case i == 0 || !hit[i-1]:
				want += "***"
			}
		}
		if got := f.Mask(text); got != want {
			t.Fatalf("Mask(%q) with %q = %q, want %q", text, values, got, want)
		}
	})
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("from-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		secret     bool
	}{
		{"plain", "plain", false},
		{"cost $$5 and $ 5", "cost $5 and $ 5", false},
		{"$${SECRET}", "${SECRET}", false},
		{"${SECRET}", secretValue, true},
		{"a${SECRET}b", "a" + secretValue + "b", true},
		{"${UNSET:-default}", "default", true},
		{"${EMPTY:-default}", "default", true},
		{"${EMPTY}", "", true},
		{"${UNSET:-}", "", true},
		{"${SECRET:-default}", secretValue, true},
		{"${SECRET:?message}", secretValue, true},
		{"${file:" + dir + "/key}", "from-file", true},
		{"${file:key}", "from-file", true},
	} {
		f, err := config.Parse(filepath.Join(dir, "mete.yaml"),
			[]byte("version: 1\nproviders: {a: {url: https://x.example, headers: {x-v: '"+c.text+"'}}}\n"), testEnv)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		v := f.Providers[0].Headers[0].Value
		if v.Reveal() != c.want || v.IsSecret() != c.secret {
			t.Errorf("%s: got %q, secret %v; want %q, %v", c.text, v.Reveal(), v.IsSecret(), c.want, c.secret)
		}
	}
}

// TestExpandAddsNothing: a value is put in after the file is parsed, so that it
// cannot bring keys of its own.
func TestExpandAddsNothing(t *testing.T) {
	f, err := config.Parse("f", []byte("version: 1\nproviders:\n  a:\n    url: https://x.example\n    headers: {x-v: \"${V}\"}\n"),
		func(string) (string, bool) { return `x", y: "z`, true })
	if err != nil {
		t.Fatal(err)
	}
	if h := f.Providers[0].Headers; len(h) != 1 || h[0].Value.Reveal() != `x", y: "z` {
		t.Errorf("got %v", h)
	}
}
