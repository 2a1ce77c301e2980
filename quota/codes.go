package quota

import "time"

// match is how a value in a body is compared with those of a code.
type match int

const (
	isEqual   match = iota
	endsWith        // as a URI does with its fragment
	mentions        // as a sentence does, in any case
	namesCode       // AWS: "prefix#Code:suffix"
)

// code is something in a JSON body that means that the server pushed back.
type code struct {
	path     string // object keys, "[]" after one whose array is searched
	match    match
	values   []string
	terminal bool
	delay    time.Duration // to wait if nothing better is known
	only     string        // the one provider for which it counts at all
	loose    string        // on a success it counts for this provider only
	source   string
}

// codes of all providers. Most are so distinct that they need no provider.
var codes = []code{
	{
		path: "error.status", values: []string{"RESOURCE_EXHAUSTED"},
		source: "google.rpc.Code",
	},
	{
		path: "error.errors[].reason", values: []string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"},
		source: "developers.google.com: standard error responses",
	},
	{
		path: "error.errors[].reason", values: []string{"dailyLimitExceeded"}, terminal: true,
		source: "developers.google.com: standard error responses",
	},
	{
		path: "error.details[].violations[].quotaId", match: mentions, values: []string{"PerDay"}, terminal: true,
		source: "google.rpc.QuotaFailure: a quota per day comes with a short RetryInfo",
	},
	{
		path: "error.code", values: []string{"rate_limit_exceeded", "slow_down", "server_is_overloaded"},
		source: "OpenAI guide on error codes",
	},
	{
		path: "error.type", values: []string{"rate_limit_exceeded", "slow_down", "server_is_overloaded"},
		source: "OpenAI guide on error codes",
	},
	{
		path: "error.code", values: []string{"insufficient_quota"}, terminal: true,
		source: "OpenAI guide on error codes: the money is spent",
	},
	{
		path: "error.type", values: []string{"insufficient_quota"}, terminal: true,
		source: "OpenAI guide on error codes: the money is spent",
	},
	{
		path: "error.type", values: []string{"rate_limit_error", "overloaded_error"},
		source: "docs.anthropic.com: errors",
	},
	{
		path: "error.details.error_code", values: []string{"enforced_spend_limit_reached"}, terminal: true,
		source: "docs.anthropic.com: spend limits",
	},
	{
		path: "message", match: mentions, values: []string{"secondary rate limit", "abuse detection"},
		delay: time.Minute, loose: "github",
		source: "github/docs: without retry-after wait at least one minute",
	},
	{
		path: "message", match: mentions, values: []string{"API rate limit exceeded"}, loose: "github",
		source: "github/docs: rate limits for the REST API",
	},
	{
		path: "errors[].message", match: mentions, values: []string{"secondary rate limit", "abuse detection"},
		delay: time.Minute, loose: "github",
		source: "github/docs: rate limits for the GraphQL API",
	},
	{
		path: "errors[].type", values: []string{"RATE_LIMITED"},
		source: "github/docs: rate limits for the GraphQL API",
	},
	{
		path: "errors[].extensions.code", values: []string{"THROTTLED", "RATELIMITED"},
		source: "shopify.dev: GraphQL Admin API; developers.linear.app: rate limiting",
	},
	{
		path: "errors[].code", values: []string{"88"}, only: "x",
		source: "docs.x.com: response codes and errors",
	},
	{
		path: "error", values: []string{"ratelimited"},
		source: "docs.slack.dev: rate limits",
	},
	{
		path: "error.code", values: []string{"ratelimited", "maxlag"},
		source: "mediawiki.org: Manual:Maxlag parameter, API:Errors and warnings",
	},
	{
		path: "errors[].code", values: []string{"ratelimited", "maxlag"},
		source: "mediawiki.org: API:Errors and warnings, errorformat",
	},
	{
		path: "code", values: []string{"rate_limited"},
		source: "developers.notion.com: request limits",
	},
	{
		path: "[].errorCode", values: []string{"REQUEST_LIMIT_EXCEEDED"},
		source: "developer.salesforce.com: status codes and error responses",
	},
	{
		path: "status", values: []string{"OVER_QUERY_LIMIT"},
		source: "developers.google.com/maps: usage of web services",
	},
	{
		path: "status", values: []string{"OVER_DAILY_LIMIT"}, terminal: true,
		source: "developers.google.com/maps: usage of web services",
	},
	{
		path: "policyName", values: []string{"SECONDLY"}, delay: time.Second, loose: "hubspot",
		source: "HubSpot SDKs",
	},
	{
		path: "policyName", values: []string{"TEN_SECONDLY_ROLLING"}, delay: 10 * time.Second, loose: "hubspot",
		source: "HubSpot SDKs",
	},
	{
		path: "policyName", values: []string{"DAILY"}, terminal: true, loose: "hubspot",
		source: "developers.hubspot.com: API usage details",
	},
	{
		path: "__type", match: namesCode, values: awsThrottles,
		source: "aws/aws-sdk-go-v2 aws/retry/standard.go",
	},
	{
		path: "type", match: endsWith,
		values: []string{"#quota-exceeded", "#temporary-reduced-capacity", "#abnormal-usage-detected"},
		source: "draft-ietf-httpapi-ratelimit-headers: problem types",
	},
}

// awsThrottles is DefaultThrottleErrorCodes of aws/aws-sdk-go-v2.
var awsThrottles = []string{
	"Throttling",
	"ThrottlingException",
	"ThrottledException",
	"RequestThrottledException",
	"TooManyRequestsException",
	"ProvisionedThroughputExceededException",
	"TransactionInProgressException",
	"RequestLimitExceeded",
	"BandwidthLimitExceeded",
	"LimitExceededException",
	"RequestThrottled",
	"SlowDown",
	"PriorRequestNotComplete",
	"EC2ThrottledException",
}
