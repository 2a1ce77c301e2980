// Package quota reads what a provider says about its quotas: how long to wait,
// which quotas exist, how much of them is left and when they are full again.
//
// Providers say it in many dialects: Retry-After as seconds or as a date,
// three generations of the IETF RateLimit fields, X-RateLimit headers whose
// reset is a delta, an epoch or a date, and codes in JSON, XML or text bodies.
// Parse understands all of them and never fails: what is malformed is ignored,
// since a value that was guessed is worse than none.
//
// What a response says is a hint, not a grant. A delay is a minimum; Remaining
// may be stale by the time it is read; and a pace follows from Limit and
// Window, never from Remaining and Reset.
package quota
