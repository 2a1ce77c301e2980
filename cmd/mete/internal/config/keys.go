package config

import (
	"slices"
	"strings"
)

// key is one key of a mapping. The table of keys below is what the parser
// accepts and what Schema describes.
type key struct {
	name string
	// value is the kind of its value: a kind of mapping in known, or a word of
	// forms in schema.go.
	value string
	// def is the value that holds when the file says nothing, as it is written
	// in a file; empty if there is none.
	def     string
	example string
	doc     string
}

// What defaults and a provider have in common.
var (
	keyCost = key{"cost", "costs", "", `{tokens: "len(body)/4"}`,
		"What a request costs in other units than requests: an expression per unit, such as len(body)/4 + (body.max_tokens ?? 512), or estimate and actual."}
	keyConcurrency = key{"concurrency", "concurrency", "16", "32",
		"How many requests may be in flight at once: a whole number, unlimited, 0 to pause, or auto, which finds the number that keeps the provider busy without a queue."}
	keyTimeout  = key{"timeout", "timeout", "", "{attempt: 30s}", "The bounds of one attempt and of its phases."}
	keyRetry    = key{"retry", "retry", "", "{attempts: 2}", "When and how often a failed attempt is repeated."}
	keyMaxWait  = key{"max_wait", "time-or-none", "1m", "30s", "The longest that a call queues before it is refused. mete run waits for as long as it takes, and with a fallback sits out no longer pause."}
	keyMaxQueue = key{"max_queue", "bound", none, "2000", "How many calls may queue before one more is refused, or none for no bound. mete run has no bound."}
	keyClassify = key{"classify", "classify", "", "[{status: 529, as: overloaded}]", "What answers mean where their status does not say it, as rules of which the first that fits holds. Those of a provider take the place of those of defaults."}
	keyBreaker  = key{"breaker", "breaker", "", "{failures: 50%}", "When to stop calling a provider that fails, and for how long. There is none unless given."}
	keyLearn    = key{"headers_learn", "learn", "cap", "observe", "What becomes of the quotas that responses show: cap lets them hold requests back, follow also raises a limit again at once up to the configured one, observe only shows them, off ignores them. Retry-After counts in any case."}
	keyMaxPause = key{"max_pause", "time-or-none", "24h", "1h", "The longest pause asked for by the provider that mete run sits out, or none for no bound."}
)

