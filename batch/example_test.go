package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
)

// Send a stream of any length through a gate, in flat memory.
func ExampleMap() {
	geocoder, err := mete.New(mete.Config{Name: "geocoder", Concurrency: 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer geocoder.Close()
	lookup := func(_ context.Context, city string) (int, error) {
		if city == "" {
			return 0, errors.New("no city")
		}
		return len(city), nil // a call of the API
	}
	cities := slices.Values([]string{"Oslo", "", "Lisbon"})
	for r := range batch.Map(context.Background(), geocoder, cities, lookup, batch.Ordered(1000)) {
		fmt.Printf("%d %q: %d %v\n", r.Index, r.In, r.Out, r.Err)
	}
	// Output:
	// 0 "Oslo": 4 <nil>
	// 1 "": 0 no city
	// 2 "Lisbon": 6 <nil>
}

// Rows of a provider that is paused do not hold up those of another.
func ExampleMapBy() {
	gates := map[string]*mete.Gate{}
	for _, host := range []string{"slow.test", "fast.test"} {
		g, err := mete.New(mete.Config{Name: host, Concurrency: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer g.Close()
		gates[host] = g
	}
	gates["slow.test"].Pause(50 * time.Millisecond) // as after a Retry-After

	rows := slices.Values([]string{"slow.test/1", "slow.test/2", "slow.test/3", "fast.test/1", "fast.test/2"})
	host := func(row string) string { h, _, _ := strings.Cut(row, "/"); return h }
	var order []string
	for r := range batch.MapBy(context.Background(),
		func(row string) *mete.Gate { return gates[host(row)] }, rows,
		func(_ context.Context, row string) (string, error) { return row, nil }) {
		order = append(order, host(r.In))
	}
	fmt.Println(order)
	// Output: [fast.test fast.test slow.test slow.test slow.test]
}

// Leaving the loop stops everything: the first failure ends the work.
func ExampleMap_firstError() {
	boom := errors.New("boom")
	numbers := func(yield func(int) bool) {
		for i := 0; yield(i); i++ { // endless
		}
	}
	for r := range batch.Map(context.Background(), nil, numbers, func(_ context.Context, n int) (int, error) {
		if n == 3 {
			return 0, boom
		}
		return n * n, nil
	}, batch.Ordered(10)) {
		if r.Err != nil {
			fmt.Println(r.In, r.Err)
			break
		}
		fmt.Println(r.In, r.Out)
	}
	// Output:
	// 0 0
	// 1 1
	// 2 4
	// 3 boom
}

// A call that panics is one failed row, not the end of the program.
func ExamplePanicsAsErrors() {
	words := slices.Values([]string{"a", "", "b"})
	for r := range batch.Map(context.Background(), nil, words, func(_ context.Context, s string) (byte, error) {
		return s[0], nil
	}, batch.Ordered(0), batch.PanicsAsErrors()) {
		if p, ok := errors.AsType[*batch.PanicError](r.Err); ok {
			fmt.Printf("row %d panicked: %v\n", r.Index, p.Value)
			continue
		}
		fmt.Printf("row %d: %c\n", r.Index, r.Out)
	}
	// Output:
	// row 0: a
	// row 1 panicked: runtime error: index out of range [0] with length 0
	// row 2: b
}
