// Package input reads rows, the requests a run sends, from files, pipes and
// standard input, compressed with gzip or zstd or not.
//
// A list of URLs, one per line, and JSON Lines, one request object per line,
// hold requests. Tables (csv, tsv) and plain lines hold values, from which a
// template makes requests; so may JSON Lines. A row that is wrong yields a
// [*RowError] with its place and does not end the reading; a file that cannot
// be read, or a table whose header is wrong, does.
//
// What the user wrote is what is sent: bodies, integers and escapes keep their
// bytes, and the fields of a table are text, whatever they look like.
// encoding/json is not used to decode rows because it matches keys without
// regard to case, lets the last duplicate win, replaces invalid UTF-8 silently
// and rounds large integers.
//
// A table has a header, unless Options say otherwise: names without blanks
// around them, none empty, none twice, not even in another case. Its rows have
// as many fields; empty lines are passed over. A field is in quotes if it holds
// the delimiter, a quote, which is doubled, or a line break (RFC 4180); a quote
// elsewhere is a mistake, and reading goes on with the next line. The column
// "id" names the row if no template does.
//
// Memory does not grow with the input, save for the identities seen so far: 15
// to 30 bytes per row, and up to 10 more in a scan of rows with ids.
package input
