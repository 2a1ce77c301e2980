package retry

// Budget bounds the share of repeated attempts: every first attempt pays in
// Share, every repetition takes 1, and up to 10 are there from the start, so
// that a small program can repeat at all (the ratio of Google's SRE book, in
// the token form of gRPC's retry throttling). The zero value never refuses.
//
// A Budget is not safe for concurrent use.
type Budget struct {
	Share float64
	spent float64
}

const reserve = 10

// First pays in for a first attempt.
func (b *Budget) First() {
	if b.spent > 0 {
		b.spent = max(b.spent-b.Share, 0)
	}
}

// Again takes one repetition out, or reports that the budget is used up.
func (b *Budget) Again() bool {
	if b.Share <= 0 {
		return true
	}
	if b.spent+1 > reserve {
		return false
	}
	b.spent++
	return true
}
