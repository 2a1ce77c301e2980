package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func Example() {
	line := record.AppendJSON(nil, &record.Record{
		ID: "addr-17", Key: record.Sum("addr-17"), Hash: 0xbeef, OK: true, Line: 18, Status: 200,
		Provider: "geo", Method: "GET", URL: "https://geo.example/v1?q=10+Downing&key=***",
		Body: []byte("{\n  \"lat\": 51.50\n}\n"), Bound: "limit:50/s", Attempts: 1,
	})
	r, err := record.Decode(line)
	fmt.Println(r.Encoding, err)
	fmt.Printf("%q\n", r.Body)
	// Output:
	// json-folded <nil>
	// "{\n  \"lat\": 51.50\n}\n"
}

// typical is a row as a geocoder or a chat model answers it: two attempts,
// 1.2 KB of JSON.
func typical() *record.Record {
	at := time.Date(2026, 11, 29, 10, 0, 0, 100e6, time.UTC)
	return &record.Record{
		ID: "addr-17", Key: 0x0123456789abcdef, Hash: 0xfedcba9876543210, OK: true, Line: 18,
		Status: 200, Provider: "geo-a", Method: "GET", URL: "https://geo-a.example/v1?q=10+Downing&key=***",
		Headers: []record.Header{
			{Name: "content-type", Values: []string{"application/json"}},
			{Name: "x-request-id", Values: []string{"9f86d081884c7d65"}},
		},
		Body:  []byte(`{"results":[` + strings.Repeat(`{"name":"10 Downing Street","lat":51.5033635,"lng":-0.1276248},`, 17) + `null]}`),
		Bound: "pause",
		Waits: record.Waits{
			Queue: 2031400 * time.Microsecond, Limiter: 40 * time.Millisecond, Pause: 1980 * time.Millisecond,
			Semaphore: 11200 * time.Microsecond, Store: 200 * time.Microsecond, Conn: 3100 * time.Microsecond,
		},
		Latency: 212700 * time.Microsecond, TTFB: 180200 * time.Microsecond, Total: 2295200 * time.Microsecond,
		Attempts: 2,
		Tries: []record.Try{
			{N: 1, Provider: "geo-a", At: at, Status: 429, Limiter: 20 * time.Millisecond, Took: 48 * time.Millisecond, RetryAfter: 2 * time.Second, Error: record.RateLimited},
			{N: 2, Provider: "geo-a", At: at.Add(2 * time.Second), Status: 200, Took: 212700 * time.Microsecond},
		},
		Costs: []record.Cost{{Unit: "requests", Estimate: 1, True: 2}, {Unit: "tokens", Estimate: 800.5, True: 764}},
		At:    at, End: at.Add(2295 * time.Millisecond), Run: "01JD", Meta: []byte(`{"address":"10 Downing St"}`),
	}
}

// checkLine checks what must hold for every line that is ever written.
func checkLine(t interface{ Fatalf(string, ...any) }, line []byte) {
	if n := bytes.IndexByte(line, '\n'); n != len(line)-1 {
		t.Fatalf("line feed at %d of %d: %q", n, len(line), line)
	}
	if bytes.IndexByte(line, '\r') >= 0 {
		t.Fatalf("carriage return in %q", line)
	}
	if !utf8.Valid(line) || !json.Valid(line) {
		t.Fatalf("not JSON: %q", line)
	}
}

