package quota

import (
	"encoding/json"
	"time"
)

// cost is the state of a leaky bucket that the GraphQL API of Shopify returns
// in extensions.cost. See shopify.dev, API limits.
type cost struct {
	size, left int64
	full       time.Duration // from empty
	until      time.Duration // from now
}

// readCost reads the bucket and, if the query was refused, how long it takes
// until there is enough in it.
func (s *statement) readCost(v any) {
	state := field(field(field(v, "extensions"), "cost"), "throttleStatus")
	size, ok1 := jsonCount(field(state, "maximumAvailable"))
	left, ok2 := jsonCount(field(state, "currentlyAvailable"))
	rate, ok3 := jsonCount(field(state, "restoreRate"))
	if !ok1 || !ok2 || !ok3 || size <= 0 || rate <= 0 {
		return
	}
	s.cost = &cost{
		size: size, left: min(left, size),
		full:  refill(size, rate),
		until: refill(max(size-left, 0), rate),
	}
	requested, ok := jsonCount(field(field(field(v, "extensions"), "cost"), "requestedQueryCost"))
	if ok && s.throttled {
		// Whole seconds, as the documentation computes it.
		s.wait(refill((max(requested-left, 0)+rate-1)/rate, 1))
	}
}

// refill is how long it takes to get n units back at rate per second.
func refill(n, rate int64) time.Duration {
	return time.Duration(mulDiv(uint64(n), uint64(time.Second), uint64(rate)))
}

// jsonCount reads a non-negative number, rounded down.
func jsonCount(v any) (int64, bool) {
	n, _ := v.(json.Number)
	c := parseCount(n.String())
	return int64(c.whole), c.known && !c.negative
}

// readCost adds the bucket as a quota.
func (s *sheet) readCost(c *cost) {
	if c == nil {
		return
	}
	r := s.row("graphql", "cost")
	r.limits = append(r.limits, policy{limit: countOf(c.size), window: c.full})
	r.remaining = countOf(c.left)
	r.resets[0] = s.now.Add(clampDelay(c.until))
}
