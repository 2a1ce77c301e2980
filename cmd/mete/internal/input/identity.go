package input

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// name gives a row without an id its ID and Key, and its occurrence. Occurrences are counted by
// what the id shows, so two different requests never share an id, even in the
// rare case that they share those 48 bits.
func (d *identity) name(hash [16]byte) (id string, key [16]byte, n uint32) {
	n = d.unnamed.add(binary.BigEndian.Uint64(hash[:]) >> 16)
	key = hash
	binary.BigEndian.PutUint64(key[8:], binary.BigEndian.Uint64(key[8:])^uint64(n))

	b := hex.AppendEncode(d.buf[:0], hash[:6])
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(n), 10)
	d.buf = b
	return string(b), key, n
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