func TestGolden(t *testing.T) {
	r := typical()
	r.Body = []byte(`{"a":1}`)
	const want = `{"v":1,"id":"addr-17","key":"0123456789abcdef","hash":"fedcba9876543210","ok":true,"line":18,"status":200,` +
		`"provider":"geo-a","method":"GET","url":"https://geo-a.example/v1?q=10+Downing&key=***",` +
		`"headers":{"content-type":["application/json"],"x-request-id":["9f86d081884c7d65"]},` +
		`"body":{"a":1},"body_encoding":"json","body_bytes":7,"body_file":null,"truncated":false,"bound":"pause",` +
		`"waits_ms":{"queue":2031.4,"limiter":40,"pause":1980,"semaphore":11.2,"store":0.2,"backoff":0,"conn":3.1},` +
		`"latency_ms":212.7,"ttfb_ms":180.2,"total_ms":2295.2,"attempts":2,"tries":[` +
		`{"n":1,"provider":"geo-a","at":"2026-11-29T10:00:00.100Z","status":429,"limiter_ms":20,"sem_ms":0,"pause_ms":0,"conn_ms":0,"ms":48,"retry_after_ms":2000,"error":"rate_limited"},` +
		`{"n":2,"provider":"geo-a","at":"2026-11-29T10:00:02.100Z","status":200,"limiter_ms":0,"sem_ms":0,"pause_ms":0,"conn_ms":0,"ms":212.7,"error":null}],` +
		`"cost":{"requests":{"est":1,"act":2},"tokens":{"est":800.5,"act":764}},"error":null,` +
		`"at":"2026-11-29T10:00:00.100Z","end":"2026-11-29T10:00:02.395Z","meta":{"address":"10 Downing St"},"run":"01JD"}` + "\n"
	if got := string(record.AppendJSON(nil, r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Bodies come back byte for byte, whatever they hold: projectdiscovery/httpx#813,
// zmap/zgrab2#197, golang/go#16282 and gnolang/tx-indexer#237 lost bytes or
// wrote broken JSON.
func TestBodyBytesSurvive(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, tt := range []struct {
		body string
		want record.Encoding
	}{
		{"\xff\xfe\x00\x41", record.Base64},
		{"caf\xe9", record.Base64},
		{"line\nnext\u2028and\u2029NUL\x00 \x7f \r\n\t\"\\", record.Text},
		{"", record.Text},
		{"\ufeff{}", record.Text}, // a BOM is no white space
		{`{"n":12345678901234567890,"b":1e400,"a":"<&>","a":2}`, record.JSON},
		{" [1 ,\t2] ", record.JSON},
		{"{\"u\":\"\u2028\\u0000\\ud800\"}", record.JSON},
		{"{\n  \"a\": \"x\\n\\t y\",\n\t\"b\": [ ]\r\n}\r\n", record.JSONFolded},
		{"\n\n{}\t\t\n", record.JSONFolded},
		{"{\"a\":\"\xff\"}", record.Base64},
		{"{\"a\":\"\n\"}", record.Text}, // a raw line feed in a string is no JSON
		{`{"a":01}`, record.Text},
		{`{"a":1}{"a":2}`, record.Text},
		{`{"a":1,}`, record.Text},
		{`00123`, record.Text},
		{`123`, record.Text},
		{`null`, record.Text},
		{`"x"`, record.Text},
		{deep, record.Text},
	} {
		line := record.AppendJSON(nil, &record.Record{ID: "x", Body: []byte(tt.body)})
		checkLine(t, line)
		r, err := record.Decode(line)
		if err != nil {
			t.Errorf("%.40q: %v", tt.body, err)
			continue
		}
		if r.Encoding != tt.want || string(r.Body) != tt.body || r.BodyBytes != int64(len(tt.body)) {
			t.Errorf("%.40q: came back as %s %.40q, %d bytes; want %s", tt.body, r.Encoding, r.Body, r.BodyBytes, tt.want)
		}
		if tt.want == record.JSON && !bytes.Contains(line, []byte(`"body":`+tt.body+`,`)) {
			t.Errorf("%q does not stand in the line as it is: %s", tt.body, line)
		}
	}
}

func TestNoBody(t *testing.T) {
	for _, r := range []*record.Record{
		{ID: "x", BodyBytes: 77},
		{ID: "x", BodyBytes: 2 << 20, BodyFile: "out.jsonl.mete/bodies/ab/cd/abcd", Body: []byte("ignored")},
	} {
		line := record.AppendJSON(nil, r)
		checkLine(t, line)
		got, err := record.Decode(line)
		if err != nil || got.Body != nil || got.BodyBytes != r.BodyBytes || got.BodyFile != r.BodyFile {
			t.Errorf("%v, %+v", err, got)
		}
	}
}

func TestEveryBodySurvives(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"{", "}", "[", "]", ":", ",", " ", "\n", "\r", "\t", "\t ", "\"a\"", "\"\\n\"", "\"", "1", "-0.5e3", "null",
		"true", "\xff", "\x00", "é", "\u2028", "\\", "{\"a\":1}", "[\n\t1,\r\n 2]", `{"v":1,"id":`,
	})
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(strings.Join(rapid.SliceOf(piece).Draw(t, "body"), ""))
		line := record.AppendJSON([]byte{}, &record.Record{ID: "x", Body: body})
		checkLine(t, line)
		r, err := record.Decode(line)
		if err != nil || !bytes.Equal(r.Body, body) {
			t.Fatalf("%q came back as %q, %v", body, r.Body, err)
		}
		if h, err := record.ReadHead(line); err != nil || string(h.ID) != "x" {
			t.Fatalf("head of %q: %+v, %v", line, h, err)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	ms := rapid.Map(rapid.Int64Range(0, 1e12), func(us int64) time.Duration { return time.Duration(us) * time.Microsecond })
	at := rapid.Map(rapid.Int64Range(1, 4e12), func(ms int64) time.Time { return time.UnixMilli(ms).UTC() })
	word := rapid.String()
	try := rapid.Custom(func(t *rapid.T) record.Try {
		return record.Try{
			N: rapid.IntRange(1, 9).Draw(t, "n"), Provider: word.Draw(t, "p"), At: at.Draw(t, "at"),
			Status: rapid.IntRange(0, 599).Draw(t, "status"), Limiter: ms.Draw(t, "l"), Semaphore: ms.Draw(t, "s"),
			Pause: ms.Draw(t, "pause"), Conn: ms.Draw(t, "c"), Took: ms.Draw(t, "ms"), RetryAfter: ms.Draw(t, "ra"),
			Error: rapid.SampledFrom(append(record.Kinds(), "")).Draw(t, "kind"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := &record.Record{
			ID: word.Draw(t, "id"), Key: rapid.Uint64().Draw(t, "key"), Hash: rapid.Uint64().Draw(t, "hash"),
			OK: rapid.Bool().Draw(t, "ok"), Line: rapid.Int64().Draw(t, "line"), File: word.Draw(t, "file"),
			Status: rapid.IntRange(0, 599).Draw(t, "status"), Provider: word.Draw(t, "provider"),
			Method: word.Draw(t, "method"), URL: word.Draw(t, "url"), Truncated: rapid.Bool().Draw(t, "cut"),
			Bound: word.Draw(t, "bound"), Latency: ms.Draw(t, "lat"), TTFB: ms.Draw(t, "ttfb"), Total: ms.Draw(t, "total"),
			Waits: record.Waits{
				Queue: ms.Draw(t, "q"), Limiter: ms.Draw(t, "l"), Pause: ms.Draw(t, "p"), Semaphore: ms.Draw(t, "s"),
				Breaker: ms.Draw(t, "b"), Store: ms.Draw(t, "st"), Backoff: ms.Draw(t, "bo"), Conn: ms.Draw(t, "c"),
			},
			Attempts: rapid.IntRange(0, 9).Draw(t, "attempts"),
			Tries:    rapid.SliceOfN(try, 1, 3).Draw(t, "tries"),
			Costs:    []record.Cost{{Unit: word.Draw(t, "unit"), Estimate: rapid.Float64().Draw(t, "est"), True: rapid.Float64().Draw(t, "act")}},
			Headers:  []record.Header{{Name: "x", Values: []string{word.Draw(t, "h1"), word.Draw(t, "h2")}}},
			At:       at.Draw(t, "at"), End: at.Draw(t, "end"), Run: word.Draw(t, "run"), Meta: []byte(`[1, 2]`),
			Error: &record.Error{Kind: record.DNS, Phase: word.Draw(t, "phase"), Message: word.Draw(t, "message"), Retryable: true},
		}
		line := record.AppendJSON(nil, r)
		checkLine(t, line)
		got, err := record.Decode(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("\ngot  %+v\nwant %+v", got, r)
		}
		h, err := record.ReadHead(line)
		if err != nil || string(h.ID) != r.ID || h.Key != r.Key || h.Hash != r.Hash || h.OK != r.OK || h.Status != r.Status {
			t.Fatalf("head %+v, %v", h, err)
		}
	})
}

// Whatever a caller puts in, the line is valid.
func TestHostileFields(t *testing.T) {
	r := &record.Record{
		ID: "a\nb\xff", Method: "\x00", URL: "http://h/\xe9\u2028", NumericID: true,
		Headers: []record.Header{{Name: "X-\xff\"", Values: []string{"caf\xe9\r\n"}}, {Name: "y"}},
		Costs:   []record.Cost{{Unit: "\"", Estimate: inf(), True: -inf()}},
		Meta:    []byte("{\"a\":\r\n1}"), At: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
		Error: &record.Error{Kind: "new\nkind", Message: strings.Repeat("\"", 9)},
		Total: -time.Second,
	}
	checkLine(t, record.AppendJSON(nil, r))
	for _, meta := range []string{"", "{", "1 2", "\xff", "\"\n\""} {
		r.Meta = []byte(meta)
		checkLine(t, record.AppendJSON(nil, r))
	}
	for _, id := range []string{"", "-", "01", "1.5", "12345678901234567890", "-0"} {
		line := record.AppendJSON(nil, &record.Record{ID: id, NumericID: true, DupOf: id, NumericDupOf: true})
		checkLine(t, line)
		if got, err := record.Decode(line); err != nil || got.ID != id || got.DupOf != id || got.NumericDupOf != (got.NumericID && id != "") {
			t.Errorf("id %q: %+v, %v", id, got, err)
		}
	}
}

func inf() float64 { v := 1e308; return v * 10 }

func TestDecodeTakesOtherShapes(t *testing.T) {
	r, err := record.Decode([]byte("{\"status\":200 , \"id\" : 2,\"new_field\":{\"a\":[1]},\"body\": [1, 2] ,\"body_encoding\":\"json\"}"))
	if err != nil || r.ID != "2" || !r.NumericID || !r.OK || r.Key != record.SumID("2") || string(bytes.TrimSpace(r.Body)) != "[1, 2]" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, tt := range []struct{ line, want string }{
		{``, "column 1: want {"},
		{`[]`, "column 1: want {"},
		{`{}`, "no id"},
		{`{"v":2,"id":"a"}`, "version 2"},
		{`{"id":"a","id":"b"}`, "twice"},
		{`{"id":null}`, "null"},
		{`{"id":1.5}`, `field "id"`},
		{`{"id":"a"} x`, "column 12: want nothing"},
		{`{"id":"a"`, "column 10: want a comma or }"},
		{`{"id":"a`, "column 7: want a complete value"},
		{`{"id":"a",}`, "column 11: want a name"},
		{`{"id":"a","key":"12"}`, "16 hex digits"},
		{`{"id":"a","body":{}}`, "without body_encoding"},
		{`{"id":"a","body":"!","body_encoding":"base64"}`, "base64"},
		{`{"id":"a","body":1,"body_encoding":"zip"}`, "unknown body_encoding"},
		{"{\"id\":\"\xff\"}", "not UTF-8"},
	} {
		if _, err := record.Decode([]byte(tt.line)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.line, err, tt.want)
		}
	}
}

// A torn record with another glued to it is not one record, although it begins
// and ends like one: NousResearch/hermes-agent#112575.
func TestHeadSeesGluedRecords(t *testing.T) {
	line := record.AppendJSON(nil, typical())
	for cut := range len(line) - 1 {
		glued := slices.Concat(line[:cut], line)
		if _, err := record.ReadHead(glued); (err == nil) != (cut == 0) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if _, err := record.ReadHead(line[:cut]); err == nil {
			t.Fatalf("fragment of %d bytes passes", cut)
		}
		if !record.Torn(line[:cut]) {
			t.Fatalf("fragment of %d bytes is not seen as torn", cut)
		}
		zeroed := bytes.Clone(line)
		zeroed[cut] = 0
		if _, err := record.ReadHead(zeroed); err == nil {
			t.Fatalf("NUL at %d passes", cut)
		}
	}
	if _, err := record.ReadHead(line); err != nil {
		t.Fatal(err)
	}
	if record.Torn([]byte("dear diary")) {
		t.Error("a diary is no torn record")
	}
}

func TestHeadsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := typical()
		r.ID = rapid.String().Draw(t, "id")
		r.OK = rapid.Bool().Draw(t, "ok")
		r.File = rapid.String().Draw(t, "file")
		r.Status = rapid.IntRange(0, 999).Draw(t, "status")
		line := record.AppendJSON(nil, r)
		quick, err1 := record.ReadHead(line)
		full, err2 := record.FullHead(line)
		if err1 != nil || err2 != nil || !reflect.DeepEqual(quick, full) {
			t.Fatalf("%+v %v, %+v %v", quick, err1, full, err2)
		}
	})
}

