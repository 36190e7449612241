//! docs/tls.md: from the package to https with a certificate by ACME.

use catamaran_testkit::tls::Authority;

use super::{Reader, block};

/// The package is there already, as `catamaran` in the path, and what systemd does is done by the shell.
#[test]
fn five_commands_from_the_package_to_a_certificate() {
    let page = include_str!("../../../../../docs/tls.md");
    let (_, commands) = page.split_once("```\napt-get ").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    assert_eq!(commands.lines().count(), 5, "{commands}");
    let reader = Reader::new();
    for program in ["pebble", "pebble-challtestsrv"] {
        reader.has_go_program(program);
    }
    let directory = reader.directory.path();
    // The server's certificate must be that of an authority's leaf.
    let authority = Authority::new("of-pebble").unwrap();
    authority
        .issue(directory, "server", &["127.0.0.1"])
        .unwrap();
    reader.saves("ca.pem", &authority.pem());
    reader.saves("pebble.json", PEBBLE);
    let keys = format!(
        "directory = \"https://127.0.0.1:14000/dir\"\nca_file = \"{}/ca.pem\"\nterms_agreed",
        directory.display()
    );
    let file = block(page, "toml", 0).replace("terms_agreed", &keys);
    reader.saves("tls.toml", &file);
    let typed = format!("apt-get {commands}")
        .replace("/etc/catamaran", "/etc/ssl/catamaran")
        .replace("curl --fail", "curl --silent --insecure --fail");
    let printed = reader.types(&format!(
        "echo 127.0.0.1 example.org >> hosts
         mount -t tmpfs tmpfs /var/lib
         mount -t tmpfs tmpfs /etc/ssl
         mkdir /var/lib/catamaran /etc/ssl/catamaran
         pebble-challtestsrv -http01 '' -https01 '' -tlsalpn01 '' -doh '' -dnsserver 127.0.0.1:8053 \
             -management 127.0.0.1:8055 -defaultIPv4 127.0.0.1 -defaultIPv6 '' > dns.log 2>&1 &
         PEBBLE_VA_NOSLEEP=1 pebble -config pebble.json -dnsserver 127.0.0.1:8053 > pebble.log 2>&1 &
         catamaran app --ajp 127.0.0.1:8009 --secret 'change me' 2> app.log &
         until (exec 3<> /dev/tcp/127.0.0.1/8055) 2> /dev/null; do sleep 0.1; done
         answer --cacert ca.pem https://127.0.0.1:14000/dir > directory
         apt-get() {{ echo \"apt-get $*\"; }}
         systemctl() {{
             echo \"systemctl $*\"
             catamaran serve --config /etc/ssl/catamaran/catamaran.toml > access.log 2> front.log &
         }}
         {typed}
         openssl s_client -connect 127.0.0.1:443 -servername www.example.org < /dev/null 2> look |
             openssl x509 -noout -issuer"
    ));
    let package = concat!("./catamaran_", env!("CARGO_PKG_VERSION"), "_amd64.deb");
    for expected in [
        &format!("apt-get install -y {package}")[..],
        "systemctl enable --now catamaran",
        "Pebble Intermediate CA",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

/// Pebble at the ports at which other authorities ask.
const PEBBLE: &str = r#"{"pebble": {
    "listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000",
    "certificate": "server.pem", "privateKey": "server.key", "httpPort": 80, "tlsPort": 443,
    "ocspResponderURL": "", "externalAccountBindingRequired": false
}}"#;
