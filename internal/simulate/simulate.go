// Package simulate tries limiters of concurrency against simulated providers:
// a discrete-event simulation in virtual time, without sockets, goroutines or
// sleeps, in which the same seed gives the same output. Callers arrive at
// random, wait in line for a permit, and their calls meet a station with a
// fixed number of servers, or one whose calls slow each other down, behind a
// network; quotas, outages and random errors as the scenario says.
//
// The limiter of package adaptive stands beside re-implementations, written
// from their descriptions, of limiters in use elsewhere. Those live here only,
// to compare.
package simulate

import (
	"math/rand/v2"
	"time"
)

// Run drives an algorithm through a scenario and says how it went.
func Run(sc Scenario, algorithm Algorithm, seed uint64) Result {
	return run(sc, algorithm, seed, newMeter(sc))
}

func run(sc Scenario, algorithm Algorithm, seed uint64, m *meter) Result {
	w := &world{
		sc:       sc,
		provider: sc.Provider,
		callers:  rand.New(rand.NewPCG(seed, 1)),
		service:  rand.New(rand.NewPCG(seed, 2)),
		luck:     rand.New(rand.NewPCG(seed, 3)),
		meter:    m,
	}
	w.load = sc.Load
	for i := range max(1, sc.Clients) {
		l := algorithm.New(Setting{Initial: sc.Initial, Client: i, Seed: seed})
		w.clients = append(w.clients, &client{limiter: l})
		w.schedule(time.Duration(i)*sc.Join, event{kind: join, client: int32(i)})
	}
	for i, c := range sc.Changes {
		w.schedule(c.At, event{kind: change, call: int32(i)})
	}
	w.schedule(sc.From, event{kind: look})
	w.run()
	return m.result()
}

// world is one run: everything that changes while virtual time passes.
type world struct {
	sc       Scenario
	provider Provider
	load     float64 // calls per second of all clients together
	now      time.Duration
	events   agenda
	clients  []*client
	calls    calls
	station  station
	quota    quota
	meter    *meter

	// Separate streams, so that all algorithms meet the same callers.
	callers, service, luck *rand.Rand
}

// What can happen.
const (
	join    = iota // a client appears
	arrive         // a caller appears at a client
	pump           // a client may start a call that it held back
	reach          // a call reaches the provider
	served         // the station has finished a call
	reply          // the answer of a call reaches its client
	release        // a permit comes back after its quarantine
	change         // the scenario changes
	look           // the limits are read
)

func (w *world) schedule(at time.Duration, e event) {
	e.at = max(at, w.now)
	w.events.add(e)
}

func (w *world) run() {
	for {
		at, ok := w.events.next()
		if t, some := w.calls.nextTimeout(); some && (!ok || t.at <= at) {
			if t.at > w.sc.End {
				return
			}
			w.now = t.at
			w.timeout(t)
			continue
		}
		if !ok || at > w.sc.End {
			return
		}
		e := w.events.pop()
		w.now = e.at
		w.handle(e)
	}
}

func (w *world) handle(e event) {
	switch e.kind {
	case join:
		w.clients[e.client].joined = true
		w.nextCaller(e.client)
	case arrive:
		w.clients[e.client].queue.push(w.now)
		w.nextCaller(e.client)
		w.pump(e.client)
	case pump:
		if c := w.clients[e.client]; c.pumpAt == w.now {
			c.pumpAt = 0
		}
		w.pump(e.client)
	case reach:
		w.reached(e.call)
	case served:
		w.station.served(w, e)
	case reply:
		// A black hole swallows the answers to earlier calls as well.
		if c := &w.calls.all[e.call]; !c.answered && w.provider.Outage != blackHole {
			w.finish(e.call, c.outcome)
		}
		w.calls.release(e.call)
	case release:
		w.clients[e.client].held--
		w.pump(e.client)
	case change:
		w.sc.Changes[e.call].Do(w)
	case look:
		sum := 0.0
		for _, c := range w.clients {
			if c.joined {
				sum += float64(c.limiter.Limit())
			}
		}
		w.meter.limit(sum)
		if next := w.now + w.meter.every; next < w.sc.To {
			w.schedule(next, e)
		}
	}
}

// nextCaller schedules the next of a Poisson process.
func (w *world) nextCaller(client int32) {
	rate := w.load / float64(len(w.clients))
	w.schedule(w.now+seconds(w.callers.ExpFloat64()/rate), event{kind: arrive, client: client})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
