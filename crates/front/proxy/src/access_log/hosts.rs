//! The access logs of hosts that have one of their own, and the choice of the log for a request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AccessLog, Record};

/// The logs of the hosts that have one of their own.
#[derive(Debug, Default)]
pub(super) struct HostLogs {
    logs: Vec<(PathBuf, Arc<AccessLog>)>,
    /// The index of a log in `logs`, by the name of the host in lower case.
    exact: HashMap<String, usize>,
    /// For each pattern `*.example.org` the ending `.example.org` and the index of its log; the longest first.
    below: Vec<(String, usize)>,
}

impl HostLogs {
    pub(super) fn add(&mut self, path: &Path, log: Arc<AccessLog>, hosts: &[String]) {
        let index = self.logs.len();
        self.logs.push((path.to_owned(), log));
        for host in hosts {
            match host.strip_prefix('*') {
                Some(below) => self.below.push((below.to_owned(), index)),
                None => {
                    self.exact.insert(host.clone(), index);
                }
            }
        }
        self.below
            .sort_by_key(|(below, _)| std::cmp::Reverse(below.len()));
    }

    /// The log of the host that a request asked for; `None` if that host has no log of its own.
    pub(super) fn of(&self, record: &Record<'_>) -> Option<&AccessLog> {
        let host = std::str::from_utf8(record.request?.host?).ok()?;
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => name,
            _ => host,
        };
        let name = without_port
            .strip_suffix('.')
            .unwrap_or(without_port)
            .to_ascii_lowercase();
        let below = || {
            let mut below = self.below.iter();
            let found = below.find(|(below, _)| name.ends_with(below.as_str()))?;
            Some(found.1)
        };
        let index = self.exact.get(&name).copied().or_else(below)?;
        Some(&self.logs[index].1)
    }

    pub(super) fn find(&self, path: &Path) -> Option<&Arc<AccessLog>> {
        let found = self.logs.iter().find(|(its, _)| its == path);
        found.map(|(_, log)| log)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<AccessLog>> {
        self.logs.iter().map(|(_, log)| log)
    }
}
