package input

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// aliases are names other tools use for the same thing.
var aliases = map[string]string{
	"priority": "lane", "uri": "url", "link": "url", "endpoint": "url", "verb": "method",
	"data": "body", "json": "body", "payload": "body", "content": "body", "header": "headers",
	"metadata": "meta", "name": "id", "key": "id", "deadline": "timeout", "tokens": "cost",
}

func unknownField(at int, name string) *fault {
	hint := ""
	if near := nearest(name); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return faultf(at, "unknown field %s%s: put extras in \"meta\"", quote(name), hint)
}

// nearest returns the field the user may have meant, or "".
func nearest(name string) string {
	if len(name) > 32 {
		return ""
	}
	lower := strings.ToLower(name)
	if known, ok := aliases[lower]; ok {
		return known
	}
	lower = strings.ReplaceAll(lower, "-", "_")
	return template.Nearest(lower, fieldNames[:])
}
