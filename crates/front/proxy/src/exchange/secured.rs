//! A listener's support for `https://`: it redirects clients that come in clear text, and answers
//! ACME's challenges, by which certificates are issued.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use catamaran_message::{Authority, Target};
use rustix::fs::OFlags;

use crate::config::ListenerConfig;
use crate::tls::acme::memory::MemoryFiles;

/// Whether a path, as received, is below that of ACME's challenges.
pub(crate) fn is_challenge(path: &[u8]) -> bool {
    path.starts_with(CHALLENGES)
}

/// The files that may have the answer to a challenge (RFC 8555, section 8.3), the operator's first. `None` if the path
/// names no token.
pub(crate) fn challenge_files(listener: &ListenerConfig, path: &[u8]) -> Option<Vec<PathBuf>> {
    let token = std::str::from_utf8(path.strip_prefix(CHALLENGES)?).ok()?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(is_allowed) {
        return None;
    }
    // `join` would take a path with a slash at its beginning instead of the web root.
    let folder = std::str::from_utf8(CHALLENGES)
        .ok()?
        .trim_start_matches('/');
    let webroot = listener.acme_webroot.iter();
    let of_webroot = webroot.map(|webroot| webroot.join(folder).join(token));
    let of_front = listener
        .acme_pending
        .iter()
        .map(|pending| pending.join(token));
    Some(of_webroot.chain(of_front).collect())
}

/// Reads the answer to a challenge from the first of these files that exists, on a thread for blocking calls; `None`:
/// none does. `memory`: the files that the disk does not take.
pub(crate) async fn read_challenge(files: Vec<PathBuf>, memory: &MemoryFiles) -> Option<Bytes> {
    let mut kept = files.iter().filter_map(|file| memory.file(file).flatten());
    if let Some(bytes) = kept.next() {
        return Some(bytes.into());
    }
    let read = tokio::task::spawn_blocking(move || files.iter().find_map(|file| answer_in(file)));
    read.await.ok().flatten()
}

fn answer_in(file: &Path) -> Option<Bytes> {
    // Opening a FIFO would wait for its writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(flags).open(file).ok()?;
    if !opened.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(ANSWER_MAX).read_to_end(&mut bytes).ok()?;
    Some(Bytes::from(bytes))
}

/// The URL of `https://` to which a request in clear text is redirected.
pub(crate) fn location(authority: &Authority, target: &Target, port: u16) -> Vec<u8> {
    let mut location = b"https://".to_vec();
    location.extend_from_slice(&authority.host);
    if port != 443 {
        location.push(b':');
        location.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
    }
    // `*` of OPTIONS has no place in a URL.
    if target.path.starts_with(b"/") {
        location.extend_from_slice(&target.path);
    } else {
        location.push(b'/');
    }
    if let Some(query) = &target.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    location
}

const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// The longest token that is looked up, in bytes.
const TOKEN_MAX: usize = 256;

/// The largest file of an answer, in bytes. An answer is a token, a dot and a digest.
const ANSWER_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ListenAddress;

    #[test]
    fn only_tokens_name_files() {
        let listener = ListenerConfig {
            acme_webroot: Some(PathBuf::from("/srv")),
            acme_pending: vec![PathBuf::from("/var/lib/acme/pending")],
            ..ListenerConfig::new(ListenAddress::Unix("front.sock".into()))
        };
        let file = |path: &str| challenge_files(&listener, path.as_bytes());
        let expected = [
            "/srv/.well-known/acme-challenge/aB0-_",
            "/var/lib/acme/pending/aB0-_",
        ];
        assert_eq!(
            file("/.well-known/acme-challenge/aB0-_"),
            Some(expected.map(PathBuf::from).to_vec())
        );
        for other in ["", "..", "a/b", "../../etc/passwd", "%2e%2e", "a.b", "a\0"] {
            let path = format!("/.well-known/acme-challenge/{other}");
            assert_eq!(file(&path), None, "{other}");
            assert!(is_challenge(path.as_bytes()));
        }
        assert_eq!(
            file(&format!("/.well-known/acme-challenge/{}", "a".repeat(257))),
            None
        );
        assert!(!is_challenge(b"/.well-known/"));
    }
}
