package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func runLearn(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := newLearnCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestLearnResponse(t *testing.T) {
	const now = "--now=2026-03-10T12:00:00Z"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"curl": {
			"HTTP/2 403 \r\nRetry-After: 60\r\nx-ratelimit-limit: 5000\r\nx-ratelimit-remaining: 4990\r\nx-ratelimit-resource: core\r\n\r\n" +
				`{"message":"You have exceeded a secondary rate limit."}`,
			[]string{now, "--provider=github"},
			`{"retry_after_ms":60000,"quotas":[{"name":"core","unit":"requests","limit":5000,"remaining":4990,"window_ms":3600000,"reset_at":null}],"throttled":true,"terminal":false}`,
		},
		"redirect, bare line feeds, two lines of one field": {
			"HTTP/1.1 302 Found\nRetry-After: 5\n\nHTTP/1.1 429 Too Many Requests\nRetry-After: 7\nretry-after: 9\n",
			[]string{now},
			`{"retry_after_ms":9000,"quotas":[],"throttled":true,"terminal":false}`,
		},
		"folded line": {
			"HTTP/1.1 429 Slow\r\nRetry-After: Tue, 10 Mar 2026\r\n 12:00:30 GMT\r\n\r\n",
			[]string{now},
			`{"retry_after_ms":30000,"quotas":[],"throttled":true,"terminal":false}`,
		},
		"JSON": {
			`{"status":200,"request_time":"2026-03-10T12:00:00Z","headers":{"RateLimit":["\"<a>\";r=1;t=30"]}}`,
			nil,
			`{"retry_after_ms":null,"quotas":[{"name":"<a>","unit":"requests","limit":null,"remaining":1,"window_ms":null,"reset_at":"2026-03-10T12:00:30Z"}],"throttled":false,"terminal":false}`,
		},
		"nothing to learn": {
			"HTTP/1.1 200 OK\n", nil,
			`{"retry_after_ms":null,"quotas":[],"throttled":false,"terminal":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := runLearn(t, c.stdin, c.args...)
			if err != nil || got != c.want+"\n" {
				t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
			}
		})
	}
}

func TestLearnBadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.json")
	if err := os.WriteFile(file, []byte(`[{"id":"a","status":429},{"status":429}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"empty":      {" \n", nil, "standard input is empty"},
		"text":       {"\nhello", nil, "standard input:2: not a status line"},
		"bad status": {"HTTP/1.1 abc", nil, "standard input:1: not a status line"},
		"bad header": {"HTTP/1.1 200 OK\r\nA: b\r\nRetry After: 3\r\n\r\n", nil, "standard input:3: not a header line"},
		"bad JSON":   {"{\"status\":429,\n \"headers\":{,}}", nil, "standard input:2:13: "},
		"bad type":   {`{"status":"429"}`, nil, `standard input:1:15: "status": a value that is a string`},
		"bad header type": {`{"status":429,"headers":{"Retry-After":3}}`, nil,
			"a header is a string or an array of strings"},
		"no status":      {`{}`, nil, "status 0 is not an HTTP status"},
		"bad now":        {"HTTP/1.1 200 OK\n", []string{"--now", "noon"}, "--now \"noon\""},
		"no file":        {"", []string{"--vectors", file + ".none"}, "no such file"},
		"vector no id":   {"", []string{"--vectors", file}, "response 2: no id"},
		"not an array":   {"{}", []string{"--vectors", "-"}, "must not be a single object"},
		"unknown option": {"", []string{"--vector", file}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runLearn(t, c.stdin, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("output %q, error %v, want %q", out, err, c.want)
			}
		})
	}
}

// The program must give what the vectors of the library expect.
func TestLearnVectors(t *testing.T) {
	const file = "../../quota/testdata/quota_headers.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		ID     string         `json:"id"`
		Expect map[string]any `json:"expect"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	out, err := runLearn(t, "", "--vectors", file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(vectors) {
		t.Fatalf("%d lines for %d vectors", len(lines), len(vectors))
	}
	for i, v := range vectors {
		var got map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		v.Expect["id"] = v.ID
		delete(v.Expect, "note")
		if _, ok := v.Expect["terminal"]; !ok {
			v.Expect["terminal"] = false
		}
		if !reflect.DeepEqual(got, v.Expect) {
			t.Errorf("got %s, want %v", lines[i], v.Expect)
		}
	}
}
