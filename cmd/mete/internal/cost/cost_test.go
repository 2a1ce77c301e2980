package cost_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/cost"
)

const prompt = `{"model":"m","max_tokens":100,"messages":[{"content":"é"},{"content":"hello"}]}`

func TestEstimates(t *testing.T) {
	q := &cost.Request{Method: "POST", URL: "https://api.example/v1/chat", Body: []byte(prompt), Size: int64(len(prompt)),
		Row: []byte(`{"words":"7","n":3}`)}
	text := &cost.Request{Method: "PUT", Body: []byte("plain é"), Size: 8}
	none := &cost.Request{Method: "GET"}
	for _, c := range []struct {
		expr string
		q    *cost.Request
		want int64
	}{
		{"len(body)/4", q, int64(math.Ceil(float64(len(prompt)) / 4))},
		{"ceil(len(body)/4) + (body.max_tokens ?? 512)", q, int64(math.Ceil(float64(len(prompt))/4)) + 100},
		{"ceil(len(body)/4) + (body.limit ?? 512)", q, int64(math.Ceil(float64(len(prompt))/4)) + 512},
		{"body.max_tokens ?? 512", none, 512},
		{"len(body)", none, 0},
		{"len(body)", text, 8},
		{"len(body + '')", text, 7}, // a text's own length is in characters
		{"len(body.messages)", q, 2},
		{"sum(map(body.messages, len(.content)))", q, 6},
		{"int(row.words) * 2", q, 14},
		{"meta.n", q, 3},
		{"row.n ?? 1", none, 1},
		{"method == 'POST' ? 10 : 1", q, 10},
		{"url contains '/chat' ? 2 : 1", q, 2},
		{"0.2", q, 1}, // rounded up
		{"0", q, 0},
	} {
		e, err := cost.Estimate(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got, err := e.Estimate(c.q); err != nil || got != c.want {
			t.Errorf("%s = %d, %v; want %d", c.expr, got, err, c.want)
		}
	}
}

func TestNoCost(t *testing.T) {
	q := &cost.Request{Body: []byte(prompt), Size: int64(len(prompt))}
	for expr, want := range map[string]string{
		"-1":                            "below 0",
		"1/0":                           "not a number",
		"0/0":                           "not a number",
		"body.max_tokens - 1000":        "below 0",
		"body.model":                    "invalid operation",
		"body.usage.total":              "cannot fetch total from <nil>",
		"body.limit":                    "invalid operation",
		"1e300":                         "more than can be counted",
		"len(filter(1..10000000, #>1))": "memory budget",
	} {
		e, err := cost.Estimate(expr)
		if err != nil {
			t.Errorf("%s does not compile: %v", expr, err)
			continue
		}
		if n, err := e.Estimate(q); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s = %d, %v; want %q on one line", expr, n, err, want)
		}
	}
	e, _ := cost.Estimate("body.max_tokens")
	if _, err := e.Estimate(&cost.Request{Size: 5}); err == nil || !strings.Contains(err.Error(), "in a file") {
		t.Errorf("a body in a file: %v", err)
	}
	e, _ = cost.Estimate("len(body)")
	if n, err := e.Estimate(&cost.Request{Size: 5}); err != nil || n != 5 {
		t.Errorf("the size of a body in a file: %d, %v", n, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		expr         string
		line, column int
		want         string
	}{
		{"len(bdy)/4", 1, 5, "unknown name bdy: known here are body, row, meta, method, url"},
		{"1 +", 1, 3, "unexpected token EOF"},
		{"status", 1, 1, "unknown name status"},
		{"'a'", 1, 1, "a cost is a number"},
		{"method", 1, 1, "a cost is a number"},
		{"true", 1, 1, "a cost is a number"},
		{"1 +\n  foo", 2, 3, "unknown name foo"},
		{"now().Unix()", 1, 1, "unknown name now"},
		{"count(body.a, any(body.b, #))", 1, 1, "a loop inside a loop"},
		{"$env.nothing", 1, 6, "unknown name"},
	} {
		_, err := cost.Estimate(c.expr)
		e, ok := err.(*cost.Error)
		if !ok || e.Line != c.line || e.Column != c.column || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %#v; want %d:%d %q", c.expr, err, c.line, c.column, c.want)
		}
	}
}

func response(status int, kind, body string) *cost.Response {
	r := cost.NewResponse(status, http.Header{"Content-Type": {kind}, "X-Tokens-Used": {"17"}})
	for len(body) > 0 { // in parts, as a network gives it
		n := min(len(body), 7)
		fmt.Fprint(r, body[:n])
		body = body[n:]
	}
	return r
}

