//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// trials of each kind are made in turn, so that what else the machine does
// meets both.
const trials = 5

// rates compares a table with the same requests as a list of URLs, and the
// memory of rows with that of a hundredth of them.
func rates(dir string, cities []city, base string, rows int) (failed error) {
	row := func(i int) []string {
		c := cities[i%len(cities)]
		return []string{strconv.Itoa(i), c.name, c.country}
	}
	tables := map[int]string{}
	some := rows / 5
	for _, n := range []int{rows, some, rows / 100} {
		tables[n] = filepath.Join(dir, fmt.Sprintf("%d.csv", n))
		if err := writeTable(tables[n], n, row); err != nil {
			return err
		}
	}
	list := filepath.Join(dir, "urls.txt")
	f, err := os.Create(list)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range some {
		r := row(i)
		fmt.Fprintf(w, "%s/r?name=%s&n=%s\n", base, url.QueryEscape(r[1]), r[0])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	template := []string{"--url", base + "/r?name={{.name}}&n={{.id}}"}

	speeds := map[string][]float64{}
	for range trials {
		for _, kind := range []string{"urls", "csv"} {
			args := []string{list}
			if kind == "csv" {
				args = append([]string{tables[some]}, template...)
			}
			m, err := mete(dir, args...)
			if err != nil {
				return err
			}
			speed := float64(some) / m.took.Seconds()
			speeds[kind] = append(speeds[kind], speed)
			fmt.Printf("%-5s %9d rows %7.2f s %9.0f rows/s %6.1f MiB\n", kind, some, m.took.Seconds(), speed, m.rss)
		}
	}
	ratio := median(speeds["csv"]) / median(speeds["urls"])
	check(&failed, ratio >= 0.7, "a table goes at %.2fx the rows/s of the same as URLs (medians of %d; at least 0.7)", ratio, trials)

	memory := map[int]float64{}
	for _, n := range []int{rows / 100, rows} {
		m, err := mete(dir, append([]string{tables[n]}, template...)...)
		if err != nil {
			return err
		}
		memory[n] = m.rss
		fmt.Printf("%-5s %9d rows %7.2f s %9.0f rows/s %6.1f MiB\n", "csv", n, m.took.Seconds(), float64(n)/m.took.Seconds(), m.rss)
	}
	more := memory[rows] - memory[rows/100]
	check(&failed, more <= 32, "%d rows take %.1f MiB more than %d (at most 32)", rows, more, rows/100)
	return failed
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
