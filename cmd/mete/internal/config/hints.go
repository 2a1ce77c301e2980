package config

import (
	"math"
	"time"

	"github.com/metehq/mete"
)

// hints warns of limits that are allowed but hardly meant.
func (d *decoder) hints(all []placed, provider string) {
	for _, l := range all {
		if l.N == 0 {
			d.warnf(l.at, "a rate of 0 blocks %s: nothing will be sent; remove it for no limit", provider)
			return // beside it every other limit is out of reach
		}
	}
	for _, l := range all {
		for _, other := range all {
			if other.Unit == l.Unit && most(other.Limit, l.Limit) < float64(l.N) {
				d.warnf(l.at, "%s is never reached below %s: one of them is not needed, or not what you mean", l, other)
				break
			}
		}
	}
}

// most returns the most units that limit lets start in one period of of, or
// +Inf where that says nothing about of.
func most(limit, of mete.Limit) float64 {
	period := of.Per
	switch {
	case of.Bucket:
		return math.Inf(1) // a bucket also bounds bursts
	case of.Calendar == "day":
		period = 25 * time.Hour // the longest: clocks go back
	case of.Calendar == "month":
		period = 31*24*time.Hour + time.Hour
	}
	switch {
	case limit.Calendar == "day" && of.Calendar == "month":
		return 32 * float64(limit.N) // in another zone it touches 32 days
	case limit.Calendar != "":
		return math.Inf(1) // two periods may meet in the middle of any window
	case limit.Bucket:
		return float64(limit.Burst) + float64(limit.N)*period.Seconds()/limit.Per.Seconds()
	}
	return float64(limit.N) * math.Ceil(period.Seconds()/limit.Per.Seconds())
}
