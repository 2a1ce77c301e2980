//go:build linux

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// echo sends all names to the stub, in the query and in a JSON body, and
// compares what the stub saw and what the records say with the names.
func echo(dir string, cities []city) (failed error) {
	names, strange := make([]string, len(cities)), 0
	for i, c := range cities {
		// To some what tables trip over is added.
		switch names[i] = c.name; i % 29 {
		case 3:
			names[i] += ", \"the Old\" & co"
		case 11:
			names[i] += "\nsecond line"
		case 17:
			names[i] = " " + c.name + "?a=b#c%20+d/<e>\\"
		}
		if utf8.RuneCountInString(c.name) != len(c.name) {
			strange++
		}
	}
	table := filepath.Join(dir, "cities.csv")
	if err := writeTable(table, len(names), func(i int) []string {
		return []string{strconv.Itoa(i), names[i], cities[i].country}
	}); err != nil {
		return err
	}
	base, stop, err := startStub()
	if err != nil {
		return err
	}
	defer stop()
	m, err := mete(dir, table, "--id", "{{.id}}", "--url", base+"/places/{{.country}}?name={{.name}}&n={{.id}}", "--json", `{"name":{{.name}}}`)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows to the stub and back in %.1f s, %d of them with letters beyond ASCII\n", len(names), m.took.Seconds(), strange)
	check(&failed, len(names) >= 50_000, "%d real places (at least 50,000)", len(names))

	queries, bodies, metas, seen, err := compare(filepath.Join(dir, "out.jsonl"), names)
	if err != nil {
		return err
	}
	check(&failed, seen == len(names), "%d rows have a record", seen)
	check(&failed, queries == len(names), "%d names byte for byte in the query the stub saw", queries)
	check(&failed, bodies == len(names), "%d JSON bodies byte for byte at the stub, by SHA-256", bodies)
	check(&failed, metas == len(names), "%d names byte for byte in the records", metas)
	resp, err := http.Get(base + "/stub/audit")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var audit struct{ Requests, Repeats int }
	if err := json.NewDecoder(resp.Body).Decode(&audit); err != nil {
		return err
	}
	check(&failed, audit.Requests == len(names) && audit.Repeats == 0, "%d requests, %d repeats in the stub's audit", audit.Requests, audit.Repeats)
	return failed
}

// compare counts the rows, once each, whose name came back.
func compare(path string, names []string) (queries, bodies, metas, seen int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	done := make([]bool, len(names))
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			ID   string
			OK   bool
			Meta struct{ Name string }
			Body struct {
				Query  string
				SHA256 string `json:"body_sha256"`
			}
		}
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			return
		}
		i, convErr := strconv.Atoi(r.ID)
		if convErr != nil || i < 0 || i >= len(names) || done[i] || !r.OK {
			err = fmt.Errorf("an unexpected record: %s", lines.Text())
			return
		}
		done[i] = true
		seen++
		if q, queryErr := url.ParseQuery(r.Body.Query); queryErr == nil && q.Get("name") == names[i] {
			queries++
		}
		// What is sent has no escapes but these.
		sum := sha256.Sum256([]byte(`{"name":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(names[i]) + `"}`))
		if r.Body.SHA256 == hex.EncodeToString(sum[:]) {
			bodies++
		}
		if r.Meta.Name == names[i] {
			metas++
		}
	}
	err = lines.Err()
	return
}

// writeTable writes n rows.
func writeTable(path string, n int, row func(int) []string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	_ = w.Write([]string{"id", "name", "country"})
	for i := range n {
		_ = w.Write(row(i))
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return f.Close()
}

func startStub() (base string, stop func(), err error) {
	cmd := exec.Command(program(), "stub", "--listen", "127.0.0.1:0")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	base, ok := strings.CutPrefix(strings.TrimSpace(line), "mete stub: ")
	if err != nil || !ok {
		stop()
		return "", nil, fmt.Errorf("the stub did not start: %s", line)
	}
	return base, stop, nil
}
