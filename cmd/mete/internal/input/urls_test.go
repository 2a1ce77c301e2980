package input

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A list exported from Windows (hahwul/deadfinder#268,
// ytdl-org/youtube-dl#26813, sitespeedio/sitespeed.io#189, curl/trurl#138).
func TestURLsFromWindows(t *testing.T) {
	rows, bad := read(t, "\xEF\xBB\xBFhttp://h/1\r\n\r\n   # note\r\n\thttp://h/2  \r\nhttp://h/3#frag", Options{})
	if len(bad) > 0 {
		t.Fatal(bad[0])
	}
	want := []struct {
		target string
		line   int
	}{{"/1", 1}, {"/2", 4}, {"/3", 5}}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, w := range want {
		if rows[i].Target != w.target || rows[i].Line != w.line || rows[i].Method != "GET" {
			t.Errorf("row %d: %s %s on line %d, want %v", i, rows[i].Method, rows[i].Target, rows[i].Line, w)
		}
	}
	if f := rows[2].URL.Fragment; f != "frag" {
		t.Errorf("fragment %q", f)
	}
}

func TestURLsFromWindowsAsJSONL(t *testing.T) {
	rows, bad := read(t, "\xEF\xBB\xBF{\"url\":\"http://h/1\"}\r\n\r\n  {\"url\":\"http://h/2\"}  \r\n{\"url\":\"http://h/3#frag\"}", Options{})
	if len(bad) > 0 || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), bad)
	}
	for i, line := range []int{1, 3, 4} {
		if rows[i].Line != line {
			t.Errorf("row %d is on line %d, want %d", i, rows[i].Line, line)
		}
	}
}

// Bad lines are errors of their own row, none is requested, and good lines
// among them go on (hahwul/deadfinder#268).
func TestBadURLs(t *testing.T) {
	tests := []struct {
		line, want string
		column     int
	}{
		{"ftp://h/x", `scheme "ftp" is not supported`, 1},
		{"file:///etc/passwd", `scheme "file" is not supported`, 1},
		{"mailto:a", `scheme "mailto" is not supported`, 1},
		{"http:///x", "no host", 8},
		{"http://:80/x", "no host", 8},
		{"http://", "no host", 8},
		{"http:/h/x", "did you mean http://h/x?", 1},
		{"example.test/x", "missing scheme: did you mean https://example.test/x?", 1},
		{"localhost:8080/x", "did you mean http://localhost:8080/x?", 1},
		{"127.0.0.1:8080", "did you mean http://127.0.0.1:8080?", 1},
		{"//h/x", "did you mean https://h/x?", 1},
		{"/x", "needs --base-url", 1},
		{"http://h:99999/", "port 99999 is out of range", 10},
		{"http://h:0/", "port 0 is out of range", 10},
		{"http://h:x/", "the port is not a number", 10},
		{"http://h/%zz", "bad escape", 10},
		{"http://h/%4", "bad escape", 10},
		{"http://h/?q=100%", "bad escape", 16},
		{"http://h/a b", "space in the URL: write %20", 11},
		{"name http://h/", "space in the URL", 5},
		{"GET  http://h/a\tb", "control character 0x09", 16},
		{"http://h/\x00", "control character 0x00", 10},
		{"http://h/\x7f", "control character 0x7f", 10},
		{"\x1b[31mhttp://h/", "control character 0x1b", 1},
		{"http://h/caf\xe9", "not UTF-8", 13},
		{"http://[::1/", "host of the URL is not valid", 8},
		{"http://a^b/", "host of the URL is not valid", 8},
		{"CONNECT http://h/", "CONNECT", 1},
	}
	for _, test := range tests {
		rows, bad := read(t, "http://h/ok1\n"+test.line+"\nhttp://h/ok2\n", Options{Format: "urls"})
		if len(rows) != 2 || len(bad) != 1 {
			t.Errorf("%q: %d rows and %d errors, want 2 and 1", test.line, len(rows), len(bad))
			continue
		}
		e := bad[0]
		if !strings.Contains(e.Message, test.want) || e.Line != 2 || e.Column != test.column {
			t.Errorf("%q: %v, want %q at column %d", test.line, e, test.want, test.column)
		}
	}
}

func TestMethodInURLs(t *testing.T) {
	for line, want := range map[string]string{
		"GET http://h/": "GET", "  post\thttp://h/": "POST", "PURGE   http://h/": "PURGE", "M-SEARCH http://h/": "M-SEARCH", "http://h/": "GET",
	} {
		if row := one(t, line, Options{Format: "urls"}); row.Method != want || row.Target != "/" {
			t.Errorf("%q: %s %s", line, row.Method, row.Target)
		}
	}
}

