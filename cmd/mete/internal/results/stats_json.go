package results

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/progress"
)

// The form of Stats for programs. Durations are in the unit that the key names;
// what is not known is null.
type statsJSON struct {
	Version   int      `json:"v"`
	Files     []string `json:"files"`
	Runs      int64    `json:"runs"`
	FirstAt   *string  `json:"first_at"`
	LastEnd   *string  `json:"last_end"`
	DurationS float64  `json:"duration_s"`
	totalsJSON
	By     *string      `json:"by"`
	Groups []totalsJSON `json:"groups"`
}

type totalsJSON struct {
	Name      *string             `json:"name,omitempty"`
	Records   int64               `json:"records"`
	OK        int64               `json:"ok"`
	Failed    int64               `json:"failed"`
	Statuses  map[string]int64    `json:"statuses"` // "0": no answer
	Attempts  int64               `json:"attempts"`
	Retries   int64               `json:"retries"`
	Throttled int64               `json:"throttled"`
	Rate      rateJSON            `json:"rate"`
	LatencyMS quantilesJSON       `json:"latency_ms"`
	Buckets   []bucketJSON        `json:"latency_buckets"`
	Waits     []waitJSON          `json:"waits"`
	Costs     map[string]costJSON `json:"costs,omitempty"` // by unit
	BodyBytes int64               `json:"body_bytes"`
	Truncated int64               `json:"truncated"`
	Errors    []kindJSON          `json:"errors"`
}

type rateJSON struct {
	Mean       *float64 `json:"mean_per_s"`
	MostSecond int64    `json:"most_in_1s"`
	MostMinute int64    `json:"most_in_1m"`
}

type quantilesJSON struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

type bucketJSON struct {
	LE    float64 `json:"le_ms"`
	Count int64   `json:"count"`
}

type costJSON struct {
	Estimate float64 `json:"est"`
	True     float64 `json:"act"`
}

type waitJSON struct {
	Bound string  `json:"bound"`
	S     float64 `json:"total_s"`
	Share float64 `json:"share"`
}

type kindJSON struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example"`
	File    string `json:"file"`
	Line    int64  `json:"line"`
}

// WriteJSON writes s for programs: one object on one line.
func (s *Stats) WriteJSON(w io.Writer) error {
	out := statsJSON{
		Version: 1, Files: s.Files, Runs: s.Runs,
		FirstAt: timeOf(s.FirstAt, math.MaxInt64), LastEnd: timeOf(s.LastEnd, math.MinInt64),
		DurationS: decimals(s.duration().Seconds(), 3), totalsJSON: s.Total.json(), Groups: []totalsJSON{},
	}
	if s.By != NoGroup {
		by := string(s.By)
		out.By = &by
	}
	for _, g := range s.sorted() {
		j := g.json()
		j.Name = &g.Name
		out.Groups = append(out.Groups, j)
	}
	e := json.NewEncoder(&diskWriter{w})
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

func (t *Totals) json() totalsJSON {
	j := totalsJSON{
		Records: t.Records, OK: t.OK, Failed: t.Records - t.OK, Statuses: map[string]int64{},
		Attempts: t.Attempts, Retries: t.Retries, Throttled: t.Throttled,
		LatencyMS: quantilesOf(t.latency.quantiles()), Buckets: []bucketJSON{}, Waits: []waitJSON{},
		BodyBytes: t.Bytes, Truncated: t.Truncated, Errors: []kindJSON{},
	}
	for code, n := range t.Statuses {
		j.Statuses[strconv.Itoa(code)] = n
	}
	most := t.starts.most(time.Second, time.Minute)
	j.Rate.MostSecond, j.Rate.MostMinute = most[0], most[1]
	if mean := t.starts.mean(); mean > 0 {
		mean = decimals(mean, 4)
		j.Rate.Mean = &mean
	}
	for _, b := range t.latency.buckets() {
		j.Buckets = append(j.Buckets, bucketJSON{decimals(b.AtMost.Seconds()*1e3, 3), b.Count})
	}
	sum := t.waited()
	for _, bound := range t.bounds() {
		d := t.Waits[bound]
		j.Waits = append(j.Waits, waitJSON{bound, decimals(d, 3), decimals(d/sum, 4)})
	}
	for unit, c := range t.Costs {
		if j.Costs == nil {
			j.Costs = map[string]costJSON{}
		}
		j.Costs[unit] = costJSON{decimals(c.Estimate, 3), decimals(c.True, 3)}
	}
	for _, k := range kinds(t.Kinds) {
		v := t.Kinds[k]
		j.Errors = append(j.Errors, kindJSON{k, v.Count, v.Example, v.File, v.Line})
	}
	return j
}

func quantilesOf(q progress.Quantiles) quantilesJSON {
	ms := func(d time.Duration) float64 { return decimals(d.Seconds()*1e3, 3) }
	return quantilesJSON{q.Count, ms(q.Mean), ms(q.P50), ms(q.P90), ms(q.P95), ms(q.P99), ms(q.Max)}
}

func timeOf(ms, unknown int64) *string {
	if ms == unknown {
		return nil
	}
	s := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

func decimals(f float64, n int) float64 {
	p := math.Pow10(n)
	return math.Round(f*p) / p
}