// known are the keys of each kind of mapping, in the order in which they are
// shown.
var known = map[string][]key{
	"file": {
		{"version", "version", "", "1", "The version of the file format."},
		{"defaults", "defaults", "", "{concurrency: 8}", "What holds for every provider that does not say otherwise, and for rows without a provider."},
		{"run", "run", "", "{fsync: always}", "How mete run treats its input, its output and its end."},
		{"state", "text", "", "/var/lib/mete", "The folder that remembers across restarts what was used of long limits. It is the user's state folder unless named."},
		{"lanes", "lanes", "", "{urgent: {weight: 4}, bulk: {}}", "The orders of service at every provider, by name: rows choose one with lane. One without is in the first."},
		{"providers", "providers", "", "{api: {url: https://api.example.com}}", "The remote APIs by name."},
	},
	"defaults": {keyConcurrency, keyCost, keyTimeout, keyRetry, keyLearn, keyClassify, keyBreaker, keyMaxWait, keyMaxQueue, keyMaxPause},
	"run": {
		{"duplicate_ids", "duplicate_ids", "fail", "suffix", "A second row with an id: fail sends nothing, suffix gives it an id of its own, skip leaves it out."},
		{"on_change", "on_change", "fail", "rerun", "A row of a resumed run differs from what was sent for it: fail sends nothing, rerun sends it again, keep keeps the old answer."},
		{"fsync", "fsync", "1s", "always", "When records are forced to the disk: once in 1s, always each of them, or never, which leaves it to the system."},
		{"drain_timeout", "time", "30s", "5s", "What requests in flight get when a run is stopped, as by Ctrl-C."},
		{"max_line", "size", "16MiB", "64MiB", "The longest line of input, up to 1GiB."},
		{"allow_files", "truth", "false", "true", "Rows may name files to send with body_file: any file that you can read."},
		{"idempotency_key", "header", "Idempotency-Key", "X-Request-Key", "The header field that POST requests get, the same at each repetition, or off."},
	},
	"provider": {
		{"url", "url", "", "https://api.example.com/v1", "The base address. Paths of rows are resolved on it."},
		{"auth", "auth", "", `{header: Authorization, value: "Bearer ${API_KEY}"}`, "The credential that goes with every request to this provider, and to no other."},
		{"headers", "headers", "", `{user-agent: "acme/1.0 (ops@acme.example)"}`, "Header fields that go with every request."},
		keyConcurrency,
		{"rate", "rate", "", "50/s", "How many requests may start per period: 50/s, 500/m, 5000/h, 10000/d or 5/15s. 0 blocks; no rate or unlimited is no limit."},
		{"burst", "count", "1", "5", "How many due requests of rate may start together."},
		{"limits", "limits", "", "[50/s, {requests: 10000/d, window: calendar}]", "All limits of the provider. Every request keeps every one of them."},
		keyCost,
		keyTimeout,
		keyRetry,
		{"idempotent", "truth", "false", "true", "Repeating any request is safe, a POST too."},
		{"preset", "preset", "", "openai", "Whose dialect the provider's quota headers and errors are. It never sets a limit."},
		keyLearn, keyClassify, keyBreaker,
		{"fallback", "fallback", "", "[other]", "Providers to ask in its place, in order: while it asks to stay away for longer than max_wait, when a quota is used up, and when its attempts failed in a way that may be repeated."},
		keyMaxWait, keyMaxQueue, keyMaxPause,
	},
	"auth": {
		{"header", "word", "", "Authorization", "The header field that carries the value."},
		{"query", "word", "", "key", "The query parameter that carries the value, in place of a header."},
		{"value", "text", "", "Bearer ${API_KEY}", "The credential: ${VAR} or ${file:/path}, so that it does not stand in the file."},
	},
	"timeout": {
		{"connect", "time-or-none", "5s", "3s", "To dial and shake hands."},
		{"ttfb", "time-or-none", none, "20s", "From the end of the request to the first byte of the response."},
		{"idle", "time-or-none", none, "10s", "Between two reads of the body."},
		{"attempt", "time-or-none", "1m", "30s", "All of one attempt."},
	},
	"retry": {
		{"attempts", "count", "4", "2", "The largest number of attempts, the first included: 1 means no repetition."},
		{"on", "retry-on", "", "[connect, reset, 429, 503]", "What is repeated, of all that safely can be: connect, reset, timeout, rate_limited, 5xx and statuses. All of it unless given."},
		{"backoff", "backoff", "", "{base: 500ms, max: 30s}", "The wait before a repetition: random, up to a bound that doubles each time."},
		{"budget", "share", none, "20%", "The share of repetitions among all attempts that errors and time-outs may cause, or none for no bound."},
		{"keep_permit", "truth", "false", "true", "The request counts as in flight while it waits to be repeated."},
	},
	"breaker": {
		{"failures", "share", "", "50%", "The share of failed requests at which it opens: errors and answers of 5xx, not throttles."},
		{"window", "time", "10s", "30s", "The time over which requests are counted."},
		{"calls", "count", "10", "50", "How many there must be in it."},
		{"open", "time", "5s", "1m", "How long nothing is sent before one request tries again."},
		{"probes", "count", "1", "3", "How many such trials in a row must succeed."},
	},
	"lane": {
		{"weight", "weight", "1", "4", "The lane's share of what starts while others wait too, from 0.001 to 1000."},
		{"reserve", "share", "none", "20%", "The share of the permits that only this lane may use."},
		{"cap", "share", "none", "80%", "The largest share of the permits that the lane may use."},
		{"max_queue", "count", "", "200", "How many calls may queue in the lane, in place of the provider's max_queue. mete run has no bound."},
		{"max_wait", "time", "", "5s", "The longest that a call queues in the lane, in place of the provider's max_wait. mete run waits for as long as it takes."},
	},
	"rule": {
		{"status", "statuses", "", "[429, 503]", "The status of the answer, or several; any unless given."},
		{"jq", "text", "", `'.status == "OVER_QUERY_LIMIT"'`, "An expression that is true of the body. It sees JSON of up to 64KiB."},
		{"as", "kind", "", "rate_limited", "What the answer is: ok; rate_limited and overloaded pause the provider; http_5xx is repeated where that is safe; http_4xx and auth fail; quota_exhausted ends the provider."},
	},
	"cost": {
		{"estimate", "expression", "", "len(body)/4 + (body.max_tokens ?? 512)", "What a request is taken to cost before it is sent: an expression over body, row, method and url. A row's own cost goes before it."},
		{"actual", "expression", "", "response.usage.total_tokens", "What it did cost: an expression also over response, status and header. Without a result the estimate stands."},
	},
	"backoff": {
		{"base", "time", "500ms", "1s", "The bound of the first wait."},
		{"max", "time", "30s", "1m", "The longest wait."},
	},
	"adaptive": {
		{"auto", "truth", "", "true", "Find the number while requests are sent, from their latencies, failures and refusals."},
		{"algorithm", "algorithm", "knee", "failures", "knee keeps the queue at the provider short; failures leaves latencies aside; aimd adds one and cuts by a tenth."},
		{"min", "count", "1", "4", "The least number."},
		{"max", "count", "1000", "64", "The largest number."},
		{"initial", "count", "20", "8", "The number to begin with, as from mete plan; 20, or max if that is less."},
	},
	"limit": {
		{"name", "name", "", "daily", "What statistics and errors call the limit; its text unless named."},
		{requests, "quota", "", "50/s", "How many requests may start per period. A calendar window takes 10000/d or 300000/month. Any other word in its place is a unit, as in tokens: 90000/m."},
		{"burst", "count", "1", "5", "How many due requests may start together; for a bucket its capacity."},
		{"oversize", "oversize", "", "alone", "alone admits a request that costs more than the limit holds by itself, and the next ones wait for the rest; without it such a row is an error."},
		{"bucket", "truth", "false", "true", "The provider documents a token bucket: it refills at the rate and holds burst."},
		{"window", "window", "sliding", "calendar", "sliding: in no period of that length more than the number. calendar: a count per day or month that starts afresh with it."},
		{"budget", "truth", "false", "true", "A calendar window is what you want to spend: when it is spent, rows go to the fallback, or the run stops and says when it opens again. For money take a unit that is whole, such as microusd."},
		{"zone", "word", "UTC", "America/Los_Angeles", "The time zone of a calendar window."},
		{"margin", "time", "", "20ms", "What a sliding window is longer at this end, for the way to the provider; 1/150 of the period, 5ms to 50ms, unless given."},
	},
}

