package template

import "strings"

// Nearest returns which of the names the user may have meant, or "". Case does
// not count; at most two letters may differ.
func Nearest(name string, names []string) string {
	const longest = 64
	if len(name) > longest {
		return ""
	}
	lower := strings.ToLower(name)
	best, found := 3, ""
	for _, known := range names {
		if len(known) > longest {
			continue
		}
		if d := distance(lower, strings.ToLower(known)); d < best && d < len(known) {
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
