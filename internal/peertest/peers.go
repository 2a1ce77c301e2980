package main

// peer is a package whose tests are run against mete.
type peer struct {
	module, version string
	pkg             string   // its directory in the module
	adapter         string   // ours, from the root of the repository
	needs           []string // other packages of the module that its tests import
	bubble          bool     // its tests of the package itself go by a clock that the adapter moves
	left            []deviation
	adapted         []string // what the adapter does where the two differ, for tests that run
}

// deviation is a test that is left out, or a whole file, because mete does
// something else on purpose. It is run as well, and must fail: so the list is no
// longer than it has to be.
type deviation struct {
	name, reason string
	// moot says that it would pass, but test only the adapter.
	moot bool
}

const (
	movesUp   = "who leaves the line gives back all it asked for, and those behind move up; x/time keeps their times and loses units"
	noPast    = "time does not run backwards: a reading older than the last one counts as now"
	zeroRate  = "a rate of 0 admits nothing, and says so; x/time still gives out the burst"
	ownType   = "arithmetic of x/time's type Limit; mete's limits are whole numbers per time"
	sometimes = "mete has no counterpart of Sometimes"
)

var peers = []peer{
	{
		module: "golang.org/x/sync", version: "v0.24.0", pkg: "semaphore",
		adapter: "internal/peertest/semaphore/weighted.go", needs: []string{"errgroup"},
		left: []deviation{
			{name: "TestWeightedPanic", reason: "there is no counted Release: a permit is released once, and again is counted as misuse, not a panic"},
			{name: "TestWeightedNegativeSizePanic", reason: "a negative limit counts as 0: it may come from Resize or a configuration at any time"},
			{name: "TestWeightedZeroSize", reason: "a weight of 0 is ErrWeight: it would pass a full semaphore"},
			{name: "TestWeightedNegativeWeightPanic", reason: "a negative weight is ErrWeight, not a panic"},
		},
		adapted: []string{
			"Release(n) returns permits that count for n together",
			"TestWeighted also asks for a weight of 0, is refused, and its Release(0) does nothing",
		},
	},
	{
		module: "golang.org/x/time", version: "v0.16.0", pkg: "rate",
		adapter: "internal/peertest/rate/limiter.go", bubble: true,
		left: []deviation{
			{name: "sometimes_test.go", reason: sometimes},
			{name: "TestLimit", reason: ownType, moot: true},
			{name: "TestEvery", reason: ownType, moot: true},
			{name: "TestLimiterJumpBackwards", reason: noPast},
			{name: "TestReserveJumpBack", reason: noPast},
			{name: "TestReserveSetBurst", reason: noPast},
			{name: "TestCancel0Tokens", reason: movesUp},
			{name: "TestCancel1Token", reason: "whose time has come has been granted; x/time still takes a cancellation at that instant"},
			{name: "TestCancelMulti", reason: movesUp},
			{name: "TestWaitInf", reason: "there is no infinite rate: what is not limited has no limiter"},
			{name: "TestZeroLimit", reason: zeroRate},
			{name: "TestSetAfterZeroLimit", reason: zeroRate},
		},
		adapted: []string{
			"each test runs in a synctest bubble, which sleeps until the time that a call is given",
			"a reservation is a caller in line, its cancellation one that gives up",
			"AllowN of 0 units is always true; for mete it is a mistake",
			"TestTinyLimit: the slowest rate is one in 100 years",
		},
	},
}
