package input_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/template"
)

func Example() {
	list := `# two good rows and a bad one
https://geo.test/v1?q=Rue+de+Rivoli
geo.test/v1?q=Strand
POST https://geo.test/v1/batch
`
	source, err := input.Open([]string{"-"}, strings.NewReader(list), input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()
	for row, err := range source.Rows() {
		if err != nil {
			fmt.Println("bad:", err)
			continue
		}
		fmt.Println(row.Line, row.Method, row.URL.Host, row.Target)
	}
	// Output:
	// 2 GET geo.test /v1?q=Rue+de+Rivoli
	// bad: stdin:3:1: missing scheme: did you mean https://geo.test/v1…?
	// 4 POST geo.test /v1/batch
}

func Example_table() {
	table := "id,city,zip\na1,\"Washington, D.C.\",20001\na2,Brighton & Hove,BN1\na3,Oslo,0150,x\n"
	source, err := input.Open(nil, strings.NewReader(table), input.Options{
		Format: "csv",
		Template: &template.Spec{
			URL:  "https://geo.test/v1?q={{.city}}",
			JSON: `{"zip":{{.zip}},"label":"{{.city}} ({{.zip}})"}`,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()
	for row, err := range source.Rows() {
		if err != nil {
			fmt.Println("bad:", err)
			continue
		}
		fmt.Println(row.ID, row.Method, row.Target)
		fmt.Println("  ", string(row.Body))
		fmt.Println("  ", string(row.Meta))
	}
	// Output:
	// a1 POST /v1?q=Washington%2C%20D.C.
	//    {"zip":"20001","label":"Washington, D.C. (20001)"}
	//    {"id":"a1","city":"Washington, D.C.","zip":"20001"}
	// a2 POST /v1?q=Brighton%20%26%20Hove
	//    {"zip":"BN1","label":"Brighton & Hove (BN1)"}
	//    {"id":"a2","city":"Brighton & Hove","zip":"BN1"}
	// bad: stdin:4:14: 4 fields where the header has 3: put a field that holds the delimiter in quotes
}

func ExampleScan() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.jsonl")
	os.WriteFile(path, []byte(`{"id":"a","url":"https://geo.test/1","cost":{"tokens":800}}
{"id":"b","url":"https://geo.test/2","cost":{"tokens":12}}
{"id":"a","url":"https://geo.test/3"}
`), 0o600)

	sum, err := input.Scan(context.Background(), []string{path}, input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sum.Rows, "rows,", sum.Costs["tokens"], "tokens")
	for _, e := range sum.Errors {
		fmt.Println("line", e.Line, e.Message)
	}
	// Output:
	// 2 rows, 812 tokens
	// line 3 id 'a' on lines 1 and 3
}
