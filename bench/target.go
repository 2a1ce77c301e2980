package main

import "fmt"

// target says what a comparison is to reach.
type target struct {
	kind  kind
	bound float64
	upper float64 // of between
}

type kind int

const (
	atMostOf  kind = iota // mete / best peer is at most bound
	atLeastOf             // mete / best peer is at least bound; more is better
	over                  // mete is at most bound above the first peer, the baseline
	atMost                // mete is at most bound
	atLeast               // mete is at least bound; more is better
	between               // mete lies from bound to upper; more is better
	told                  // nothing is asked for
)

// more reports whether more is better.
func (t target) more() bool { return t.kind == atLeastOf || t.kind == atLeast || t.kind == between }

func (t target) figure(own, peer float64) float64 {
	switch t.kind {
	case atMostOf, atLeastOf:
		return own / peer
	case over:
		return own - peer
	}
	return own
}

func (t target) met(figure float64) bool {
	switch t.kind {
	case told:
		return true
	case atLeastOf, atLeast:
		return figure >= t.bound
	case between:
		return figure >= t.bound && figure <= t.upper
	}
	return figure <= t.bound
}

// text is the target as the table shows it.
func (t target) text(unit string) string {
	switch t.kind {
	case atMostOf:
		return fmt.Sprintf("<= %.2gx", t.bound)
	case atLeastOf:
		return fmt.Sprintf(">= %.3gx", t.bound)
	case over:
		return "<= +" + show(t.bound, unit)
	case atMost:
		return "<= " + show(t.bound, unit)
	case atLeast:
		return ">= " + show(t.bound, unit)
	case between:
		return fmt.Sprintf("%.4g-%.4g", t.bound, t.upper)
	}
	return "-"
}

// show writes a value with its unit, short enough to compare at a glance.
func show(v float64, unit string) string {
	switch unit {
	case "ns":
		switch {
		case v >= 1e6 || v <= -1e6:
			return fmt.Sprintf("%.2f ms", v/1e6)
		case v >= 1e4 || v <= -1e4:
			return fmt.Sprintf("%.1f us", v/1e3)
		case v >= 100 || v <= -100:
			return fmt.Sprintf("%.0f ns", v)
		}
		return fmt.Sprintf("%.1f ns", v)
	case "/s":
		return fmt.Sprintf("%.0fk/s", v/1e3)
	case "":
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}
