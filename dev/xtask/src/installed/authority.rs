//! Pebble, Let's Encrypt's authority for tests, in the clean root, where `www.example.org` leads to the root itself.

use std::path::Path;

use anyhow::Context as _;

use super::root::CleanRoot;
use crate::needs;

/// Starts it with its DNS server, and waits until it answers.
pub(super) fn start(clean: &CleanRoot) -> anyhow::Result<()> {
    needs::make_go_programs()?;
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    for program in ["pebble", "pebble-challtestsrv"] {
        clean.lend(&Path::new(&home).join(".cache/catamaran/go").join(program))?;
    }
    clean.run(START).map(drop)
}

/// Ends it, and removes what it has left outside of root's home.
pub(super) fn end(clean: &CleanRoot) -> anyhow::Result<()> {
    clean.run(END).map(drop)
}

/// The keys of `[tls.NAME.acme]` for it.
pub(super) const KEYS: &str =
    "directory = \"https://127.0.0.1:14000/dir\"\nca_file = \"/etc/ssl/trial.pem\"\n";

const END: &str = "set -e
systemctl stop trial-authority trial-dns
rm /etc/ssl/trial.pem /etc/hosts
test ! -e authority/hosts || mv authority/hosts /etc/hosts
";

/// The certificate of its server must be that of an authority's leaf.
const START: &str = r#"set -e
mkdir authority
cd authority
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=trial -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=authority -keyout server.key -out server.csr
echo subjectAltName=IP:127.0.0.1 > server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile server.ext -out server.pem
install -m 644 ca.pem /etc/ssl/trial.pem
cat > pebble.json <<'END'
{"pebble": {
  "listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000",
  "certificate": "server.pem", "privateKey": "server.key", "httpPort": 80, "tlsPort": 443,
  "ocspResponderURL": "", "externalAccountBindingRequired": false
}}
END
test ! -e /etc/hosts || cp /etc/hosts hosts
echo 127.0.0.1 www.example.org example.org >> /etc/hosts
systemd-run --quiet --unit=trial-dns /root/pebble-challtestsrv -http01 '' -https01 '' -tlsalpn01 '' -doh '' \
  -dnsserver 127.0.0.1:8053 -management 127.0.0.1:8055 -defaultIPv4 127.0.0.1 -defaultIPv6 ''
systemd-run --quiet --unit=trial-authority --working-directory=/root/authority --setenv=PEBBLE_VA_NOSLEEP=1 \
  /root/pebble -config pebble.json -dnsserver 127.0.0.1:8053
curl --silent --fail --retry 60 --retry-connrefused --cacert ca.pem --output directory https://127.0.0.1:14000/dir
"#;
