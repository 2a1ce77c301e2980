package simulate

import (
	"math"
	"runtime"
	"sync"
)

// Row is one algorithm in one scenario: the mean of all seeds, and the worst goodput.
type Row struct {
	Scenario  Scenario
	Algorithm string
	Mean      Result
	Worst     float64
}

// Compare runs every algorithm in every scenario with so many seeds, in
// parallel, and calls each for every finished row, in order.
func Compare(scenarios []Scenario, algorithms []Algorithm, seeds int, each func(Row)) []Row {
	rows := make([]Row, len(scenarios)*len(algorithms))
	results := make([][]Result, len(rows))
	left := make([]sync.WaitGroup, len(rows))
	for i := range rows {
		results[i] = make([]Result, seeds)
		left[i].Add(seeds)
	}
	jobs := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for j := range jobs {
				i, seed := j/seeds, j%seeds
				sc, a := scenarios[i/len(algorithms)], algorithms[i%len(algorithms)]
				results[i][seed] = Run(sc, a, uint64(seed)+1)
				left[i].Done()
			}
		}()
	}
	go func() {
		for j := range len(rows) * seeds {
			jobs <- j
		}
		close(jobs)
	}()
	for i := range rows {
		left[i].Wait()
		rows[i] = Row{Scenario: scenarios[i/len(algorithms)], Algorithm: algorithms[i%len(algorithms)].Name}
		rows[i].Mean, rows[i].Worst = average(results[i])
		each(rows[i])
	}
	return rows
}

func average(all []Result) (mean Result, worst float64) {
	worst = math.Inf(1)
	n := float64(len(all))
	for _, r := range all {
		worst = min(worst, r.Goodput)
		mean.Goodput += r.Goodput / n
		mean.P50 += r.P50 / n
		mean.P99 += r.P99 / n
		mean.Failed += r.Failed / n
		mean.FailedAll += r.FailedAll / n
		mean.Throttled += r.Throttled / n
		mean.ThrottledAll += r.ThrottledAll / n
		mean.Converge += r.Converge / n
		mean.Limit += r.Limit / n
		mean.CV += r.CV / n
		mean.Jain += r.Jain / n
	}
	return mean, worst
}
