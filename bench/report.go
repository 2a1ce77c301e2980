package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

var header = fmt.Sprintf("%-58s %12s  %-38s %8s  %-13s", "case", "mete", "best peer", "ratio", "target")

// String is the line of a comparison.
func (r result) String() string {
	return fmt.Sprintf("%-58s %12s  %-38s %8s  %-13s %s",
		r.name, show(r.ours.median(), r.unit), r.peer(), r.ratioText(), r.target.text(r.unit), r.verdict())
}

func (r result) peer() string {
	if len(r.theirs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", show(r.theirs[r.best].median(), r.unit), r.peers[r.best].name)
}

func (r result) ratioText() string {
	switch {
	case len(r.theirs) == 0:
		return "-"
	case r.target.kind == over:
		return "+" + show(r.figure, r.unit)
	}
	return fmt.Sprintf("%.3gx", r.ratio())
}

func (r result) verdict() string {
	switch {
	case r.target.kind == told:
		return "-"
	case r.ok():
		return "ok"
	}
	return "MISSED"
}

// report is the page that is written.
func report(results []result, rounds int, before string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# mete beside its peers\n\nWritten by `make bench`. %s, %s, GOMAXPROCS=%d, %s; %s.\n\n",
		machine(), runtime.Version(), processors, time.Now().UTC().Format("2006-01-02 15:04 UTC"), busy(before))
	fmt.Fprintf(&b, "Medians of %d samples each, taken in turn (mete, peer, mete, ...); the least in brackets. Callers that never wait are measured in the processor time of their thread, all else in the time that passed. A ratio or difference is the median of those within a round, so it need not be that of the medians.\n\n", rounds)
	b.WriteString("| case | mete | best peer | ratio | target | |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.name, spanned(r.ours, r.unit), r.peer(), r.ratioText(), r.target.text(r.unit), r.verdict())
	}
	b.WriteString("\n## Missed\n\n")
	missed := false
	for _, r := range results {
		if !r.ok() {
			missed = true
			if r.why == "" {
				r.why = "No reason is known; measure again on a machine that does nothing else."
			}
			fmt.Fprintf(&b, "- %s: %s\n", r.name, r.why)
		}
	}
	if !missed {
		b.WriteString("None.\n")
	}
	b.WriteString("\n## All peers\n\n| case | peer | median (least) |\n|---|---|---|\n")
	for _, r := range results {
		for i, p := range r.peers {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, p.name, spanned(r.theirs[i], r.unit))
		}
	}
	b.WriteString("\n## Versions\n\n")
	for _, line := range versions() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return b.Bytes()
}

func spanned(s series, unit string) string {
	return fmt.Sprintf("%s (%s)", show(s.median(), unit), show(s.least(), unit))
}

// versions are those of the peers that were built in.
func versions() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if !strings.HasPrefix(m.Path, "github.com/metehq/") {
			list = append(list, m.Path+" "+m.Version)
		}
	}
	return list
}

func machine() string {
	model := runtime.GOARCH
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpus)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s/%s, %d processors (%s)", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

// load is the machine's load average over a minute, or "unknown".
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, ok := strings.Cut(string(text), " ")
	if !ok {
		return "unknown"
	}
	return first
}

// busy says how loaded the machine was: figures from a busy one are rough.
func busy(before string) string {
	return fmt.Sprintf("load %s at the start and %s at the end (about %d or less is a machine that did nothing else)", before, load(), processors)
}
