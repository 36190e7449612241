//! A listener's support for `https://`: it redirects clients that come in clear text, and answers
//! ACME's challenges, by which certificates are issued.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use catamaran_message::{Authority, Target};
use rustix::fs::OFlags;

/// Whether a path, as received, is below that of ACME's challenges.
pub(crate) fn is_challenge(path: &[u8]) -> bool {
    path.starts_with(CHALLENGES)
}

/// The file with the answer to a challenge (RFC 8555, section 8.3). `None` if the path names no
/// token.
pub(crate) fn challenge_file(webroot: &Path, path: &[u8]) -> Option<PathBuf> {
    let token = std::str::from_utf8(path.strip_prefix(CHALLENGES)?).ok()?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(is_allowed) {
        return None;
    }
    let folder = std::str::from_utf8(CHALLENGES).ok()?;
    // `join` would take a path with a slash at its beginning instead of the web root.
    Some(webroot.join(folder.trim_start_matches('/')).join(token))
}

/// Reads the answer to a challenge on a thread for blocking calls; `None`: there is none.
pub(crate) async fn read_challenge(file: PathBuf) -> Option<Bytes> {
    let read = tokio::task::spawn_blocking(move || {
        // Opening a FIFO would wait for its writer.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(file).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(ANSWER_MAX).read_to_end(&mut bytes).ok()?;
        Some(Bytes::from(bytes))
    });
    read.await.ok().flatten()
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

    #[test]
    fn only_tokens_name_files() {
        let file = |path: &str| challenge_file(Path::new("/srv"), path.as_bytes());
        assert_eq!(
            file("/.well-known/acme-challenge/aB0-_"),
            Some(PathBuf::from("/srv/.well-known/acme-challenge/aB0-_"))
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
