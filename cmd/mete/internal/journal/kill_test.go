package journal_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

const killRows = 2000

// TestKilledProcess kills real processes in the middle of writing: whatever
// they called written is in the file, the lock is free at once, and in the end
// each row has one record. NousResearch/hermes-agent#297 and #13285.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if child := os.Getenv("METE_TEST_JOURNAL"); child != "" {
		writeUntilKilled(t, child)
		return
	}
	acknowledged := map[string]bool{}
	for n := 0; ; n++ {
		if n == killRows {
			t.Fatal("gets nowhere")
		}
		child := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
		child.Env = append(os.Environ(), "METE_TEST_JOURNAL="+path)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		kill := 1 + n*5
		lines := bufio.NewScanner(out)
		for seen := 1; lines.Scan(); seen++ {
			if id, ok := strings.CutPrefix(lines.Text(), "written "); ok && strings.HasSuffix(id, ".") {
				acknowledged[id] = true
			}
			if seen == kill {
				child.Process.Kill()
			}
		}
		child.Wait()
		j, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
		if err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		for id := range acknowledged {
			if j.Done(record.SumID(id), 1<<12) != journal.Done {
				t.Fatalf("row %s was called written and is not there", id)
			}
		}
		resumed := j.Resumed()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if resumed.Records != resumed.Rows {
			t.Fatalf("%+v: rows were written twice", resumed)
		}
		if resumed.Rows == killRows {
			t.Logf("%d processes were killed", n)
			return
		}
	}
}

func killLine(i int) []byte { return lineOf(fmt.Sprintf("%05d.", i), 1, true) }

func writeUntilKilled(t *testing.T, path string) {
	j, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < killRows; {
		var last *journal.Batch
		var ids []string
		for ; i < killRows && len(ids) < 3; i++ {
			id := fmt.Sprintf("%05d.", i)
			if j.Done(record.SumID(id), 1<<12) == journal.Done {
				continue
			}
			if last, err = j.Append(killLine(i)); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if last == nil {
			break
		}
		if err := last.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			fmt.Println("written " + id)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