// knows reports whether a kind of mapping has a key of that name.
func knows(kind, name string) bool {
	return slices.ContainsFunc(known[kind], func(k key) bool { return k.name == name })
}

// names are the keys of a kind of mapping.
func names(kind string) []string {
	all := make([]string, len(known[kind]))
	for i, k := range known[kind] {
		all[i] = k.name
	}
	return all
}

const requests = "requests"

// notYet are the keys, and in a few places the values, that a later mete will
// know. They are refused by name, so that nobody believes them to be in force.
// A feature that is built removes its word here and reads it.
var notYet = map[string][]string{
	"file":     {"store", "clients", "serve", "hosts"},
	"defaults": {"cache", "hosts"},
	"provider": {"cache", "hosts", "lanes"},
}

// refuse reports a word that is not available yet.
func (d *decoder) refuse(n *node, kind, word string) bool {
	if !slices.Contains(notYet[kind], word) {
		return false
	}
	d.errorf(n, "%q is not available yet", word)
	return true
}

// section holds the values of a mapping by key. A key that was refused or has
// no value is present with a nil node, so that it is not also called missing.
type section map[string]*node

// has reports whether the key was written at all.
func (s section) has(key string) bool { _, ok := s[key]; return ok }

// section checks the keys of a mapping. where is its path in the file, for
// messages. It returns nil when n is no mapping.
func (d *decoder) section(n *node, kind, where string) section {
	return d.sectionWith(n, kind, where, func(pair) bool { return false })
}

// sectionWith is section for a mapping with keys that only claim knows.
func (d *decoder) sectionWith(n *node, kind, where string, claim func(pair) bool) section {
	if where == "" {
		if n.kind != mapping {
			d.errorf(n, "the file must be a mapping with version and providers, not %s", n.kind)
			return nil
		}
	} else if !d.is(n, mapping, where, known[kind][0].name+": ...") {
		return nil
	}
	s := section{}
	first := map[string]int{}
	for _, p := range n.pairs {
		if p.key.kind == refused {
			continue
		}
		key := p.key.text
		if line, seen := first[key]; seen {
			d.errorf(p.key, "%q is already on line %d", key, line)
			continue
		}
		first[key] = p.key.line
		switch {
		case knows(kind, key):
			s[key] = nil
			switch p.value.kind {
			case empty:
				d.errorf(p.key, "%q has no value: give one or remove the line", key)
			case refused:
			default:
				s[key] = p.value
			}
		case d.refuse(p.key, kind, key):
		case claim(p):
		default:
			d.errorf(p.key, "unknown key %q%s%s", key, inside(where), d.advice(kind, key))
		}
	}
	return s
}

func inside(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

// advice names the key that was probably meant, or where the key belongs.
func (d *decoder) advice(kind, key string) string {
	if kind == "limit" && key == "rate" {
		return " (write requests: 50/s)"
	}
	if best := nearest(key, slices.Concat(names(kind), notYet[kind])); best != "" {
		return ` (did you mean "` + best + `"?)`
	}
	for _, other := range []struct{ kind, place string }{
		{"file", "the top of the file"}, {"provider", "a provider"}, {"limit", "an entry of limits"},
		{"cost", "cost"}, {"retry", "retry"}, {"timeout", "timeout"}, {"auth", "auth"}, {"run", "run"}, {"backoff", "retry.backoff"}, {"rule", "a rule of classify"}, {"breaker", "breaker"}, {"lane", "a lane"},
	} {
		if knows(other.kind, key) {
			return " (it belongs in " + other.place + ")"
		}
	}
	return " (known here: " + strings.Join(names(kind), ", ") + ")"
}

// nearest returns the word that differs from s by a slip or two, or "".
func nearest(s string, words []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, least := "", 3
	for _, w := range words {
		if strings.Contains(w, " ") {
			continue
		}
		// Three letters may differ by one slip, six by two.
		if n := distance(fold(s), fold(w)); n < least && n*3 <= max(len(w), 3) {
			best, least = w, n
		}
	}
	return best
}

// distance is the optimal string alignment distance (Damerau, 1964): the
// letters to insert, remove, change or swap with a neighbour. Keys longer than
// any known one are not measured.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return 99
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
