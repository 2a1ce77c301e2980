package progress

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// pair is one key of a line that is made for programs.
type pair struct {
	key   string
	value any // string, int64, float64 or nil for unknown
}

// pairs are the keys of a progress line, the same in both forms. Durations are
// in seconds or milliseconds as the key says, shares from 0 to 1.
func pairs(now time.Time, v view) []pair {
	ps := []pair{{"time", now.UTC().Format(time.RFC3339)}}
	add := func(key string, value any) { ps = append(ps, pair{key, value}) }
	known := func(key string, ok bool, value any) {
		if !ok {
			value = nil
		}
		add(key, value)
	}
	known("name", v.Name != "", v.Name)
	add("state", state(v.Snapshot))
	add("elapsed_s", decimals(v.Elapsed.Seconds(), 0))
	add("done", v.Done)
	known("total", v.Total >= 0, v.Total)
	known("percent", v.permille >= 0, decimals(float64(v.permille)/10, 1))
	known("eta_s", v.eta >= 0, decimals(math.Ceil(v.eta.Seconds()), 0))
	add("resumed", v.Resumed)
	add("ok", v.OK)
	add("failed", v.Failed)
	add("throttled", v.Throttled)
	add("retries", v.Retries)
	add("rate", decimals(v.Rate, 2))
	known("limit", v.Limit != "", v.Limit)
	add("in_flight", int64(v.InFlight))
	add("concurrency", int64(v.Concurrency))
	known("bound", v.Bound != "", v.Bound)
	known("bound_share", v.Bound != "", decimals(v.BoundShare, 3))
	known("p50_ms", v.P50 > 0, decimals(v.P50.Seconds()*1e3, 1))
	known("p95_ms", v.P95 > 0, decimals(v.P95.Seconds()*1e3, 1))
	known("paused_s", v.PausedFor > 0, decimals(v.PausedFor.Seconds(), 1))
	known("pause_reason", v.PausedFor > 0 && v.PauseReason != "", v.PauseReason)
	known("diagnosis", v.Diagnosis != "", v.Diagnosis)
	return ps
}

func notePairs(now time.Time, text string) []pair {
	return []pair{{"time", now.UTC().Format(time.RFC3339)}, {"note", text}}
}

// state is the word for what the run is doing.
func state(s Snapshot) string {
	switch {
	case s.State != "":
		return s.State
	case s.PausedFor > 0:
		return "paused"
	}
	return "running"
}

// plain writes pairs as key=value, leaving out what is unknown.
func plain(ps []pair) string {
	var b strings.Builder
	for _, p := range ps {
		text := ""
		switch value := p.value.(type) {
		case nil:
			continue
		case string:
			text = value
			if text == "" || strings.ContainsAny(text, " =\"\\") {
				text = strconv.Quote(text)
			}
		case int64:
			text = strconv.FormatInt(value, 10)
		case float64:
			text = strconv.FormatFloat(value, 'f', -1, 64)
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.key + "=" + text)
	}
	return b.String() + "\n"
}

// object writes pairs as one line of JSON. What is unknown is null, so that
// every line has the same keys in the same order.
func object(ps []pair) string {
	var b strings.Builder
	for i, p := range ps {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(strconv.Quote(p.key) + ":")
		var text strings.Builder
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if enc.Encode(p.value) != nil {
			text.WriteString("null")
		}
		b.WriteString(strings.TrimSuffix(text.String(), "\n"))
	}
	return b.String() + "}\n"
}

func decimals(f float64, n int) float64 {
	scale := math.Pow10(n)
	return math.Round(f*scale) / scale
}
