package progress

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
)

// summaryJSON is the form of a Summary on disk. Durations are in the unit that
// the key names.
type summaryJSON struct {
	Version    int              `json:"v"`
	Name       string           `json:"name"`
	End        string           `json:"end"`
	DurationS  float64          `json:"duration_s"`
	Rows       rowsJSON         `json:"rows"`
	Statuses   map[string]int64 `json:"statuses"`
	Providers  []providerJSON   `json:"providers"`
	Waits      []waitJSON       `json:"waits"`
	Diagnosis  string           `json:"diagnosis"`
	LatencyMS  quantilesJSON    `json:"latency_ms"`
	WaitMS     quantilesJSON    `json:"wait_ms"`
	WaitCounts []bucketJSON     `json:"wait_buckets"`
	WaitsApart []histogramJSON  `json:"wait_histograms"`
	Errors     []errorJSON      `json:"errors"`
	Output     *string          `json:"output"`
	Resume     *string          `json:"resume"`
}

type rowsJSON struct {
	Total      *int64 `json:"total"`
	Done       int64  `json:"done"`
	OK         int64  `json:"ok"`
	Failed     int64  `json:"failed"`
	Resumed    int64  `json:"resumed"`
	Cached     int64  `json:"cached"`
	Duplicates int64  `json:"duplicates"`
}

type providerJSON struct {
	Name        string              `json:"name"`
	Starts      int64               `json:"starts"`
	OK          int64               `json:"ok"`
	Failed      int64               `json:"failed"`
	Throttled   int64               `json:"throttled"`
	Retries     int64               `json:"retries"`
	Concurrency int                 `json:"concurrency"`
	Limit       *string             `json:"limit"`
	LimitPerS   *float64            `json:"limit_per_s"`
	Achieved    *float64            `json:"achieved_per_s"`
	Share       *float64            `json:"achieved_share"` // of the limit
	LatencyMS   quantilesJSON       `json:"latency_ms"`
	Costs       map[string]costJSON `json:"costs,omitempty"` // by unit
}

type costJSON struct {
	Estimate  int64    `json:"est"`
	True      int64    `json:"act"`
	Unknown   int64    `json:"unknown"`
	Limit     *string  `json:"limit"`
	LimitPerS *float64 `json:"limit_per_s"`
	Achieved  *float64 `json:"achieved_per_s"`
}

type waitJSON struct {
	Bound string  `json:"bound"`
	S     float64 `json:"total_s"`
	Share float64 `json:"share"`
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
	LE    *float64 `json:"le_s"` // null in the last one: no bound
	Count int64    `json:"count"`
}

type histogramJSON struct {
	Bound   string        `json:"bound"`
	MS      quantilesJSON `json:"wait_ms"`
	Buckets []bucketJSON  `json:"buckets"`
}

type errorJSON struct {
	Kind    string `json:"kind"`
	Count   int64  `json:"count"`
	Example string `json:"example"`
}

// WriteJSON writes s for programs: one object on one line.
func (s *Summary) WriteJSON(w io.Writer) error {
	out := summaryJSON{
		Version:   1,
		Name:      s.Name,
		End:       s.End,
		DurationS: decimals(s.Duration.Seconds(), 3),
		Rows: rowsJSON{
			Done: s.Rows.Done, OK: s.Rows.OK, Failed: s.Rows.Failed,
			Resumed: s.Rows.Resumed, Cached: s.Rows.Cached, Duplicates: s.Rows.Duplicates,
		},
		Statuses:   map[string]int64{},
		Providers:  []providerJSON{},
		Waits:      []waitJSON{},
		Diagnosis:  s.Diagnosis,
		LatencyMS:  milliseconds(s.Latency),
		WaitMS:     milliseconds(s.Wait),
		WaitCounts: bucketsJSON(s.WaitBuckets),
		WaitsApart: []histogramJSON{},
		Errors:     []errorJSON{},
		Output:     orNull(s.Output, s.Output != ""),
		Resume:     orNull(s.Resume, s.Resume != ""),
	}
	out.Rows.Total = orNull(s.Rows.Total, s.Rows.Total >= 0)
	for code, n := range s.Statuses {
		out.Statuses[strconv.Itoa(code)] = n
	}
	for _, p := range s.Providers {
		rate, limit := p.Achieved(), p.LimitPerSecond
		limited := limit > 0 && !math.IsInf(limit, 0)
		j := providerJSON{
			Name: p.Name, Starts: p.Starts, OK: p.OK, Failed: p.Failed, Throttled: p.Throttled,
			Retries: p.Retries, Concurrency: p.Concurrency, LatencyMS: milliseconds(p.Latency),
			Limit:     orNull(p.Limit, p.Limit != ""),
			LimitPerS: orNull(limit, limited),
			Achieved:  orNull(decimals(rate, 4), rate > 0),
		}
		if limited && rate > 0 {
			j.Share = orNull(decimals(rate/limit, 6), true)
		}
		for _, c := range p.Costs {
			if j.Costs == nil {
				j.Costs = map[string]costJSON{}
			}
			rate := c.achieved(p.Sending)
			j.Costs[c.Unit] = costJSON{
				c.Estimate, c.True, c.Unknown, orNull(c.Limit, c.Limit != ""),
				orNull(c.LimitPerSecond, c.LimitPerSecond > 0), orNull(decimals(rate, 4), rate > 0),
			}
		}
		out.Providers = append(out.Providers, j)
	}
	totals := map[string]time.Duration{}
	for _, w := range s.Waits {
		totals[Printable(w.Bound)] += max(w.Total, 0)
	}
	for _, sh := range shares(s.Waits) {
		out.Waits = append(out.Waits, waitJSON{sh.bound, decimals(totals[sh.bound].Seconds(), 3), decimals(sh.part, 4)})
	}
	for _, h := range s.WaitsApart {
		out.WaitsApart = append(out.WaitsApart, histogramJSON{Printable(h.Bound), milliseconds(h.Quantiles), bucketsJSON(h.Buckets)})
	}
	for _, e := range s.top() {
		out.Errors = append(out.Errors, errorJSON(e))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

func bucketsJSON(bs []Bucket) []bucketJSON {
	out := []bucketJSON{}
	for _, b := range bs {
		out = append(out, bucketJSON{orNull(b.AtMost.Seconds(), b.AtMost > 0), b.Count})
	}
	return out
}

func orNull[T any](v T, known bool) *T {
	if !known {
		return nil
	}
	return &v
}

func milliseconds(q Quantiles) quantilesJSON {
	ms := func(d time.Duration) float64 { return decimals(d.Seconds()*1e3, 3) }
	return quantilesJSON{q.Count, ms(q.Mean), ms(q.P50), ms(q.P90), ms(q.P95), ms(q.P99), ms(q.Max)}
}
