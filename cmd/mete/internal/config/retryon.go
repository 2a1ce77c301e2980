package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The words of retry.on beside statuses.
const (
	OnConnect     = "connect"      // nothing was sent: no address, no connection, no handshake
	OnReset       = "reset"        // the connection broke off
	OnTimeout     = "timeout"      // an attempt took too long
	OnRateLimited = "rate_limited" // the provider pushed back, whatever the status
	OnServerError = "5xx"          // any answer of 500 and above
)

var retryWords = []string{OnConnect, OnReset, OnTimeout, OnRateLimited, OnServerError}

var statusWord = regexp.MustCompile(`^[2-5][0-9][0-9]$`)

// repeated are the statuses that are repeated, if it is safe. 403, 413, 420
// and the like are where they mean a limit, which is rate_limited.
var repeated = []string{"403", "408", "409", "413", "420", "421", "425", "429", "500", "502", "503", "504", "509", "529"}

// retryOn decodes the reasons for a repetition.
func (d *decoder) retryOn(n *node) []string {
	if !d.is(n, list, "on", "[connect, reset, timeout, 429, 5xx]") {
		return nil
	}
	if len(n.items) == 0 {
		d.errorf(n, "on is empty: attempts: 1 means no repetition")
	}
	var on []string
	for _, item := range n.items {
		word, ok := d.word(item, "an entry of on")
		if !ok {
			continue
		}
		isStatus := statusWord.MatchString(word)
		switch {
		case slices.Contains(on, word):
			d.errorf(item, "%s is there already", word)
			continue
		case !isStatus && !slices.Contains(retryWords, word):
			d.errorf(item, "%q is no reason to repeat: write %s or a status", word, strings.Join(retryWords, ", "))
			continue
		case isStatus && !slices.Contains(repeated, word) && word[0] != '2':
			d.warnf(item, "%s is never repeated: on can only leave out what would be; classify says that a status is another kind of answer", word)
		}
		on = append(on, word)
	}
	return on
}

// retryOn shows the list; without one every reason holds.
func (s *shown) retryOn(on []string, at []string) {
	if len(on) == 0 {
		return
	}
	path := under(at, "retry", "on")
	n := s.find(path...)
	written := n != nil
	if n == nil && at[0] == "providers" {
		n = s.find("defaults", "retry", "on")
	}
	for i, word := range on {
		var v any = word
		if status, err := strconv.ParseInt(word, 10, 64); err == nil {
			v = status
		}
		s.append(Value{Path: under(path, "["+strconv.Itoa(i)+"]"), Value: v, Origin: s.origin(n), Written: written})
	}
}
