package input

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
)

// identity turns rendered requests into hashes, and hashes into ids and keys.
type identity struct {
	buf     []byte
	unnamed table // occurrences by the 48 bits of the hash that the id shows
}

// request sets the row's Hash. Every part is preceded by its length, so no two
// requests render to the same bytes.
func (d *identity) request(r *Row) {
	b := d.buf[:0]
	b = part(b, r.Method)
	b = part(b, r.url.Scheme)
	b = part(b, r.url.Host)
	b = part(b, r.Target)
	b = part(b, r.Host)
	b = part(b, r.ContentType)
	if len(r.Header) > 0 {
		names := make([]string, 0, len(r.Header))
		for name := range r.Header {
			if !secretHeader(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			for _, v := range r.Header[name] {
				b = part(part(b, name), v)
			}
		}
	}
	switch {
	case r.BodyFile != "":
		b = append(b, 'f')
		b = part(b, r.BodyFile)
		b = binary.AppendVarint(b, r.BodySize)
	case r.HasBody:
		// The body is hashed by itself: a large one is not copied.
		sum := sha256.Sum256(r.Body)
		b = append(append(b, 'b'), sum[:]...)
	default:
		b = append(b, '-')
	}
	d.buf = b
	sum := sha256.Sum256(b)
	copy(r.Hash[:], sum[:])
}

// name gives a row without an id its ID and Key. Occurrences are counted by
// what the id shows, so two different requests never share an id, even in the
// rare case that they share those 48 bits.
func (d *identity) name(hash [16]byte) (id string, key [16]byte) {
	n := d.unnamed.add(binary.BigEndian.Uint64(hash[:]) >> 16)
	b := append(d.buf[:0], "hash\x00"...)
	b = append(b, hash[:]...)
	b = binary.AppendUvarint(b, uint64(n))
	sum := sha256.Sum256(b)
	copy(key[:], sum[:])

	b = hex.AppendEncode(b[:0], hash[:6])
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(n), 10)
	d.buf = b
	return string(b), key
}

// keyOf returns the Key of a row with the given id.
func (d *identity) keyOf(id string) (key [16]byte) {
	d.buf = append(append(d.buf[:0], "id\x00"...), id...)
	sum := sha256.Sum256(d.buf)
	copy(key[:], sum[:])
	return key
}

func part(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// table maps 64-bit hashes to small numbers in 12 bytes per slot: an open
// hash table (Knuth, vol. 3, 6.4, algorithm L). It is cut into shards by the
// top bits, which grow one at a time, so growing never doubles the memory.
// A value of 0 is an empty slot.
type table struct {
	shards [64]shard
}

type shard struct {
	keys []uint64
	vals []uint32
	n    int
}

// add counts one more of key and returns the count, at most MaxUint32.
func (t *table) add(key uint64) uint32 {
	v := t.slot(key)
	if *v < math.MaxUint32 {
		*v++
	}
	return *v
}

// put stores val under key unless the key is there; it returns what was there,
// or 0.
func (t *table) put(key uint64, val uint32) uint32 {
	v := t.slot(key)
	old := *v
	if old == 0 {
		*v = max(val, 1)
	}
	return old
}

// slot returns the place of key's value, which is 0 for a new key and must
// then be set.
func (t *table) slot(key uint64) *uint32 {
	h := key * 0x9E3779B97F4A7C15 // Fibonacci hashing: 48-bit keys have empty top bits
	s := &t.shards[h>>58]
	if s.n*5 >= len(s.keys)*4 {
		s.grow()
	}
	i := s.find(key, h)
	if s.vals[i] == 0 {
		s.keys[i] = key
		s.n++
	}
	return &s.vals[i]
}

func (s *shard) find(key, h uint64) uint64 {
	mask := uint64(len(s.keys) - 1)
	i := (h >> 16) & mask
	for s.vals[i] != 0 && s.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

func (s *shard) grow() {
	old := *s
	size := max(16, 2*len(old.keys))
	s.keys, s.vals = make([]uint64, size), make([]uint32, size)
	for i, v := range old.vals {
		if v != 0 {
			j := s.find(old.keys[i], old.keys[i]*0x9E3779B97F4A7C15)
			s.keys[j], s.vals[j] = old.keys[i], v
		}
	}
}

// blank reports whether the line holds nothing but white space.
func blank(line []byte) bool { return len(bytes.TrimLeft(line, " \t\r")) == 0 }
