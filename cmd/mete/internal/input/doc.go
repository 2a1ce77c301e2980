// Package input reads rows, the requests a run sends, from files, pipes and
// standard input.
//
// Two formats are read: a list of URLs, one per line, and JSON Lines, one
// request object per line. A row that is wrong yields a [*RowError] with its
// place and does not end the reading; a file that cannot be read does.
//
// What the user wrote is what is sent: bodies, integers and escapes keep their
// bytes. encoding/json is not used to decode rows because it matches keys
// without regard to case, lets the last duplicate win, replaces invalid UTF-8
// silently and rounds large integers.
//
// Memory does not grow with the input, save for the identities seen so far: 15
// to 30 bytes per row.
package input
