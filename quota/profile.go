package quota

import (
	"slices"
	"strings"
	"time"
)

// Units of a quota.
const (
	unitRequests = "requests"
	unitTokens   = "tokens"
	unitPoints   = "points"
)

// profile is what a provider does not put on the wire: its dialect and how its
// quotas are to be read. It never holds a limit, since limits change and depend
// on the plan.
type profile struct {
	names     string                   // separated by spaces, in lower case
	mark      string                   // a field that only this provider sends
	windows   map[string]time.Duration // by quota name; "" is any other
	unit      string                   // unless the name says more
	units     map[string]string        // by quota name
	resetUnit time.Duration            // of a plain number, if not a second
	bucket    bool                     // refills continuously
	source    string
}

var profiles = []profile{
	{
		names: "github",
		windows: map[string]time.Duration{
			"": time.Hour, "search": time.Minute, "code_search": time.Minute,
		},
		units:  map[string]string{"graphql": unitPoints},
		source: "github/docs: rate limits for the REST and GraphQL API",
	},
	{
		names:   "anthropic",
		mark:    "anthropic-ratelimit-",
		windows: map[string]time.Duration{"": time.Minute, "unified": 0},
		bucket:  true,
		source:  "docs.anthropic.com: rate limits (token bucket per minute)",
	},
	{
		names:  "openai azure-openai groq together",
		bucket: true,
		source: "OpenAI guide on rate limits: reset is the time until full",
	},
	{
		names:   "twitch",
		windows: map[string]time.Duration{"": time.Minute},
		unit:    unitPoints,
		bucket:  true,
		source:  "dev.twitch.tv guide: token bucket of points per minute",
	},
	{
		names:  "shopify",
		mark:   "x-shopify-shop-api-call-limit",
		bucket: true,
		source: "shopify.dev: API limits (leaky bucket)",
	},
	{
		names:   "zendesk",
		windows: map[string]time.Duration{"": time.Minute},
		source:  "developer.zendesk.com: best practices for avoiding rate limiting",
	},
	{
		names:   "linear",
		windows: map[string]time.Duration{"": time.Hour},
		source:  "developers.linear.app: rate limiting",
	},
	{
		names:   "reddit",
		windows: map[string]time.Duration{"": 10 * time.Minute},
		source:  "praw-dev/prawcore rate_limit.py",
	},
	{
		names:   "salesforce",
		mark:    "sforce-limit-info",
		windows: map[string]time.Duration{"": 24 * time.Hour},
		source:  "developer.salesforce.com: API request limits (rolling 24 hours)",
	},
	{
		names:  "jira confluence atlassian",
		unit:   unitPoints,
		source: "developer.atlassian.com: rate limiting",
	},
	{
		names:  "x twitter",
		source: "docs.x.com: response codes and errors (code 88)",
	},
	{
		names:  "hubspot",
		mark:   "x-hubspot-ratelimit-",
		source: "developers.hubspot.com: API usage details",
	},
	{
		names:     "prisjakt",
		resetUnit: time.Millisecond,
		source:    "Prisjakt API documentation: reset in milliseconds to go",
	},
}

// Providers returns the names of the dialects that Response.Provider knows, in
// order.
func Providers() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, strings.Fields(p.names)...)
	}
	slices.Sort(names)
	return names
}

// findProfile looks a provider up. If the caller names none, a field that only
// one provider sends gives it away.
func findProfile(provider string, f fields) *profile {
	if p := knownProfile(provider); p != nil {
		return p
	}
	if provider == "" {
		for name := range f {
			for i, p := range profiles {
				if p.mark != "" && strings.HasPrefix(name, p.mark) {
					return &profiles[i]
				}
			}
		}
	}
	return &profile{}
}

// knownProfile looks a provider up by its name; nil is unknown.
func knownProfile(provider string) *profile {
	if provider == "" {
		return nil
	}
	provider = strings.ToLower(provider)
	for i := range profiles {
		if profiles[i].is(provider) {
			return &profiles[i]
		}
	}
	return nil
}

func (p *profile) is(name string) bool {
	for n := range strings.FieldsSeq(p.names) {
		if n == name {
			return true
		}
	}
	return false
}

func (p *profile) window(name string) time.Duration {
	if w, ok := p.windows[name]; ok {
		return w
	}
	return p.windows[""]
}

func (p *profile) unitOf(name string) string {
	if unit := commonUnit(name); unit != unitRequests {
		return unit
	}
	if unit, ok := p.units[name]; ok {
		return unit
	}
	if p.unit != "" {
		return p.unit
	}
	return unitRequests
}

// commonUnit reads the unit from a quota's name.
func commonUnit(name string) string {
	name = strings.ToLower(name)
	if strings.Contains(name, "token") {
		return unitTokens
	}
	for _, word := range []string{"complexity", "points", "weight", "cost", "units"} {
		if strings.Contains(name, word) {
			return unitPoints
		}
	}
	return unitRequests
}
