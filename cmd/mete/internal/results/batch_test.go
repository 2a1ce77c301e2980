package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func TestBatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	id := []record.Header{{Name: "X-Request-Id", Values: []string{"req_9"}}}
	failed := func(kind record.Kind, phase, message string) *record.Error {
		return &record.Error{Kind: kind, Phase: phase, Message: message}
	}
	var file []byte
	for _, r := range []record.Record{
		{ID: "a", Key: 1, Status: 500, Error: failed(record.HTTP5xx, "response", "500")},
		{ID: "b", Key: 2, OK: true, Status: 200, Body: []byte("{\"n\":12345678901234567890,\n \"z\":\"<é>\",\"a\":1}"), Headers: id},
		{ID: "a", Key: 1, OK: true, Status: 200, Body: []byte(`{"again":true}`)}, // counts
		{ID: "c", Key: 3, Status: 400, Body: []byte(`{"type":"error","error":{"type":"invalid_request_error"}}`), Error: failed(record.HTTP4xx, "response", "400 Bad Request")},
		{ID: "d", Key: 4, Error: failed(record.Timeout, "request", "too \"slow\"")},
		{ID: "7", NumericID: true, Key: 5, OK: true, Status: 200, Body: []byte("plain\ntext")},
		{ID: "f", Key: 6, OK: true, Status: 200, BodyFile: "out.jsonl.mete/bodies/x", BodyBytes: 8},
		{ID: "g", Key: 7, OK: true, Status: 200, BodyFile: "out.jsonl.mete/bodies/gone", BodyBytes: 8},
		{ID: "h", Key: 8, Status: 200, Body: []byte("half"), Error: failed(record.Reset, "body", "reset")},
		{ID: "i", Key: 9, Status: 503, Error: failed(record.HTTP5xx, "response", "503 Service Unavailable")},
	} {
		file = record.AppendJSON(file, &r)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "out.jsonl.mete/bodies"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "out.jsonl.mete/bodies/x"), []byte(`{"f":1}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[Batch]string{
		OpenAIBatch: `{"id":"batch_req_0000000000000001","custom_id":"a","response":{"status_code":200,"request_id":"","body":{"again":true}},"error":null}
{"id":"batch_req_0000000000000002","custom_id":"b","response":{"status_code":200,"request_id":"req_9","body":{"n":12345678901234567890,"z":"<é>","a":1}},"error":null}
{"id":"batch_req_0000000000000003","custom_id":"c","response":{"status_code":400,"request_id":"","body":{"type":"error","error":{"type":"invalid_request_error"}}},"error":null}
{"id":"batch_req_0000000000000004","custom_id":"d","response":null,"error":{"code":"timeout","message":"too \"slow\""}}
{"id":"batch_req_0000000000000005","custom_id":"7","response":{"status_code":200,"request_id":"","body":"plain\ntext"},"error":null}
{"id":"batch_req_0000000000000006","custom_id":"f","response":{"status_code":200,"request_id":"","body":{"f":1}},"error":null}
{"id":"batch_req_0000000000000007","custom_id":"g","response":null,"error":{"code":"io","message":"no such file"}}
{"id":"batch_req_0000000000000008","custom_id":"h","response":null,"error":{"code":"reset","message":"reset"}}
{"id":"batch_req_0000000000000009","custom_id":"i","response":{"status_code":503,"request_id":"","body":null},"error":null}
`,
		AnthropicBatch: `{"custom_id":"a","result":{"type":"succeeded","message":{"again":true}}}
{"custom_id":"b","result":{"type":"succeeded","message":{"n":12345678901234567890,"z":"<é>","a":1}}}
{"custom_id":"c","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error"}}}}
{"custom_id":"d","result":{"type":"errored","error":{"type":"error","error":{"type":"timeout","message":"too \"slow\""}}}}
{"custom_id":"7","result":{"type":"succeeded","message":"plain\ntext"}}
{"custom_id":"f","result":{"type":"succeeded","message":{"f":1}}}
{"custom_id":"g","result":{"type":"errored","error":{"type":"error","error":{"type":"io","message":"no such file"}}}}
{"custom_id":"h","result":{"type":"errored","error":{"type":"error","error":{"type":"reset","message":"reset"}}}}
{"custom_id":"i","result":{"type":"errored","error":{"type":"error","error":{"type":"http_5xx","message":"503 Service Unavailable"}}}}
`,
	} {
		var out, notices bytes.Buffer
		if err := WriteBatch(&Input{Paths: []string{path}, Notices: &notices}, format, &out); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(out.String(), "open "+dir+"/out.jsonl.mete/bodies/gone: no such file or directory", "no such file")
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
		if !strings.Contains(notices.String(), "1 body could not be read") {
			t.Errorf("%s: notices %q", format, &notices)
		}
	}
}
