package stub

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
)

// Usage is what a request cost in tokens, as OpenAI's answers tell it. The stub
// makes it up from the body alone: a token for every four bytes of it, and of
// the max_tokens in it a share from 0 to 60 %, by the hash of the body. So the
// same body always costs the same, and 30 % of max_tokens on average.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// usageOf is what a body costs. sum is its hash, length its whole size.
func usageOf(body []byte, sum [32]byte, length int64) Usage {
	var v struct {
		Most float64 `json:"max_tokens"`
	}
	_ = json.Unmarshal(body, &v) // what is no JSON asks for nothing
	u := Usage{Prompt: (length + 3) / 4}
	share := 0.6 * float64(binary.BigEndian.Uint32(sum[:])) / math.MaxUint32
	if v.Most > 0 && v.Most < 1e12 {
		u.Completion = int64(v.Most * share)
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// largestBody is how much of a body is read for its max_tokens.
const largestBody = 1 << 20

// tokens are the quotas in tokens and what was spent of them. A request costs
// at its arrival what its answer will tell.
type tokens struct {
	limits  []Limit
	spent   []spending // in the order of time
	total   int64
	most    []int64 // in any half-open window, by limit
	over    []int64
	refused int64
}

type spending struct{ at, cost int64 }

func (k *tokens) clear() {
	*k = tokens{limits: k.limits, spent: k.spent, most: make([]int64, len(k.limits)), over: make([]int64, len(k.limits))}
}

// take charges a request that arrived at t, or refuses it and tells how long it
// would have to wait.
func (k *tokens) take(t, cost int64) (wait time.Duration, ok bool) {
	i := len(k.spent)
	for i > 0 && k.spent[i-1].at > t {
		i--
	}
	for _, l := range k.limits {
		free := l.N - cost
		for j := i - 1; j >= 0 && k.spent[j].at > t-int64(l.Per); j-- {
			if free -= k.spent[j].cost; free < 0 {
				wait = max(wait, time.Duration(k.spent[j].at+int64(l.Per)-t))
				break
			}
		}
		if l.N < cost {
			wait = max(wait, l.Per)
		}
	}
	if wait > 0 {
		k.refused++
		k.note(t, cost, i)
		return wait, false
	}
	k.spent = append(k.spent, spending{})
	copy(k.spent[i+1:], k.spent[i:])
	k.spent[i] = spending{t, cost}
	k.total += cost
	k.note(t, 0, i+1)
	return 0, true
}

// note looks at the windows that end at t or at a later arrival and hold one at
// t; before is how many of spent did not come later. Beside them cost was asked
// for and refused: it counts, for the caller has sent it.
func (k *tokens) note(t, cost int64, before int) {
	for n, l := range k.limits {
		for end := before; end <= len(k.spent); end++ {
			last := t
			if end > before {
				last = k.spent[end-1].at
			}
			if last-int64(l.Per) >= t {
				break
			}
			sum := cost
			for j := end - 1; j >= 0 && k.spent[j].at > last-int64(l.Per); j-- {
				sum += k.spent[j].cost
			}
			k.most[n] = max(k.most[n], sum)
			if sum > l.N {
				k.over[n]++
			}
		}
	}
}

// forget drops what no window can see any more.
func (k *tokens) forget(before int64) {
	i := 0
	for i < len(k.spent) && k.spent[i].at < before {
		i++
	}
	k.spent = append(k.spent[:0], k.spent[i:]...)
}

// TokenAudit is what was spent of quotas in tokens.
type TokenAudit struct {
	// Total is what accepted requests cost, Rejected how many requests were
	// refused for want of tokens.
	Total    int64 `json:"total"`
	Rejected int64 `json:"rejected"`
	// Max is the most in any half-open sliding window of that length, refused
	// requests included, Over how many arrivals ended one above the limit.
	Max    map[string]int64 `json:"max"`
	Over   map[string]int64 `json:"over"`
	Limits map[string]int64 `json:"limits"`
}

func (k *tokens) audit() *TokenAudit {
	if len(k.limits) == 0 {
		return nil
	}
	a := &TokenAudit{Total: k.total, Rejected: k.refused, Max: map[string]int64{}, Over: map[string]int64{}, Limits: map[string]int64{}}
	for i, l := range k.limits {
		name := l.Per.String()
		a.Max[name], a.Over[name], a.Limits[name] = k.most[i], k.over[i], l.N
	}
	return a
}
