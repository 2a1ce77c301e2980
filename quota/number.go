package quota

import (
	"math"
	"math/bits"
)

// fracUnit is the scale of decimal.frac.
const fracUnit = 1_000_000_000_000_000_000

// decimal is a non-negative decimal number read without floating point:
// strconv.ParseFloat also accepts NaN, inf, 1e30, 0x1p-2 and 1_000, and the
// conversion of such values to a time.Duration is undefined.
type decimal struct {
	whole  uint64 // saturated
	frac   uint64 // in units of 1e-18, further digits rounded up
	digits int    // of the integer part, leading zeros not counted
}

// parseDecimal reads [0-9]+(\.[0-9]+)? and nothing else.
func parseDecimal(s string) (decimal, bool) {
	d, rest, ok := scanDecimal(s)
	return d, ok && rest == ""
}

// scanDecimal reads a decimal number from the start of s.
func scanDecimal(s string) (d decimal, rest string, ok bool) {
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if d.digits > 0 || s[i] != '0' {
			d.digits++
		}
		hi, lo := bits.Mul64(d.whole, 10)
		lo, carry := bits.Add64(lo, uint64(s[i]-'0'), 0)
		if d.whole = lo; hi != 0 || carry != 0 {
			d.whole = math.MaxUint64
		}
	}
	if i == 0 {
		return decimal{}, s, false
	}
	if i+1 >= len(s) || s[i] != '.' || !isDigit(s[i+1]) {
		return d, s[i:], true
	}
	i++
	up := false
	for unit := uint64(fracUnit / 10); i < len(s) && isDigit(s[i]); i++ {
		d.frac += uint64(s[i]-'0') * unit
		up = up || unit == 0 && s[i] != '0'
		unit /= 10
	}
	if up {
		if d.frac++; d.frac == fracUnit {
			d.frac = 0
			if d.whole != math.MaxUint64 {
				d.whole++
			}
		}
	}
	return d, s[i:], true
}

// times multiplies by unit, rounded up and saturated at math.MaxInt64.
func (d decimal) times(unit uint64) uint64 {
	sum := mulDiv(d.whole, unit, 1) + mulDiv(d.frac, unit, fracUnit)
	return min(sum, math.MaxInt64) // two such terms cannot wrap
}

// mulDiv returns a * b / c, rounded up and saturated at math.MaxInt64.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxInt64
	}
	n, rem := bits.Div64(hi, lo, c)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rem > 0 {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits reads exactly the bytes of s as a number; s is short.
func digits(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, len(s) > 0 && len(s) <= 9
}
