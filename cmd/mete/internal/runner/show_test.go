package runner_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// Whatever the way a secret came into a request, what is shown of it is not.
func TestShowMasks(t *testing.T) {
	t.Setenv("SHORT", "zq")
	h, err := config.ParseHeader("X-Mine: ${SHORT}", func(string) (string, bool) { return "zq", true })
	if err != nil {
		t.Fatal(err)
	}
	o := &runner.Options{Other: spec(), Headers: []config.Header{h}, UserAgent: "mete", Mask: func(s string) string { return s }}
	u, _ := url.Parse("http://me:zq@h.test/?token=zq&q=1&api_key=zq")
	row := &input.Row{ID: "a\x1b[2J", Line: 7, Method: "POST", URL: u, Body: []byte("a\x1b[31m\u009b\r\n\tb"), HasBody: true}
	row.Header = map[string][]string{"Cookie": {"zq"}, "X-Access-Token": {"zq", "zq"}, "X-Secret-Id": {"zq"}, "X-Shown": {"yes"}}
	text, err := runner.Show(o, row)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "zq") || strings.ContainsAny(text, "\x1b\u009b\r") {
		t.Errorf("shown: %q", text)
	}
	for _, want := range []string{"X-Shown: yes\n", "line 7,", "q=1", "X-Mine: ***\n", "X-Access-Token: ***\nX-Access-Token: ***\n", "\n\tb"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

func TestLeast(t *testing.T) {
	o := runner.Options{Other: spec()}
	if d, by := o.Least(100, nil); d != 0 || by != "" {
		t.Errorf("without a limit: %v by %q", d, by)
	}
	o.Other.Gate.Limits = []mete.Limit{
		mete.Per(10, time.Second),
		{Name: "tokens", Unit: "tokens", N: 100, Per: time.Minute},
		{N: 5, Calendar: "day"},
	}
	for _, tt := range []struct {
		rows  int64
		costs map[string]int64
		want  time.Duration
	}{
		{0, nil, 0}, {1, nil, 0}, {11, nil, time.Second}, {11, map[string]int64{"tokens": 101}, time.Minute},
	} {
		if d, by := o.Least(tt.rows, tt.costs); d != tt.want || by == "" {
			t.Errorf("%d rows, %v: %v by %q, want %v", tt.rows, tt.costs, d, by, tt.want)
		}
	}
}
