//go:build linux

// Command tables sends a large real table through `mete run` and says whether
// every name came back as it stands in the file, what a table costs beside a
// list of URLs, and how much memory a million rows take. scripts/verify calls it:
//
//	tables echo CITIES.PBF            against a stub of its own
//	tables rates CITIES.PBF URL ROWS  against a server at URL that answers at once
//
// METE names the program; without it that is bin/mete. The exit code is 1 if a
// promise was broken.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	dir, err := os.MkdirTemp("", "mete-tables-")
	if err == nil {
		err = run(dir, os.Args[1:])
		os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func run(dir string, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "echo":
		cities, err := readCities(args[1])
		if err != nil {
			return err
		}
		return echo(dir, cities)
	case len(args) == 4 && args[0] == "rates":
		cities, err := readCities(args[1])
		if err != nil {
			return err
		}
		rows, err := strconv.Atoi(args[3])
		if err != nil || rows < 20 {
			return fmt.Errorf("rows: %q", args[3])
		}
		return rates(dir, cities, args[2], rows)
	}
	return fmt.Errorf("usage: tables echo CITIES.PBF | tables rates CITIES.PBF URL ROWS")
}

// program is the mete under test.
func program() string {
	if m := os.Getenv("METE"); m != "" {
		return m
	}
	return filepath.Join("bin", "mete")
}

// measured is one run of mete.
type measured struct {
	took time.Duration
	rss  float64 // MiB at the peak
}

// mete sends an input to out.jsonl in dir.
func mete(dir string, args ...string) (m measured, err error) {
	args = append([]string{"run"}, args...)
	args = append(args, "-c", "64", "-o", filepath.Join(dir, "out.jsonl"), "--overwrite", "--state", "none", "--quiet")
	cmd := exec.Command(program(), args...)
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	ended, peak := make(chan struct{}), make(chan float64)
	go func() { peak <- watchMemory(cmd.Process.Pid, ended) }()
	err = cmd.Wait()
	m.took = time.Since(began)
	close(ended)
	m.rss = <-peak
	if err != nil {
		return m, fmt.Errorf("mete %v: %w", args, err)
	}
	return m, nil
}

// watchMemory returns the peak of a process's resident set in MiB. What rusage
// says of a child is never less than its parent had when it was forked, and this
// parent holds the table.
func watchMemory(pid int, ended <-chan struct{}) (peak float64) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	for {
		text, _ := os.ReadFile(path)
		if _, rest, ok := strings.Cut(string(text), "VmHWM:"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				kib, _ := strconv.ParseFloat(fields[0], 64)
				peak = max(peak, kib/1024)
			}
		}
		select {
		case <-ended:
			return peak
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// check prints one promise with its verdict.
func check(failed *error, ok bool, format string, args ...any) {
	word := "ok    "
	if !ok {
		word, *failed = "FAILED", fmt.Errorf("a promise was broken")
	}
	fmt.Printf("%s %s\n", word, fmt.Sprintf(format, args...))
}
