#!/bin/sh
# Stands in for nginx: imports the file that nginx would read, and serves it by the front. What import and check said is
# kept in $KEEP.
prefix= file=
while [ $# -gt 0 ]; do
  case $1 in
    -V | -v)
      # What the tests ask for before they begin.
      echo 'nginx version: nginx/1.22.1' >&2
      echo 'built with OpenSSL 3.0.13' >&2
      echo 'TLS SNI support enabled' >&2
      echo 'configure arguments: --with-http_ssl_module --with-http_v2_module --with-http_realip_module' \
        '--with-http_auth_request_module --with-http_sub_module --with-http_gunzip_module' \
        '--with-http_gzip_static_module --with-http_stub_status_module --with-threads' >&2
      exit 0 ;;
    -p) prefix=$2; shift ;;
    -c) file=$2; shift ;;
    -s | -t | -T) exit 0 ;;
  esac
  shift
done
cd "$prefix" || exit 1
"$CATAMARAN_BIN" import --kind nginx --force --out front.toml "$file" >"$KEEP/import" 2>&1
# nginx has one worker unless its file says otherwise, and tests count the connections to backends that take one at a time.
grep -q '^\[server\]$' front.toml || sed -i '1i [server]' front.toml
sed -i 's/^\[server\]$/&\nworkers = 1/' front.toml
cp "$file" front.toml "$KEEP"
"$CATAMARAN_BIN" check --config front.toml >"$KEEP/check" 2>&1 || { touch "$KEEP/refused"; exit 1; }
: >error.log >"$KEEP/serve"
echo $$ >nginx.pid.new
(
  # The tests wait for this file as long themselves.
  for _ in $(seq 100); do
    grep -q '^listening' "$KEEP/serve" && break
    sleep .05
  done
  sleep .1
  mv nginx.pid.new nginx.pid
) &
exec "$CATAMARAN_BIN" serve --config front.toml --access-log off >"$KEEP/serve" 2>&1
