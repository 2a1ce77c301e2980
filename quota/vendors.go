package quota

import "strings"

// readVendors reads the fields that hold a whole quota in one value.
func (s *sheet) readVendors() {
	// shopify.dev, rate limits of the REST Admin API: "32/40".
	for _, line := range s.fields["x-shopify-shop-api-call-limit"] {
		s.readUsage("shop", line)
	}
	// simple_salesforce: "api-usage=25/5000; per-app-api-usage=17/250(appName=x)".
	for _, line := range s.fields["sforce-limit-info"] {
		for _, part := range strings.FieldsFunc(line, isSeparator) {
			if name, usage, ok := strings.Cut(part, "="); ok {
				s.readUsage(trim(name), usage)
			}
		}
	}
	// developer.zendesk.com: "total=100; remaining=99; resets=41" per endpoint.
	for field, lines := range s.fields {
		endpoint, ok := strings.CutPrefix(field, "zendesk-ratelimit-")
		if !ok {
			continue
		}
		r := s.row("zendesk-ratelimit", endpoint)
		r.plain = true
		for _, line := range lines {
			s.readEndpoint(r, line)
		}
	}
}

func isSeparator(c rune) bool { return c == ';' || c == ',' }

// readUsage reads "used/limit", which may be followed by a note in brackets.
func (s *sheet) readUsage(name, usage string) {
	usage, _, _ = strings.Cut(usage, "(")
	first, second, ok := strings.Cut(usage, "/")
	used, limit := parseCount(trim(first)), parseCount(trim(second))
	if !ok || !used.known || !limit.known || used.negative {
		return
	}
	r := s.row("usage", name)
	r.limits = append(r.limits, policy{limit: limit})
	if !r.used.known || r.used.less(used) {
		r.used = used
	}
}

func (s *sheet) readEndpoint(r *row, line string) {
	for _, part := range strings.FieldsFunc(line, isSeparator) {
		key, value, _ := strings.Cut(trim(part), "=")
		n := parseCount(value)
		switch key {
		case "total":
			if n.known {
				r.limits = append(r.limits, policy{limit: n})
			}
		case "remaining":
			r.remaining = minCount(r.remaining, n)
		case "resets":
			if d, ok := s.resetDelay(value); ok {
				r.resets[1] = later(r.resets[1], s.now.Add(d))
			}
		}
	}
}
