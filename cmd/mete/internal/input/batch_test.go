package input

import (
	"net/url"
	"strings"
	"testing"
)

func TestBatchFormats(t *testing.T) {
	base, _ := url.Parse("https://api.example/v1")
	for _, c := range []struct{ format, line, method, url, body string }{
		{"openai-batch", `{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m",  "n": 1e2}}`,
			"POST", "https://api.example/v1/chat/completions", `{"model": "m",  "n": 1e2}`},
		{"openai-batch", `{"body": {}, "url": "embeddings", "custom_id": "a"}`, "POST", "https://api.example/v1/embeddings", `{}`},
		{"anthropic-batch", `{"custom_id": "a", "params": {"model": "m", "max_tokens": 9}}`,
			"POST", "https://api.example/v1/messages", `{"model": "m", "max_tokens": 9}`},
	} {
		s, err := Open(nil, strings.NewReader(c.line+"\n"), Options{Format: c.format, BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Next()
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if r.ID != "a" || !r.IDGiven || r.Method != c.method || r.URL.String() != c.url || string(r.Body) != c.body || r.ContentType != "application/json" {
			t.Errorf("%s: %s %s %s %s %q", c.line, r.ID, r.Method, r.URL, r.Body, r.ContentType)
		}
	}
}

func TestBatchMistakes(t *testing.T) {
	base, _ := url.Parse("https://api.example")
	for _, c := range []struct{ format, line, want string }{
		{"openai-batch", `{"custom_id":"a","url":"/v1","body":{},"meta":1}`, `stdin:1:40: unknown field "meta": a line of openai-batch has custom_id, method, url and body`},
		{"openai-batch", `{"custom_id":"a","body":{}}`, "stdin:1:1: url is missing"},
		{"openai-batch", `{"url":"/v1","body":{}}`, "stdin:1:1: custom_id is missing"},
		{"openai-batch", `{"custom_id":"a","url":"/v1"}`, "body is missing"},
		{"openai-batch", `{"custom_id":"a","url":"/v1","body":"x"}`, "stdin:1:37: body is a string: want an object"},
		{"anthropic-batch", `{"custom_id":"a","params":[]}`, "params is an array: want an object"},
		{"anthropic-batch", `{"custom_id":"a","params":{},"url":"/x"}`, "a line of anthropic-batch has custom_id and params"},
		{"anthropic-batch", `{"custom_id":"a","params":{},"params":{}}`, `field "params" is given twice`},
	} {
		s, err := Open(nil, strings.NewReader(c.line), Options{Format: c.format, BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.line, err, c.want)
		}
	}
}
