//! What happens to files while they are sent, and names that are to do harm.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_proxy::config::FilesConfig;
use catamaran_testkit::{Failure, HttpClient, without_override};

use super::{Client, Tree, address, front, pattern};
use crate::wait_for_reason;

/// A file that shrinks, or is written to, while it is sent is cut, and the client sees that.
#[test]
fn a_file_that_is_changed_while_it_is_sent_is_cut_visibly() {
    let tree = Tree::new();
    let path = tree.root().join("large");
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let changes: [fn(&File); 3] = [
        |file| file.set_len(1 << 20).unwrap(),
        |file| file.set_len(0).unwrap(),
        |file| file.set_len(2 * LARGE as u64).unwrap(),
    ];
    for change in changes {
        File::create(&path).unwrap().set_len(LARGE as u64).unwrap();
        let mut client = HttpClient::connect(address(&running)).unwrap();
        client
            .send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let head = client.receive_head().unwrap();
        assert_eq!(head.status, 200);
        change(&File::options().write(true).open(&path).unwrap());
        let received = client.receive_to_end();
        let whole = received.is_ok_and(|bytes| bytes.len() >= LARGE);
        assert!(!whole, "all of a file that is none");
    }
    wait_for_reason(&running, "front:file-changed");
}

/// While files are replaced, truncated and written to, nobody gets a whole response of mixed bytes: a page
/// that is replaced by rename is always of one version.
#[test]
fn pages_are_whole_while_they_are_replaced() {
    let tree = Tree::new();
    let (page, next) = (tree.root().join("swapped"), tree.root().join("next"));
    fs::write(&page, "a".repeat(50_000)).unwrap();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for letter in "abcdefgh".chars().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let text = letter.to_string();
                fs::write(
                    &next,
                    text.repeat(40_000 + 1000 * usize::from(letter as u8 - b'a')),
                )
                .unwrap();
                fs::rename(&next, &page).unwrap();
            }
        });
        let mut client = HttpClient::connect(address).unwrap();
        for _ in 0..500 {
            let got = client
                .ask(b"GET /swapped HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            assert_eq!(got.status, 200);
            let first = got.body[0];
            assert!(got.body.iter().all(|byte| *byte == first), "a mixed page");
            let is_first = got.body.len() == 50_000 && first == b'a';
            let expected = 40_000 + 1000 * usize::from(first - b'a');
            assert!(is_first || got.body.len() == expected, "{}", got.body.len());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn names_that_are_to_do_harm_show_nothing() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    for path in [
        "/..;/outside/secret.txt",
        "/dir/..;/..;/outside/secret.txt",
        "/%2e%2e%2foutside/secret.txt",
        "/%252e%252e/outside/secret.txt",
        "/.%2e/outside/secret.txt",
        "/dir/%2e%2e/%2e%2e/outside/secret.txt",
        "/..%5coutside/secret.txt",
        "/..%c0%afoutside/secret.txt",
        "/link-dir-out/secret.txt",
        "/link-out",
        "/page.html%00",
        "/page.html%0a",
        "/WEB-INF/web.xml",
        "/web-inf/web.xml",
        "/WEB-INF%2fweb.xml",
        "/%57EB-INF/web.xml",
        "/dir/../WEB-INF/web.xml",
        "/WEB-INF//web.xml",
        "/.secret",
        "/%2esecret",
        "/fifo",
        "/dir2/index.html/",
        "/proc/self/environ",
    ] {
        for client in Client::BOTH {
            let got = client.get(address, path);
            assert!(
                [400, 404].contains(&got.status),
                "{client:?} {path}: {}",
                got.status
            );
            let body = String::from_utf8_lossy(&got.body);
            assert!(!body.contains("OUTSIDE"), "{client:?} {path}");
        }
    }
    // The others are served.
    assert_eq!(Client::Http1.get(address, "/page.html").body, pattern(1456));
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let tree = Tree::new();
    let path = tree.root().join("page.html");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Workers and their threads are the starter's: they have no more rights than it.
    let running = without_override(|| front(FilesConfig::new(tree.root()), |_| {}));
    assert_eq!(
        Client::Http1.get(address(&running), "/page.html").status,
        403
    );
    wait_for_reason(&running, "front:files-denied");
}

/// A client that does not read holds a descriptor and little memory, and others are served.
#[test]
fn a_client_that_reads_nothing_is_waited_for_alone() {
    let tree = Tree::new();
    File::create(tree.root().join("large"))
        .unwrap()
        .set_len(LARGE as u64)
        .unwrap();
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.server.workers = 1.try_into().unwrap();
    });
    let mut client = HttpClient::connect(address(&running)).unwrap();
    client
        .send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(client.receive_head().unwrap().status, 200);
    assert_eq!(running.counters().files_open, 1);
    for _ in 0..10 {
        let got = Client::Http2.get(address(&running), "/page.html");
        assert_eq!(got.body, pattern(1456));
    }
    drop(client);
    catamaran_testkit::Deadline::default()
        .poll("its end", || {
            (running.counters().files_open == 0).then_some(())
        })
        .unwrap();
}

/// Requests one after the other on a connection: HEAD, 304, 206 and errors leave it in order.
#[test]
fn a_connection_is_kept_after_every_kind_of_answer() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let mut client = HttpClient::connect(address(&running)).unwrap();
    let mut ask = |lines: &str| -> Result<u16, Failure> {
        let request = format!("{lines} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.ask(request).map(|response| response.status)
    };
    for (lines, status) in [
        ("GET /page.html", 200),
        ("GET /none", 404),
        ("GET /dir2", 308),
        ("GET /empty.txt", 200),
        ("DELETE /page.html", 405),
        ("GET /page.html", 200),
    ] {
        assert_eq!(ask(lines).unwrap(), status, "{lines}");
    }
}

/// More than the kernel takes for two sockets.
const LARGE: usize = 64 << 20;
