// Package template renders requests from the rows of a table.
//
// A template is that of text/template with few functions, and values are
// escaped for the place where they stand, as html/template does for HTML:
//
//   - in a URL, every byte that is not a letter, a digit or one of -._~ becomes
//     %XX, which a path and a query decode to the same bytes. In the host part
//     the characters :[] stay, for ports and IPv6.
//   - in JSON, inside quotes, a value becomes the text of a JSON string; outside
//     quotes it becomes the whole string, quotes included. {{num .n}} writes a
//     number with the digits it has, or is an error; {{raw .x}} writes anything.
//     A comparison such as {{eq .tier "gold"}} writes true or false.
//   - in a header a control character is an error.
//   - a body and an id hold the value as it is.
//
// {{raw .x}} as the last command of an action leaves the value alone. So do
// urlquery in a URL and json outside quotes in JSON, which escape it already.
//
// The functions are b64, default, env, json, lower, num, raw, trim, urlquery
// and of text/template and, eq, index, ne, not, or. A column whose name is no
// word is written {{index . "my col"}}. There are {{if}} and {{with}}, but no
// loops and no nested templates. Mistakes that can be known without a row are
// errors of [Compile].
package template
