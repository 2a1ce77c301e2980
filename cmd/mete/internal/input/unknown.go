package input

import (
	"fmt"
	"strings"
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
	best, found := 3, ""
	for _, known := range fieldNames {
		if d := distance(lower, known); d < best && d < len(known) {
			best, found = d, known
		}
	}
	return found
}

// distance is the edit distance (Wagner and Fischer, 1974).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