// What was written is what is sent; only bytes that no request line may hold
// are escaped.
func TestTarget(t *testing.T) {
	for text, want := range map[string]string{
		"http://h":                         "/",
		"http://h?":                        "/?",
		"http://h?a":                       "/?a",
		"http://h/?":                       "/?",
		"HTTP://h/a":                       "/a",
		"http://h:8080/a//b/../c":          "/a//b/../c",
		"http://h//a":                      "//a",
		"http://h/%7e%2F%41":               "/%7e%2F%41",
		"http://h/!'()*[]@:$&+,;=~":        "/!'()*[]@:$&+,;=~",
		"http://h/?q=a+b%20c&d=[1]'\"<>|`": "/?q=a+b%20c&d=[1]'\"<>|`",
		"http://h/é?é=é":                   "/%C3%A9?%C3%A9=%C3%A9",
		"http://h/?a=http://x/?b":          "/?a=http://x/?b",
		"http://h/#a#b":                    "/",
	} {
		row := one(t, text, Options{Format: "urls"})
		if row.Target != want || row.URL.RequestURI() != want {
			t.Errorf("%s: target %s, URL gives %s, want %s", text, row.Target, row.URL.RequestURI(), want)
		}
	}
}

// A password never reaches URL, messages or details; net/url's own errors quote
// the whole text.
func TestUserinfo(t *testing.T) {
	row := one(t, "http://us%20er:pa%2Fss@h/x", Options{})
	if user, password, ok := (&http.Request{Header: row.Header}).BasicAuth(); user != "us er" || password != "pa/ss" || !ok {
		t.Errorf("basic auth %q %q %v", user, password, ok)
	}
	if row.URL.User != nil || row.URL.String() != "http://h/x" {
		t.Errorf("URL %s", row.URL)
	}
	row = one(t, `{"url":"http://u:p@h/","headers":{"authorization":"Bearer x"}}`, Options{})
	if got := row.Header.Get("Authorization"); got != "Bearer x" {
		t.Errorf("the row's own header gives way to the URL: %q", got)
	}

	for _, line := range []string{
		"ftp://user:hunter2@h/", "http://user:hunter2@h:99999/", "http://user:hunter2@h/%zz", "http://user:hunter2@/",
		"http://user:hunter2%zz@h/", "http://user:hunter2/@h/", "http://user:hun ter2@h/", "user:hunter2@h/x", "//user:hunter2@h/x",
		"http://user:hunter2^@h/", "http:user:hunter2@h/", "user:hunter2/x@h/", "GET user:hunter2@h/x", "http://h/?api_key=hunter2&q=%zz",
		`{"url":"http://user:hunter2@h:99999/"}`, `{"url":1,"headers":{"Authorization":"Bearer hunter2"}}`, `{"url":1,"headers":{"x-api-key":["hunter2"]}}`,
		`{"headers":{"Authorization":"hunter2\n"},"url":"http://h"}`, `{"url":1,"headers":{"cookie":"hunter2`,
	} {
		_, bad := read(t, line, Options{})
		if len(bad) != 1 {
			t.Errorf("%s: %d errors", line, len(bad))
			continue
		}
		for _, secret := range []string{"hunter2", "ter2"} {
			if got := bad[0].Error() + bad[0].Detail(); strings.Contains(got, secret) {
				t.Errorf("%s: the password shows in\n%v\n%s", line, bad[0], bad[0].Detail())
			}
		}
	}
}

func TestBaseURL(t *testing.T) {
	base := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, test := range []struct{ base, text, want string }{
		{"https://api.test/v1", "/v1/chat", "https://api.test/v1/chat"},
		{"https://api.test/v1", "chat", "https://api.test/v1/chat"},
		{"https://api.test/v1/", "chat?x=1#f", "https://api.test/v1/chat?x=1#f"},
		{"https://api.test/geo/json", "?q=a%20b", "https://api.test/geo/json?q=a%20b"},
		{"https://api.test/json?lang=de", "?q=1", "https://api.test/json?q=1&lang=de"},
		{"https://api.test/json?lang=de", "x", "https://api.test/json/x?lang=de"},
		{"https://api.test:8443", "x", "https://api.test:8443/x"},
		{"https://api.test", "http://other/x", "http://other/x"},
		{"https://api.test", "/get?u=http://other/x", "https://api.test/get?u=http://other/x"},
		{"https://api.test/v1", "get?u=http://other/x", "https://api.test/v1/get?u=http://other/x"},
		{"https://api.test/v1", "/proxy/http://other/x", "https://api.test/proxy/http://other/x"},
	} {
		row := one(t, test.text, Options{Format: "urls", BaseURL: base(test.base)})
		if got := row.URL.String(); got != test.want {
			t.Errorf("%s on %s: %s, want %s", test.text, test.base, got, test.want)
		}
	}
	o := Options{ResolveProvider: func(name string) (*url.URL, bool) {
		return base("https://" + name + ".test/v1"), name == "geo"
	}}
	if row := one(t, `{"url":"/x","provider":"geo"}`, o); row.URL.String() != "https://geo.test/x" || row.Provider != "geo" {
		t.Errorf("%s %s", row.URL, row.Provider)
	}
	_, bad := read(t, `{"url":"/x","provider":"gee"}`, o)
	if len(bad) != 1 || bad[0].Message != `provider "gee" is not in the configuration` || bad[0].Column != 24 {
		t.Error(bad)
	}
	if _, err := Open(nil, strings.NewReader(""), Options{BaseURL: base("/x")}); err == nil {
		t.Error("a base URL without a host is accepted")
	}
}
