package input

// batch is a format that a provider's batch service reads: one object a line,
// with fewer fields than a row has, and each of them needed unless it says so.
type batch struct {
	fields   map[string]int
	optional string
	url      string // of every row, if its lines have none
}

var batches = map[string]*batch{
	"openai-batch": {
		fields:   map[string]int{"custom_id": fCustomID, "method": fMethod, "url": fURL, "body": fBody},
		optional: "method",
	},
	"anthropic-batch": {
		fields: map[string]int{"custom_id": fCustomID, "params": fBody},
		url:    "/v1/messages",
	},
}

// fieldIndex returns which field of a row a name is, or -1.
func (b *batch) fieldIndex(name []byte) int {
	if b == nil {
		return fieldIndex(name)
	}
	if i, ok := b.fields[string(name)]; ok {
		return i
	}
	return -1
}

// complete makes the fields of a row of those of a batch's line.
func (b *batch) complete(f *[fields]field, start int) *fault {
	for _, name := range [...]string{"custom_id", "method", "url", "body", "params"} {
		i, known := b.fields[name]
		switch {
		case !known || name == b.optional:
		case f[i].value == nil:
			return faultf(start, "%s is missing", name)
		case i == fBody && f[i].value[0] != '{':
			return faultf(f[i].at, "%s is %s: want an object", name, kind(f[i].value))
		}
	}
	if b.url != "" {
		f[fURL] = field{start, []byte(`"` + b.url + `"`)}
	}
	return nil
}

// unknown is the fault of a field that the format does not have.
func (b *batch) unknown(at int, name, format string) *fault {
	if b == nil {
		return unknownField(at, name)
	}
	if b.url != "" {
		return faultf(at, "unknown field %s: a line of %s has custom_id and params", quote(name), format)
	}
	return faultf(at, "unknown field %s: a line of %s has custom_id, method, url and body", quote(name), format)
}
