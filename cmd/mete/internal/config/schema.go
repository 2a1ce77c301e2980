package config

import (
	"encoding/json"

	"github.com/goccy/go-yaml"
)

// object is a part of a JSON Schema.
type object = map[string]any

// Schema returns the JSON Schema (draft 2020-12) of a configuration file, for
// editors. It is made from the table of keys that the parser reads by. It takes
// every file that Parse takes; what needs more than one value at a time to be
// judged, such as two limits with one name, only Parse refuses.
func Schema() []byte {
	defs := object{}
	for kind, keys := range known {
		defs[kind] = describe(kind, keys)
	}
	for word, form := range forms {
		defs[word] = form
	}
	root := object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "mete.yaml",
		"description": "The configuration of mete: remote APIs and what they allow.",
		"$ref":        ref("file"),
		"$defs":       defs,
	}
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: the schema cannot be encoded: " + err.Error())
	}
	return append(data, '\n')
}

func ref(def string) string { return "#/$defs/" + def }

// describe describes a kind of mapping.
func describe(kind string, keys []key) object {
	properties := object{}
	for _, k := range keys {
		p := object{
			"$ref":        ref(k.value),
			"description": k.doc,
			"examples":    []any{fromYAML(k.example)},
		}
		if k.def != "" {
			p["default"] = fromYAML(k.def)
		}
		properties[k.name] = p
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	for word, rule := range rules[kind] {
		s[word] = rule
	}
	return s
}

// fromYAML gives an example of the table the type that it has in a file.
func fromYAML(text string) any {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		panic("config: not YAML: " + text)
	}
	return v
}

// rules are what holds between the keys of a mapping.
var rules = map[string]object{
	"file": {"required": []string{"version"}, "anyOf": []object{
		{"required": []string{"providers"}}, {"required": []string{"run"}}, {"required": []string{"defaults"}},
	}},
	"provider": {"required": []string{"url"}, "dependentRequired": object{"burst": []string{"rate"}}},
	"breaker":  {"required": []string{"failures"}},
	"rule": {"required": []string{"as"}, "anyOf": []object{
		{"required": []string{"status"}}, {"required": []string{"jq"}},
	}},
	"auth": {"required": []string{"value"}, "oneOf": []object{
		{"required": []string{"header"}}, {"required": []string{"query"}},
	}},
	// A limit in another unit has a word of its own in the place of requests.
	"limit": {"additionalProperties": object{"$ref": ref("quota")}, "propertyNames": object{"pattern": unitPattern},
		"minProperties": 1, "dependentRequired": object{"zone": []string{"window"}}},
	"cost": {"minProperties": 1},
}

const (
	timePattern   = `^\s*\+?([0-9]+d|([0-9]*\.?[0-9]*(ns|us|µs|μs|ms|s|m|h))+)\s*$`
	ratePattern   = `^\s*[0-9]*\.?[0-9]*r?\s*/\s*([0-9]*\.?[0-9]*[A-Za-zµμ]+)+\s*$`
	sharePattern  = `^\s*\+?[0-9.][0-9A-Fa-fPpXx.+-]*\s*%?\s*$`
	weightPattern = `^\s*\+?[0-9.][0-9A-Fa-fPpXx.+-]*\s*$`
	nonePattern   = `^\s*none\s*$`
	sizePattern   = `^\s*[0-9]{1,10}(B|KB|KiB|MB|MiB|GB|GiB)?\s*$`
	headerPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
	unitPattern   = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`     // as cost.UnitName
	namePattern   = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$` // as providerName and limitName
)

// variables stand for any value: what they hold is known only when mete starts.
var variables = object{"type": "string", "pattern": `\$\{[^{}]*\}`}

// scalars are what is read as text, with or without quotes.
var scalars = []string{"string", "number", "boolean"}

// forms are the values that are no mapping of known keys.
var forms = map[string]object{
	"version":      either(object{"const": Version}),
	"text":         {"type": scalars},
	"word":         {"type": scalars},
	"name":         {"type": scalars, "pattern": namePattern},
	"url":          {"type": "string", "pattern": `^\s*[Hh][Tt][Tt][Pp][Ss]?://|\$`},
	"truth":        either(object{"type": "boolean"}),
	"count":        either(whole(1)),
	"bound":        either(whole(1), object{"const": none}),
	"concurrency":  {"anyOf": []object{whole(0), {"enum": []string{unlimited, "auto", "aimd"}}, variables, {"$ref": ref("adaptive")}}},
	"algorithm":    {"enum": algorithmWords},
	"time":         either(matching(timePattern)),
	"time-or-none": either(matching(timePattern), object{"const": none}, matching(nonePattern)),
	"share": either(object{"type": "number", "exclusiveMinimum": 0, "maximum": 1},
		matching(sharePattern), object{"const": none}, matching(nonePattern)),
	"quota":  either(matching(ratePattern), object{"const": 0}, matching(`^\s*0\s*$`)),
	"rate":   {"anyOf": []object{{"$ref": ref("quota")}, {"const": unlimited}}},
	"window": {"enum": []string{"sliding", "calendar"}},
	"limits": {"type": "array", "items": object{"anyOf": []object{{"$ref": ref("limit")}, {"$ref": ref("quota")}}}},
	"lanes": {"type": "object", "minProperties": 1, "propertyNames": object{"pattern": namePattern},
		"additionalProperties": object{"anyOf": []object{{"$ref": ref("lane")}, {"type": "null"}}}},
	"weight":        either(object{"type": "number", "minimum": 0.001, "maximum": 1000}, matching(weightPattern)),
	"classify":      {"type": "array", "items": object{"$ref": ref("rule")}},
	"statuses":      {"anyOf": []object{status, {"type": "array", "minItems": 1, "items": status}}},
	"kind":          {"enum": classifyWords},
	"retry-on":      {"type": "array", "minItems": 1, "items": either(object{"enum": retryWords}, matching(statusWord.String()), status)},
	"learn":         {"enum": learnWords},
	"preset":        {"enum": presetWords},
	"duplicate_ids": {"enum": duplicateWords},
	"on_change":     {"enum": changeWords},
	"fsync":         {"enum": fsyncWords},
	"oversize":      {"enum": oversizeWords},
	"expression":    {"type": scalars},
	"costs": {"type": "object", "propertyNames": object{"pattern": unitPattern, "not": object{"const": requests}},
		"additionalProperties": object{"anyOf": []object{{"$ref": ref("expression")}, {"$ref": ref("cost")}}}},
	"fallback": {"type": "array", "items": object{"type": scalars, "pattern": namePattern}, "uniqueItems": true},
	"size":     either(whole(1), matching(sizePattern)),
	"header":   {"type": scalars, "pattern": headerPattern},
	"headers": {"type": "object", "additionalProperties": object{"type": scalars},
		"propertyNames": object{"pattern": headerPattern}},
	"providers": {"type": "object", "minProperties": 1, "additionalProperties": object{"$ref": ref("provider")},
		"propertyNames": object{"pattern": namePattern}},
}

// either is a value of one of the given forms, or one with a variable.
func either(of ...object) object { return object{"anyOf": append(of, variables)} }

func whole(least int) object {
	return object{"type": "integer", "minimum": least, "maximum": 1<<31 - 1}
}

// status is the status of an answer.
var status = either(object{"type": "integer", "minimum": 200, "maximum": 599})

func matching(pattern string) object { return object{"type": "string", "pattern": pattern} }
