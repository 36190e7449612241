//! Raises the limit of open files, which limits the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files as far as the system allows, and returns it; `None` if there
/// is no limit.
///
/// On most systems the soft limit is 1024 for the sake of programs that use `select`, which this one
/// does not.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    if raised.is_ok() { maximum } else { current }
}

/// Raises the limit of open files, and warns if it stays below `needed`. `remedy` says what would
/// help apart from raising it further.
pub(crate) fn raise_limit_to(needed: usize, remedy: &str) {
    if let Some(message) = shortage(raise_limit(), needed, remedy) {
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

/// The number of files that are open beside connections: listeners, logs and event queues.
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
