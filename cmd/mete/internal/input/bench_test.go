package input

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// repeat reads text again and again without holding copies of it.
type repeat struct {
	text string
	at   int
	left int
}

func (r *repeat) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.text[r.at:])
	if r.at += n; r.at == len(r.text) {
		r.at = 0
		r.left--
	}
	return n, nil
}

func bench(b *testing.B, text string, rows int) {
	b.SetBytes(int64(len(text) / rows))
	measure(b, &repeat{text: text, left: b.N/rows + 1}, Options{})
}

func measure(b *testing.B, in io.Reader, o Options) {
	s, err := Open(nil, in, o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.Next(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkURLs(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "https://api.example.test/v1/items/%d?lang=en&fields=name\n", i)
	}
	bench(b, text.String(), 10_000)
}

func BenchmarkJSONL(b *testing.B) {
	for _, size := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			var text strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&text, `{"url":"https://api.example.test/v1/items","body":{"i":%d,"text":"%s"}}`+"\n", i, strings.Repeat("word ", size/5))
			}
			bench(b, text.String(), 1000)
		})
	}
}

func BenchmarkScan(b *testing.B) {
	path := b.TempDir() + "/rows.jsonl"
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&text, `{"id":"row-%d","url":"https://api.example.test/v1/items/%d","cost":{"tokens":812}}`+"\n", i, i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := Scan(b.Context(), []string{path}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "rows/s")
}

// The same requests as of BenchmarkURLs, from tables and plain lines.
func BenchmarkTemplate(b *testing.B) {
	spec := &template.Spec{URL: "https://api.example.test/v1/items/{{.item}}?lang={{.lang}}&fields=name"}
	var csv, tsv, jsonl, lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&csv, "%d,en\n", i)
		fmt.Fprintf(&tsv, "%d\ten\n", i)
		fmt.Fprintf(&jsonl, `{"item":%d,"lang":"en"}`+"\n", i)
		fmt.Fprintf(&lines, "%d\n", i)
	}
	for _, c := range []struct {
		format, header, text string
		spec                 *template.Spec
	}{
		{"csv", "item,lang\n", csv.String(), spec},
		{"tsv", "item\tlang\n", tsv.String(), spec},
		{"jsonl", "", jsonl.String(), spec},
		{"lines", "", lines.String(), &template.Spec{URL: "https://api.example.test/v1/items/{{.line}}?lang=en&fields=name"}},
	} {
		b.Run(c.format, func(b *testing.B) {
			in := io.MultiReader(strings.NewReader(c.header), &repeat{text: c.text, left: b.N/10_000 + 1})
			measure(b, in, Options{Format: c.format, Template: c.spec})
		})
	}
}