func TestActual(t *testing.T) {
	openAI := `data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}

data: [DONE]

`
	anthropic := `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"text":"the word \"usage\""}}

event: message_delta
data: {"type":"message_delta","delta":{},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`
	responses := "event: response.completed\r\ndata: {\"type\":\"response.completed\",\r\ndata: \"response\":{\"usage\":{\"total_tokens\":7}}}\r\n"
	const sse = "text/event-stream; charset=utf-8"
	for _, c := range []struct {
		expr       string
		kind, body string
		want       int64
	}{
		{"response.usage.total_tokens", "application/json", `{"usage":{"total_tokens":764}}`, 764},
		{"response.usage.total_tokens", sse, openAI, 12},
		{"response.usage.input_tokens + response.usage.output_tokens", sse, anthropic, 40},
		{"response.usage.total_tokens", sse, responses, 7},
		{"response.type == 'message_stop' ? 1 : 0", sse, anthropic, 1},
		{"int(header['x-tokens-used'])", "text/plain", "", 17},
		{"status == 200 ? len(response) : 0", "text/plain", "hello", 5},
		{"len(body) + (response.usage.total_tokens ?? 5)", "application/json", `{"usage":{}}`, int64(len(prompt)) + 5},
	} {
		e, err := cost.Actual(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		q := &cost.Request{Body: []byte(prompt), Size: int64(len(prompt))}
		if got, err := e.Actual(q, response(200, c.kind, c.body)); err != nil || got != c.want {
			t.Errorf("%s of %.40q = %d, %v; want %d", c.expr, c.body, got, err, c.want)
		}
	}
}

func TestNoActual(t *testing.T) {
	e, err := cost.Actual("response.usage.total_tokens")
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*cost.Response{
		"no usage":     response(200, "application/json", `{}`),
		"null":         response(200, "application/json", `{"usage":null}`),
		"not JSON":     response(200, "text/html", "<html>"),
		"empty":        response(204, "", ""),
		"half":         response(200, "application/json", `{"usage":{"total_tokens":7`),
		"large":        response(200, "application/json", `{"usage":{"total_tokens":7},"pad":"`+strings.Repeat("x", cost.Largest)+`"}`),
		"negative":     response(200, "application/json", `{"usage":{"total_tokens":-7}}`),
		"empty stream": response(200, "text/event-stream", ": ping\n\n"),
		"large event":  response(200, "text/event-stream", `data: {"usage":{"total_tokens":7},"pad":"`+strings.Repeat("x", cost.Largest)+"\"}\n\n"),
	} {
		if n, err := e.Actual(&cost.Request{}, r); err == nil {
			t.Errorf("%s: %d", name, n)
		}
	}
	if !e.NeedsResponse() {
		t.Error("it needs the response")
	}
	if e, err := cost.Actual("int(header.x)"); err != nil || e.NeedsResponse() {
		t.Errorf("it needs the header alone: %v", err)
	}
}

// FuzzEstimate: whatever is written and sent, there is a number or an error.
func FuzzEstimate(f *testing.F) {
	f.Add("ceil(len(body)/4) + (body.max_tokens ?? 512)", prompt)
	f.Add("sum(map(body.messages, len(.content)))", prompt)
	f.Add("repeat('x', 1e6) != '' ? 1 : 0", "")
	f.Add("body?.a[0] ?? $env['len(body)']", "[[1]]")
	f.Fuzz(func(t *testing.T, text, body string) {
		e, err := cost.Estimate(text)
		if err != nil {
			return
		}
		n, err := e.Estimate(&cost.Request{Body: []byte(body), Size: int64(len(body)), Row: []byte(body)})
		if err == nil && n < 0 {
			t.Errorf("%q costs %d", text, n)
		}
	})
}

// FuzzEvents: a stream gives the same in one part as in many.
func FuzzEvents(f *testing.F) {
	f.Add("data: {\"usage\":{\"a\":1}}\r\n\r\ndata: {}\rdata:\n\n", 3)
	f.Fuzz(func(t *testing.T, body string, part int) {
		e, err := cost.Actual("response.usage.a")
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{"Content-Type": {"text/event-stream"}}
		whole, parts := cost.NewResponse(200, h), cost.NewResponse(200, h)
		fmt.Fprint(whole, body)
		part = max(1, part)
		for rest := body; rest != ""; rest = rest[min(part, len(rest)):] {
			fmt.Fprint(parts, rest[:min(part, len(rest))])
		}
		a, aErr := e.Actual(&cost.Request{}, whole)
		b, bErr := e.Actual(&cost.Request{}, parts)
		if a != b || (aErr == nil) != (bErr == nil) {
			t.Errorf("%d %v in one part, %d %v in parts of %d", a, aErr, b, bErr, part)
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	e, err := cost.Estimate("ceil(len(body)/4) + (body.max_tokens ?? 512)")
	if err != nil {
		b.Fatal(err)
	}
	q := &cost.Request{Body: []byte(prompt), Size: int64(len(prompt))}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Estimate(q); err != nil {
			b.Fatal(err)
		}
	}
}
