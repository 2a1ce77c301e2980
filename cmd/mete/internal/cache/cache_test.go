package cache_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

func open(t testing.TB, ttl time.Duration) (*cache.Cache, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	c, err := cache.Open(dir, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

func file(t testing.TB, dir string) string {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if len(list) != 1 {
		t.Fatalf("files: %v", list)
	}
	return list[0]
}

// What is stored comes back byte for byte, and whatever becomes of the file, it
// is this or nothing.
func TestDamage(t *testing.T) {
	c, dir := open(t, time.Hour)
	k := cache.Key{1, 2}
	rapid.Check(t, func(t *rapid.T) {
		e := &cache.Entry{Status: 200, At: time.Now(), Headers: []record.Header{{Name: "etag", Values: []string{"x"}}},
			Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body")}
		if err := c.Put(k, e); err != nil {
			t.Fatal(err)
		}
		got, ok := c.Get(k)
		if !ok || !bytes.Equal(got.Body, e.Body) || got.Status != 200 || got.Headers[0].Values[0] != "x" {
			t.Fatalf("%+v, %v", got, ok)
		}
		list, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		data, err := os.ReadFile(list[0])
		if err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		switch rapid.SampledFrom([]string{"flip", "cut", "longer"}).Draw(t, "damage") {
		case "flip":
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		case "cut":
			data = data[:rapid.IntRange(0, len(data)-1).Draw(t, "to")]
		case "longer":
			data = append(data, 0)
		}
		if err := os.WriteFile(list[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := c.Get(k); ok {
			t.Fatalf("a damaged file is an answer: %+v", got)
		}
	})
}

// A whole entry under another name is no answer.
func TestOtherName(t *testing.T) {
	c, dir := open(t, time.Hour)
	if err := c.Put(cache.Key{1}, &cache.Entry{Status: 200, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	was := file(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, "02"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(was, filepath.Join(dir, "02", filepath.Base(was))); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get(cache.Key{2}); ok {
		t.Error("it is an answer")
	}
}

func TestAge(t *testing.T) {
	c, _ := open(t, time.Hour)
	synctest.Test(t, func(t *testing.T) {
		if err := c.Put(cache.Key{1}, &cache.Entry{Status: 200, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, ok := c.Get(cache.Key{1}); !ok {
			t.Error("too old at its age")
		}
		time.Sleep(time.Second)
		if _, ok := c.Get(cache.Key{1}); ok {
			t.Error("given after its time")
		}
	})
}

// Several writers and readers of one folder, as of two processes: always a whole
// answer.
func TestAtOnce(t *testing.T) {
	_, dir := open(t, time.Hour)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			c, err := cache.Open(dir, time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 50 {
				k := cache.Key{byte(i % 3)}
				if e, ok := c.Get(k); ok && !bytes.Equal(e.Body, bytes.Repeat(e.Body[:1], 5000)) {
					t.Error("a mixed answer")
				}
				if err := c.Put(k, &cache.Entry{Status: 200, At: time.Now(), Body: bytes.Repeat([]byte{byte(n)}, 5000)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if rest, _ := filepath.Glob(filepath.Join(dir, "*", ".new-*")); len(rest) > 0 {
		t.Error(rest)
	}
}

func FuzzGet(f *testing.F) {
	c, dir := open(f, 200*365*24*time.Hour)
	// The workers of a fuzzing run are processes: each must write the same.
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := c.Put(cache.Key{}, &cache.Entry{Status: 200, At: at, Body: []byte("body")}); err != nil {
		f.Fatal(err)
	}
	path := file(f, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if e, ok := c.Get(cache.Key{}); ok && !bytes.Equal(data, whole) {
			t.Fatalf("an answer out of nothing: %+v", e)
		}
	})
}

func Example() {
	dir, _ := os.MkdirTemp("", "cache")
	defer os.RemoveAll(dir)
	c, _ := cache.Open(dir, 24*time.Hour)
	k := cache.Key{1}
	_, ok := c.Get(k)
	fmt.Println(ok)
	_ = c.Put(k, &cache.Entry{Status: 200, At: time.Now(), Body: []byte("hello")})
	e, _ := c.Get(k)
	fmt.Println(e.Status, string(e.Body))
	// Output:
	// false
	// 200 hello
}
