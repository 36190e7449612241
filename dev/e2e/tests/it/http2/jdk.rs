//! The client of the JDK, over TLS.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{HOSTS, Site};

#[test]
fn the_client_of_the_jdk_is_served() {
    let files = tempfile::tempdir().unwrap();
    let site = Site::new(files.path(), "");
    let hosts = files.path().join("hosts");
    fs::write(
        &hosts,
        HOSTS.map(|host| format!("127.0.0.1 {host}\n")).concat(),
    )
    .unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/http2/JdkClient.java");
    for host in HOSTS {
        let output = Command::new("java")
            .arg(format!("-Djdk.net.hosts.file={}", hosts.display()))
            .arg(&source)
            .arg(format!("https://{host}:{}", site.tls))
            .arg(files.path().join("chain.pem"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lengths: Vec<usize> = said
            .lines()
            .map(|line| line.strip_prefix("HTTP_2 200 ").unwrap().parse().unwrap())
            .collect();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(lengths.len(), 53, "{said}{failed}");
        assert_eq!(lengths[..2], [30_000, 3_000_000]);
        assert!(lengths[2] > 1_000_000, "its head comes before the body");
        assert!(lengths[3..].iter().all(|length| *length == 30_000));
    }
}
