//! The limit of open files, which is the limit of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system lets us, and warns when `needed` may not be
/// had, with what else than raising the limit would help. The soft limit is 1024 on most systems for the sake of programs that use `select`; this
/// one does not.
pub(crate) fn raise_limit(needed: usize, remedy: &str) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is "no limit", as far as Linux knows that for files.
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    let limit = if raised.is_ok() { maximum } else { current };
    if let Some(message) = shortage(limit, needed, remedy) {
        tracing::warn!("{message}");
    }
}

fn shortage(limit: Option<u64>, needed: usize, remedy: &str) -> Option<String> {
    let limit = limit.filter(|&limit| limit < needed as u64)?;
    Some(format!(
        "{limit} files may be open, but {needed} would be with every connection in use; raise the \
         limit (`ulimit -Hn`, systemd: LimitNOFILE) or {remedy}"
    ))
}

/// Files open besides connections: listeners, logs, event queues.
pub(crate) const BESIDES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_only_of_a_shortage() {
        assert_eq!(shortage(None, 5000, ""), None);
        assert_eq!(shortage(Some(5000), 5000, ""), None);
        let message = shortage(Some(4096), 5000, "serve less").unwrap();
        assert!(
            message.starts_with("4096 files may be open, but 5000 would be"),
            "{message}"
        );
    }
}
