//! Files over TLS, by HTTP/1.1 and HTTP/2: the bodies are sealed, whatever their size.

use std::fs;

use super::{Site, site_before};

/// Lines of a head that curl prints, by name.
fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.trim())
}

fn site_of_files(directory: &std::path::Path) -> Site {
    let tables = format!(
        "[[upstream.app.backend]]\nurl = \"http://127.0.0.1:1\"\n\
         [[route]]\npath = \"/files\"\nrewrite = \"/\"\nfiles = \"{}\"\n",
        directory.display()
    );
    site_before(&tables, "")
}

#[test]
fn files_are_served_over_tls_by_both_protocols() {
    let directory = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..LARGE).map(|at| (at % 251) as u8).collect();
    for (name, bytes) in [
        ("page.html", &b"<!doctype html>"[..]),
        ("empty.txt", b""),
        ("large.bin", &large),
    ] {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    let site = site_of_files(directory.path());
    for (protocol, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let ask = |path: &str, options: &[&str]| {
            let options = [&[protocol], options].concat();
            site.curl("a.test", path, &options)
        };
        for (path, expected) in [
            ("/files/page.html", &b"<!doctype html>"[..]),
            ("/files/empty.txt", b""),
            ("/files/large.bin", &large),
        ] {
            let (status, body) = ask(path, &[]);
            assert_eq!(status, "200", "{protocol} {path}");
            assert!(body == expected, "{protocol} {path}: {} bytes", body.len());
        }
        let range = format!("{}-{}", LARGE - 70_000, LARGE - 1);
        let (status, body) = ask("/files/large.bin", &["--range", &range]);
        assert_eq!(status, "206", "{protocol}");
        assert!(body == large[LARGE - 70_000..], "{protocol}");

        let (status, head) = ask("/files/large.bin", &["--head"]);
        let head = String::from_utf8(head).unwrap();
        assert_eq!(status, "200", "{protocol}");
        assert!(head.starts_with(&format!("HTTP/{version} ")), "{head}");
        assert_eq!(field(&head, "content-length"), LARGE.to_string(), "{head}");
        let known = format!("If-None-Match: {}", field(&head, "etag"));
        let (status, body) = ask("/files/large.bin", &["--header", &known]);
        assert_eq!((&*status, body.len()), ("304", 0), "{protocol}");
        assert_eq!(ask("/files/none", &[]).0, "404", "{protocol}");
    }
}

/// More than sockets and records hold at a time.
const LARGE: usize = 8 << 20;
