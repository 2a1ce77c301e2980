//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"
)

// result is what of a record is looked at.
type result struct {
	ID     string
	OK     bool
	Status int
	Bound  string
	End    time.Time
	// Latency is that of the last attempt, in milliseconds.
	Latency float64 `json:"latency_ms"`
}

// readRecords reads an output file as anyone would: each line that is an
// object. A last line that a kill has cut off does not count.
func readRecords(path string) ([]result, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseRecords(data)
}

func parseRecords(data []byte) ([]result, error) {
	var list []result
	for line := range bytes.Lines(data) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}
