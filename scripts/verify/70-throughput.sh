#!/usr/bin/env bash
# Rows per second and memory of `mete run`, with the journal on, beside curl and
# aiohttp on the same URLs in the same run, all against nginx on this machine.
# ROWS=1000000 by default; aiohttp gets a tenth of them.
set -eu
cd "$(dirname "$0")/../.."
rows=${ROWS:-1000000}
few=$((rows / 10))
dir=$(mktemp -d)
port=$(/usr/bin/python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
cat >"$dir/nginx.conf" <<EOF
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
EOF
nginx -p "$dir" -c "$dir/nginx.conf" &
nginx=$!
trap 'kill $nginx 2>/dev/null || true; wait $nginx 2>/dev/null || true; rm -rf "$dir"' EXIT
until curl -fs "http://127.0.0.1:$port/" >/dev/null; do sleep 0.1; done

cat >"$dir/aio.py" <<'EOF'
import asyncio, json, sys, aiohttp

async def main(path, out):
    slots = asyncio.Semaphore(64)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session:
        with open(out, "w") as results:
            async def one(url):
                async with slots:
                    async with session.get(url) as resp:
                        results.write(json.dumps({"url": url, "status": resp.status, "body": await resp.text()}) + "\n")
            await asyncio.gather(*(one(line.strip()) for line in open(path)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
EOF

cat >"$dir/measure.py" <<'EOF'
import os, resource, subprocess, sys, time

rows, few, d, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
with open(f"{d}/urls", "w") as f, open(f"{d}/few", "w") as g, open(f"{d}/curl", "w") as c:
    for n in range(rows):
        url = f"http://127.0.0.1:{port}/r?n={n}"
        f.write(url + "\n")
        if n < few:
            g.write(url + "\n")
        c.write(f'url="{url}"\noutput="/dev/null"\n')

def run(name, n, argv):
    start = time.monotonic()
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=open(f"{d}/{name}.err", "w"))
    _, status, usage = os.wait4(p.pid, 0)
    took = time.monotonic() - start
    if status:
        sys.exit(f"{name} ended with {status}: {open(f'{d}/{name}.err').read()[-2000:]}")
    print(f"{name:8} {n:>9,} rows  {took:7.1f} s  {n/took:9,.0f} rows/s  {usage.ru_maxrss/1024:6.0f} MiB  "
          f"{(usage.ru_utime+usage.ru_stime)/n*1e6:5.0f} us CPU a row", flush=True)
    return n / took, usage.ru_maxrss / 1024

mete = [os.environ.get("METE", "bin/mete"), "run", f"{d}/urls", "-c", "64", "-o", f"{d}/out.jsonl", "--overwrite", "--state", "none", "--progress", "none"]
speed, rss = run("mete", rows, mete)
curl, _ = run("curl", rows, ["curl", "-s", "--parallel", "--parallel-max", "64", "-K", f"{d}/curl"])
aio, _ = run("aiohttp", few, ["/usr/bin/python3", f"{d}/aio.py", f"{d}/few", f"{d}/aio.out"])
lines = sum(1 for _ in open(f"{d}/out.jsonl", "rb"))
ok = True
def check(what, good):
    global ok
    ok &= good
    print(f"{'ok' if good else 'FAILED':6} {what}")
check(f"{lines:,} records for {rows:,} rows", lines == rows)
check(f"{speed/curl:.2f}x curl --parallel --parallel-max 64 (at least 0.8)", speed >= 0.8 * curl)
check(f"{speed/aio:.2f}x aiohttp with asyncio.Semaphore(64) (at least 4)", speed >= 4 * aio)
check(f"{rss:.0f} MiB at the peak (under 150)", rss < 150)
sys.exit(0 if ok else 1)
EOF
/usr/bin/python3 "$dir/measure.py" "$rows" "$few" "$dir" "$port"
