#!/usr/bin/env bash
# mete tune finds the knee of the stub within a quarter of it, at three knees and
# latencies, and throws no answer away: the run that follows sends only the rest.
set -euo pipefail
dir=$(mktemp -d)
stub=
trap '[ -z "$stub" ] || kill "$stub"; rm -rf "$dir"' EXIT
bad=0
for case in "32 50ms" "12 20ms" "80 100ms"; do
	read -r knee latency <<<"$case"
	"$METE" stub --listen 127.0.0.1:0 --latency "$latency" --knee "$knee" >"$dir/stub" 2>&1 &
	stub=$!
	for _ in $(seq 50); do
		url=$(grep -om1 'http://127.0.0.1:[0-9]*' "$dir/stub" || true)
		[ -z "$url" ] || break
		sleep 0.1
	done
	seq -f "$url/%g" 4000 >"$dir/urls.txt"
	"$METE" tune "$dir/urls.txt" -o "$dir/out.jsonl" --overwrite --state none -q --json >"$dir/tune.json"
	found=$(grep -o '"knee":[0-9a-z]*' "$dir/tune.json" | cut -d: -f2)
	used=$(wc -l <"$dir/out.jsonl")
	"$METE" run "$dir/urls.txt" -o "$dir/out.jsonl" --resume --state none -q -c "$knee"
	sent=$(curl -s "$url/stub/audit" | grep -o '"requests": *[0-9]*' | tr -dc 0-9)
	kill "$stub"; wait "$stub" 2>/dev/null || true
	stub=
	verdict=ok
	awk -v f="$found" -v k="$knee" 'BEGIN { exit !(f != "null" && f >= 0.75*k && f <= 1.25*k) }' || { verdict="MISSED: the knee"; bad=1; }
	[ "$sent" = 4000 ] || { verdict="MISSED: $sent requests for 4000 rows"; bad=1; }
	printf 'knee %3d at %5s: found %4s with %5d rows; then run sent the rest, %d requests for 4000 rows  %s\n' "$knee" "$latency" "$found" "$used" "$sent" "$verdict"
done
exit $bad