func TestAppendAllocations(t *testing.T) {
	r, dst := typical(), make([]byte, 0, 8<<10)
	if n := testing.AllocsPerRun(100, func() { dst = record.AppendJSON(dst[:0], r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	line := bytes.Clone(dst)
	if n := testing.AllocsPerRun(100, func() { record.ReadHead(line) }); n != 0 {
		t.Errorf("ReadHead: %v allocations", n)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	for _, bb := range []struct {
		name string
		body []byte
	}{
		{"no body", nil},
		{"JSON 1.1 KB", typical().Body},
		{"text 1 KB", bytes.Repeat([]byte("Lorem ipsum\n"), 85)},
		{"binary 1 KB", bytes.Repeat([]byte{0xff, 0xfe}, 512)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			r, dst := typical(), []byte(nil)
			r.Body = bb.body
			for b.Loop() {
				dst = record.AppendJSON(dst[:0], r)
			}
		})
	}
}

func BenchmarkReadHead(b *testing.B) {
	line := record.AppendJSON(nil, typical())
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		record.ReadHead(line)
	}
}

func BenchmarkDecode(b *testing.B) {
	line := record.AppendJSON(nil, typical())
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		record.Decode(line)
	}
}

func TestValueAndDuplicate(t *testing.T) {
	r := &record.Record{ID: "b", OK: true, Value: []byte(`{"lat":51.5,"n":12345678901234567890}`), DupOf: "a", Fallback: 2, Cache: "hit"}
	line := record.AppendJSON(nil, r)
	checkLine(t, line)
	got, err := record.Decode(line)
	if err != nil || string(got.Value) != string(r.Value) || got.DupOf != "a" || got.Fallback != 2 || got.Cache != "hit" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"{", "1\n2", "nan"} {
		line := record.AppendJSON(nil, &record.Record{ID: "b", Value: []byte(bad)})
		checkLine(t, line)
		if bytes.Contains(line, []byte(`"value"`)) {
			t.Errorf("%q was written: %s", bad, line)
		}
	}
}
