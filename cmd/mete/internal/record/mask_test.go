package record_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func secret(name string) bool { return strings.EqualFold(name, "key") }

func TestMaskURL(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"http://h/p", "http://h/p"},
		{"http://h/p?q=1&key=s3cr3t", "http://h/p?q=1&key=***"},
		{"http://h/p?key=a=b&q=key=x#key=y", "http://h/p?key=***&q=key=x#key=y"},
		{"http://h/p?k%65y=s3cr3t&KEY=s;key=t&monkey=m", "http://h/p?k%65y=***&KEY=***;key=***&monkey=m"},
		{"http://h/p?key&key=", "http://h/p?key&key="},
		{"/p?key=s", "/p?key=***"},
		{"http://u:p@ss@h/?a=b", "http://u:***@h/?a=b"},
		{"http://u@h/a:b@c", "http://u@h/a:b@c"},
		{"http://h?x=http://u:p@h", "http://h?x=http://u:p@h"},
		{"", ""},
		{"?", "?"},
	} {
		if got := record.MaskURL(tt.in, secret); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestSelectHeaders(t *testing.T) {
	h := http.Header{
		"Content-Type": {"a/b"}, "Set-Cookie": {"session=1"}, "X-Ratelimit-Remaining": {"3"}, "X-Request-Id": {"9f"},
		"Location": {"/p?key=s3cr3t"}, "Server": {"x"}, "Retry-After": {"2"}, "Authorization": {"Bearer x"},
	}
	want := []record.Header{
		{"content-type", []string{"a/b"}}, {"location", []string{"/p?key=***"}}, {"retry-after", []string{"2"}},
		{"x-ratelimit-remaining", []string{"3"}}, {"x-request-id", []string{"9f"}},
	}
	if got := record.SelectHeaders(h, secret); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if h.Get("Location") != "/p?key=s3cr3t" {
		t.Error("the response itself was changed")
	}
}
