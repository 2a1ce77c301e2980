package input

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
)

// setBody sets the body from whichever of its three fields is given.
func (r *Row) setBody(f *[fields]field, o *Options, dir string) *fault {
	given := -1
	for _, i := range [...]int{fBody, fBodyBase64, fBodyFile} {
		if f[i].value == nil {
			continue
		}
		if given >= 0 {
			return faultf(f[i].at, "%s and %s exclude each other", fieldNames[given], fieldNames[i])
		}
		given = i
	}
	if given < 0 {
		return nil
	}
	r.HasBody = true
	b := f[given]
	switch given {
	case fBody:
		switch b.value[0] {
		case '"':
			r.Body = unquote(b.value)
		case '{', '[':
			r.Body = bytes.Clone(b.value)
			if r.Header.Get("Content-Type") == "" {
				r.ContentType = "application/json"
			}
		default:
			return faultf(b.at, "body is %s: want a string, an object or an array", kind(b.value))
		}
	case fBodyBase64:
		text, bad := b.text(given)
		if bad != nil {
			return bad
		}
		body, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || strings.ContainsAny(text, "\r\n") {
			return &fault{b.at, "body_base64 is not base64 (RFC 4648, padded)"}
		}
		r.Body = body
	case fBodyFile:
		return r.setBodyFile(b, o, dir)
	}
	return nil
}

func (r *Row) setBodyFile(b field, o *Options, dir string) *fault {
	name, bad := b.text(fBodyFile)
	switch {
	case bad != nil:
		return bad
	case !o.AllowFiles:
		return &fault{b.at, `body_file needs "run: {allow_files: true}" in the file of -f: the input may then name any file you can read`}
	case name == "":
		return &fault{b.at, "body_file is empty"}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return faultf(b.at, "body_file: %v", err)
	case !info.Mode().IsRegular():
		return faultf(b.at, "body_file: %s is not a regular file", quote(name))
	}
	r.BodyFile, r.BodySize = name, info.Size()
	return nil
}
