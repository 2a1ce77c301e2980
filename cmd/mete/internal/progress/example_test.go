package progress_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

// A run shows its progress while it works, whatever standard error is, and a
// summary when it ends.
func Example() {
	o := progress.Detect(os.Stdout, "auto", os.Getenv) // os.Stderr in earnest
	o.Mode = progress.None                             // no dates in an example
	o.Snapshot = func() progress.Snapshot {
		return progress.Snapshot{Name: "urls.txt", Total: 400, Done: 400, OK: 400}
	}
	p := progress.New(o)
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(context.Background()) })

	p.Note("geo-a paused for 2 s by Retry-After")
	var latency progress.Latency
	for range 400 {
		latency.Record(80 * time.Millisecond)
	}

	p.Close()
	wg.Wait()
	s := progress.Summary{
		Name: "urls.txt", End: "finished", Duration: 20 * time.Second,
		Rows: progress.Rows{Total: 400, Done: 400, OK: 400},
		Providers: []progress.Provider{{
			Name: "geo-a", Starts: 400, OK: 400, Concurrency: 4,
			Limit: "20/s", LimitPerSecond: 20, Sending: 19960 * time.Millisecond,
		}},
		Waits:     []progress.Wait{{Bound: "limit:20/s", Total: 58 * time.Second}},
		Latency:   latency.Quantiles(),
		Diagnosis: "20/s set the pace, as it should: more permits change nothing.",
		Output:    "out.jsonl",
	}
	if err := s.WriteText(os.Stdout, 80); err != nil {
		fmt.Println(err)
	}
	// Output:
	// geo-a paused for 2 s by Retry-After
	// urls.txt: finished, 400 rows in 20.0 s
	//
	//   rows       ok 400 · failed 0
	//   attempts   400 · retries 0 · 429 0
	//   rate       19.99/s of 20/s = 99.95 %
	//   latency    p50 80 ms · p90 80 ms · p99 80 ms · max 80 ms
	//   bound      limit:20/s 100%
	//              20/s set the pace, as it should: more permits change nothing.
	//
	//   results    out.jsonl
}
