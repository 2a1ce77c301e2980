package quota

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// readStructured reads RateLimit and RateLimit-Policy, which since draft 08 of
// draft-ietf-httpapi-ratelimit-headers are Lists of RFC 9651, and the twins
// that Atlassian calls Beta-.
func (s *sheet) readStructured() {
	for _, family := range []string{"ratelimit", "beta-ratelimit"} {
		s.readPolicies(family, s.fields[family+"-policy"])
		s.readLimits(family, s.fields[family])
	}
}

func (s *sheet) readPolicies(family string, lines []string) {
	for _, item := range parseList(lines) {
		q, hasQ := natural(item, "q")
		w, _ := natural(item, "w")
		window := time.Duration(decimal{whole: uint64(w)}.times(uint64(time.Second)))
		if n, ok := item.Value.(int64); ok { // drafts 03 to 07: 100;w=60
			if n > 0 && window > 0 {
				s.policies = append(s.policies, policy{countOf(n), window})
			}
			continue
		}
		if r := s.named(family, item, lines); r != nil && hasQ {
			// A name that appears twice gets the smaller limit and the longer window.
			r.limits = append(r.limits, policy{limit: countOf(q)})
			r.window = max(r.window, window)
		}
	}
}

func (s *sheet) readLimits(family string, lines []string) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		s.readDictionary(family, lines)
		return
	}
	for _, item := range items(list) {
		left, hasLeft := natural(item, "r")
		if _, given := item.Params.Get("r"); given && !hasLeft {
			continue
		}
		r := s.named(family, item, lines)
		if r == nil {
			continue
		}
		if hasLeft { // without it the remainder is unknown, not 0
			r.remaining = minCount(r.remaining, countOf(left))
		}
		if t, ok := natural(item, "t"); ok {
			d := clampDelay(time.Duration(decimal{whole: uint64(t)}.times(uint64(time.Second))))
			r.resets[0] = later(r.resets[0], s.now.Add(d))
		}
	}
}

// readDictionary reads draft 07: "limit=100, remaining=50, reset=30".
func (s *sheet) readDictionary(family string, lines []string) {
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return
	}
	for _, key := range []string{"limit", "remaining", "reset"} {
		member, _ := dict.Get(key)
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		n, ok := item.Value.(int64)
		if !ok {
			continue
		}
		r := s.row(family, "")
		switch {
		case key == "limit":
			r.limits = append(r.limits, policy{limit: countOf(n)})
		case key == "remaining":
			r.remaining = minCount(r.remaining, countOf(n))
		case n >= 0:
			if d, ok := s.resetDelay(strconv.FormatInt(n, 10)); ok {
				r.resets[1] = later(r.resets[1], s.now.Add(d))
			}
		}
	}
}

// named returns the row of a List item, or nil if the item is not a windowed
// quota. The partition key is part of the name.
func (s *sheet) named(family string, item httpsfv.Item, lines []string) *row {
	var name string
	switch v := item.Value.(type) {
	case string:
		name = v
	case httpsfv.Token:
		name = string(v)
	default:
		return nil
	}
	unit, ok := quotaUnit(item)
	if !ok {
		return nil
	}
	if pk, ok := item.Params.Get("pk"); ok {
		if key, ok := pk.([]byte); ok {
			name += "@" + asWritten(key, lines)
		}
	}
	r := s.row(family+" list", name)
	r.name, r.plain = name, true
	if unit != "" {
		r.unit = unit
	}
	return r
}

// quotaUnit reads the parameter qu; "" means that it is absent. Requests in
// flight are not a quota per window, and then it is not ok.
func quotaUnit(item httpsfv.Item) (unit string, ok bool) {
	v, _ := item.Params.Get("qu")
	switch qu, isText := v.(string); {
	case !isText:
		return "", true
	case qu == "concurrent-requests":
		return "", false
	case qu == "requests":
		return unitRequests, true
	case strings.Contains(qu, "token"):
		return unitTokens, true
	}
	return unitPoints, true
}

// natural reads a parameter that is a non-negative Integer.
func natural(item httpsfv.Item, name string) (int64, bool) {
	v, _ := item.Params.Get(name)
	n, ok := v.(int64)
	return max(n, 0), ok && n >= 0
}

func parseList(lines []string) []httpsfv.Item {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil // one error discards the whole field
	}
	return items(list)
}

func items(list httpsfv.List) []httpsfv.Item {
	var found []httpsfv.Item
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			found = append(found, item)
		}
	}
	return found
}

// asWritten returns the base64 text of a partition key as the server wrote it.
// The example of the draft has padding bits set, which encoding would lose.
func asWritten(key []byte, lines []string) string {
	for _, line := range lines {
		for {
			_, rest, ok := strings.Cut(line, "pk=:")
			if !ok {
				break
			}
			text, _, _ := strings.Cut(rest, ":")
			got, err := base64.StdEncoding.DecodeString(text)
			if err == nil && bytes.Equal(got, key) {
				return text
			}
			line = rest
		}
	}
	return base64.StdEncoding.EncodeToString(key)
}
