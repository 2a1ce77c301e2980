package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// Scenario is a provider, its callers, and what happens to them.
type Scenario struct {
	Name, What string
	Provider   Provider
	Load       float64 // calls per second, of all clients together
	Clients    int     // 0 is one
	Join       time.Duration
	Initial    int           // the limiters' start, 0 is 20
	Timeout    time.Duration // of a call
	Changes    []Change

	// What is measured.
	From, To time.Duration // the window
	End      time.Duration
	Since    time.Duration // convergence counts from here
	Span     time.Duration // over which it must hold
	Optimum  float64       // successes per second in the window
	NoLoad   NoLoad
}

// NoLoad is the latency of a call that meets no other.
type NoLoad struct{ P50, P99 time.Duration }

// Change is something that happens to a run.
type Change struct {
	At time.Duration
	Do func(w *world)
}

const (
	network = 2 * time.Millisecond
	mean50  = 50 * time.Millisecond

	// Changes come off the grid of ten seconds on which drains may happen.
	changeAt = 63300 * time.Millisecond
)

// queueing is a station of so many servers with exponential service of 50 ms.
func queueing(servers int) Provider {
	return Provider{Servers: servers, Room: 10 * servers, Network: network, Service: exponential(mean50)}
}

// plain is the frame of most scenarios: a station of c servers under a load
// given as a multiple of what it can do, measured from the 30th second.
func plain(name, what string, servers int, load float64) Scenario {
	capacity := float64(servers) / mean50.Seconds()
	return Scenario{
		Name: name, What: what,
		Provider: queueing(servers),
		Load:     load * capacity,
		Timeout:  2 * time.Second,
		From:     30 * time.Second, To: 120 * time.Second, End: 120 * time.Second,
		Span:    2 * time.Second,
		Optimum: min(load, 1) * capacity,
		NoLoad:  exponentialNoLoad(mean50, network),
	}
}

func exponentialNoLoad(mean, network time.Duration) NoLoad {
	return NoLoad{
		P50: network + time.Duration(math.Ln2*float64(mean)),
		P99: network + time.Duration(math.Log(100)*float64(mean)),
	}
}

// after moves the window to what follows a change.
func (sc Scenario) after(change, window time.Duration) Scenario {
	sc.From, sc.Since = change, change
	sc.To, sc.End = change+window, change+window
	return sc
}

// Scenarios are all of them, in order.
func Scenarios() []Scenario {
	all := []Scenario{plain("S1", "20 servers, load 2x", 20, 2)}

	down := plain("S2-down", "half of the servers go", 20, 2).after(changeAt, time.Minute)
	down.Changes = []Change{{changeAt, func(w *world) { w.provider.Servers = 10 }}}
	down.Optimum /= 2
	up := plain("S2-up", "and come back", 20, 2).after(changeAt+time.Minute, time.Minute)
	up.Changes = append(up.Changes, down.Changes[0],
		Change{changeAt + time.Minute, func(w *world) { w.provider.Servers = 20 }})
	all = append(all, down, up)

	for _, load := range []float64{2, 0.8} {
		sc := plain("S3", "the network takes 52 ms more", 20, load).after(changeAt, 2*time.Minute)
		if load < 1 {
			sc.Name, sc.What = "S3b", "the same at load 0.8x"
		}
		further := 52 * time.Millisecond
		sc.Changes = []Change{{changeAt, func(w *world) { w.provider.Network += further }}}
		sc.NoLoad = exponentialNoLoad(mean50, network+further)
		all = append(all, sc)
	}

	rise := plain("S4", "100 servers, load from 0.1x to 1.2x", 100, 1.2).after(changeAt, time.Minute)
	rise.Load /= 12
	rise.Changes = []Change{{changeAt, func(w *world) { w.load *= 12 }}}
	all = append(all, rise)

	short, long := 10*time.Millisecond, 500*time.Millisecond
	mixed := plain("S5", "90 % take 10 ms, 10 % take 500 ms", 50, 1)
	mixed.Provider.Service = func(r *rand.Rand, _ time.Duration) time.Duration {
		if r.Float64() < 0.9 {
			return short
		}
		return long
	}
	mixed.Optimum = 50 / (0.9*short.Seconds() + 0.1*long.Seconds())
	mixed.Load = 1.5 * mixed.Optimum
	mixed.NoLoad = NoLoad{P50: network + short, P99: network + long}
	all = append(all, mixed)

	bucket := plain("S6", "quota of 100/s, load 3x", 100, 1)
	bucket.Provider.Quota, bucket.Provider.Burst = 100, 10
	bucket.Load, bucket.Optimum = 300, 100
	bucket.To, bucket.End = 3*time.Minute, 3*time.Minute
	windows := bucket
	windows.Name, windows.What = "S6w", "windows of 100 a second, Retry-After"
	windows.Provider.Window = time.Second
	all = append(all, bucket, windows)

	shared := plain("S7", "ten clients at 100 servers", 100, 2)
	shared.Clients, shared.Join = 10, 5*time.Second
	shared.From, shared.To, shared.End = 90*time.Second, 150*time.Second, 150*time.Second
	shared.Since = 45 * time.Second
	all = append(all, shared)

	for _, kind := range []outage{blackHole, refusing} {
		sc := plain("S8", "no answers for 20 s", 20, 2).after(changeAt+20*time.Second, time.Minute)
		if kind == refusing {
			sc.Name, sc.What = "S8f", "connections refused for 20 s"
		}
		sc.Changes = []Change{
			{changeAt, func(w *world) { w.provider.Outage = kind }},
			{changeAt + 20*time.Second, func(w *world) { w.provider.Outage = working }},
		}
		all = append(all, sc)
	}

	few := plain("S9", "1 % answered 503", 20, 2)
	few.Provider.Errors = 0.01
	few.Optimum *= 0.99
	more := plain("S9b", "5 % answered 503", 20, 2)
	more.Provider.Errors = 0.05
	more.Optimum *= 0.95
	all = append(all, few, more)

	large := plain("S10", "500 servers, start at 1", 500, 1.2)
	large.Initial = 1
	large.To, large.End = time.Minute, time.Minute
	return append(all, large, contention(), language(), drift())
}

