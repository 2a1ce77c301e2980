package template_test

import (
	"fmt"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

func Example() {
	spec := template.Spec{
		URL:  `https://geo.test/{{.country}}?q={{index . "full name"}}`,
		JSON: `{"name":{{index . "full name"}},"people":{{num .people}}}`,
	}
	t, err := template.Compile(spec, []string{"country", "full name", "people"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := t.Render([]string{"gb", `Brighton & "Hove"`, "277103"})
	fmt.Println(r.URL, err)
	fmt.Println(string(r.Body))
	// Output:
	// https://geo.test/gb?q=Brighton%20%26%20%22Hove%22 <nil>
	// {"name":"Brighton & \"Hove\"","people":277103}
}

func ExampleError() {
	_, err := template.Compile(template.Spec{URL: "https://geo.test/?q={{ .adress }}"}, []string{"id", "address"})
	fmt.Println(err)
	fmt.Println(err.(*template.Error).Detail())
	// Output:
	// --url:1:24: unknown column "adress" (did you mean "address"?): there are id, address
	//      1 | …{{ .adress }}
	//              ^
}
