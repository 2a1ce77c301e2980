// Package metetest is a kit for tests of programs that use mete: a provider
// that does not exist, and assertions on what it saw.
//
// # The provider
//
// A [Provider] refuses what passes its limits, and keeps its own books of every
// call: when it started, how many were in flight, what was done twice. It is
// called without sockets, so a test runs in a testing/synctest bubble and takes
// no time:
//
//	func TestLookups(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			geo := &metetest.Provider{
//				Limits:      []metetest.Limit{{N: 50, Per: time.Second}},
//				Concurrency: 8,
//				Latency:     200 * time.Millisecond,
//			}
//			gate := metetest.Gate(t, mete.Config{
//				Name:        "geo",
//				Concurrency: 8,
//				Limits:      []mete.Limit{mete.Per(50, time.Second)},
//			})
//			client := &http.Client{Transport: &metehttp.Transport{
//				Gate: func(*http.Request) (*mete.Gate, error) { return gate, nil },
//				Base: geo,
//			}}
//
//			lookUpAll(t.Context(), client, addresses) // what is under test
//
//			metetest.PeakInFlight(t, geo, 8)
//			metetest.MaxStarts(t, geo, time.Second, 50)
//			metetest.NoRepeats(t, geo)
//			metetest.Blocked(t, gate, "semaphore") // 8 / 200 ms = 40/s, below 50/s
//			metetest.NoGoroutines(t)
//		})
//	}
//
// The gate of [Gate] is checked when the test ends: every permit has come back,
// once, and none was lost.
//
// Calls that are not HTTP use [Provider.Call] or [Provider.CallFor]. With
// httptest.NewServer(geo) the same provider is behind a socket, in real time.
//
// # Failures on purpose
//
// Reply decides the fate of each call by its number:
//
//	geo.Reply = func(n int) metetest.Reply {
//		switch n {
//		case 3:
//			return metetest.Reply{Status: 503, RetryAfter: 2 * time.Second}
//		case 7:
//			return metetest.Reply{After: time.Minute} // a straggler
//		}
//		return metetest.Reply{}
//	}
//
// # The assertions
//
//   - [PeakInFlight]: calls in flight together
//   - [MaxStarts]: starts in any half-open window
//   - [Utilisation]: how much of a limit was used
//   - [NoRepeats]: nothing was done twice
//   - [Blocked]: what the gate's calls waited for
//   - [PermitsConserved]: all permits came back once
//   - [NoGoroutines]: no goroutine is left in a call
//
// A failure says what was seen and when, counted from the provider's first
// call, and what to look at. Each failed assertion is one Errorf; the test goes
// on. For demands beyond these, [Provider.Audit] has the figures and
// [Provider.Calls] every call.
package metetest
