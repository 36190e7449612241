//! Files over TLS, by HTTP/1.1 and HTTP/2: the bodies are sealed, whatever their size.

use std::fs;

use catamaran_testkit::Response;
use catamaran_testkit::files::{FileCase, FileTree};

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

/// What curl gets, as a response.
fn ask(
    site: &Site,
    protocol: &str,
    case: &FileCase,
    fields: &[(&'static str, String)],
) -> Response {
    let lines: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let mut options = vec![protocol, "--include", "--path-as-is", "--globoff"];
    match case.method {
        "HEAD" => options.push("--head"),
        method => options.extend(["--request", method]),
    }
    options.extend(lines.iter().flat_map(|line| ["--header", line]));
    let (_, bytes) = site.curl("a.test", case.path, &options);
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..end]);
    let (first, lines) = head.split_once("\r\n").unwrap();
    let fields = lines.lines().filter_map(|line| line.split_once(": "));
    Response {
        status: first.split(' ').nth(1).unwrap().parse().unwrap(),
        headers: fields
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect(),
        body: bytes[end + 4..].to_vec(),
        ..Response::default()
    }
}

/// The requests that are also asked in clear, with what they are to be answered.
#[test]
fn every_kind_of_request_is_answered_over_tls_as_in_clear() {
    let tree = FileTree::new();
    let tables = format!(
        "[[upstream.app.backend]]\nurl = \"http://127.0.0.1:1\"\n\
         [[route]]\nhost = \"a.test\"\nfiles = \"{}\"\n",
        tree.root().display()
    );
    let site = site_before(&tables, "");
    let mut wrong = Vec::new();
    for protocol in ["--http1.1", "--http2"] {
        for case in FileCase::ALL {
            let fields = case.fields(|fields| ask(&site, protocol, &case.head(), fields));
            let answer = ask(&site, protocol, case, &fields);
            if let Err(why) = case.judge(&answer) {
                wrong.push(format!("{protocol} {}: {why}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// More than sockets and records hold at a time.
const LARGE: usize = 8 << 20;