// contention is a provider whose calls slow each other down: past 44 of them,
// more calls mean fewer answers.
func contention() Scenario {
	sc := plain("S11", "contention, load 2x the peak", 20, 2)
	sc.Provider.Servers, sc.Provider.Room = 0, 0
	sc.Provider.Sigma, sc.Provider.Kappa = 0.02, 0.0005
	sc.Optimum = 0
	for n := 1; n < 200; n++ {
		// In flight at the network too.
		sc.Optimum = max(sc.Optimum, float64(n)*sc.Provider.pace(n)/mean50.Seconds())
	}
	sc.Load = 2 * sc.Optimum
	return sc
}

// language is a language model: long calls, and at most 40 of them.
func language() Scenario {
	mean, shape := 8*time.Second, 0.8
	return Scenario{
		Name: "S12", What: "calls of 8 s, 40 at once, else 429",
		Provider: Provider{
			Servers: 1000, Network: network, Concurrent: 40,
			Service: lognormal(func(time.Duration) time.Duration { return mean }, shape),
		},
		Load:    2 * 40 / mean.Seconds(),
		Timeout: 5 * time.Minute,
		From:    10 * time.Minute, To: 30 * time.Minute, End: 30 * time.Minute,
		Span:    time.Minute,
		Optimum: 40 / mean.Seconds(),
		NoLoad:  lognormalNoLoad(mean, shape),
	}
}

func lognormalNoLoad(mean time.Duration, shape float64) NoLoad {
	median := math.Exp(-shape*shape/2) * float64(mean)
	return NoLoad{
		P50: network + time.Duration(median),
		P99: network + time.Duration(median*math.Exp(2.326*shape)),
	}
}

// drift is the same calls, without a limit of the provider's, their mean
// swinging by half in ten minutes.
func drift() Scenario {
	sc := language()
	sc.Name, sc.What = "S13", "calls of 8 s, swinging by half in 10 min"
	sc.Provider.Concurrent = 0
	sc.Provider.Servers = 100000
	sc.Provider.Service = lognormal(func(now time.Duration) time.Duration {
		return time.Duration((1 + 0.5*math.Sin(2*math.Pi*now.Minutes()/10)) * float64(8*time.Second))
	}, 0.8)
	sc.Load, sc.Optimum = 8, 8
	sc.From, sc.To, sc.End = 20*time.Minute, time.Hour, time.Hour
	return sc
}
