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
    endings: Vec<(String, usize)>,
}

impl HostLogs {
    /// Adds the log of these hosts. A host `*.example.org` stands for all names that end in `.example.org`.
    pub(super) fn add(&mut self, path: &Path, log: Arc<AccessLog>, hosts: &[String]) {
        let index = self.logs.len();
        self.logs.push((path.to_owned(), log));
        for host in hosts {
            match host.strip_prefix('*') {
                Some(ending) => self.endings.push((ending.to_owned(), index)),
                None => {
                    self.exact.insert(host.clone(), index);
                }
            }
        }
        self.endings
            .sort_by_key(|(ending, _)| std::cmp::Reverse(ending.len()));
    }

    /// The log of the host that a request asked for; `None` if that host has no log of its own.
    pub(super) fn of(&self, record: &Record<'_>) -> Option<&AccessLog> {
        let host = std::str::from_utf8(record.request?.host?).ok()?;
        let without_port = match host.rsplit_once(':') {
            // A colon before `]` is part of an IPv6 address.
            Some((name, port)) if !port.contains(']') => name,
            _ => host,
        };
        // `example.org.` is the same host as `example.org`.
        let without_dot = without_port.strip_suffix('.').unwrap_or(without_port);
        let name = without_dot.to_ascii_lowercase();
        let index = match self.exact.get(&name) {
            Some(index) => *index,
            None => {
                let mut endings = self.endings.iter();
                let (_, index) = endings.find(|(ending, _)| name.ends_with(ending.as_str()))?;
                *index
            }
        };
        Some(&self.logs[index].1)
    }

    /// The log that is written to this file.
    pub(super) fn find(&self, path: &Path) -> Option<&Arc<AccessLog>> {
        let found = self.logs.iter().find(|(its, _)| its == path);
        found.map(|(_, log)| log)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<AccessLog>> {
        self.logs.iter().map(|(_, log)| log)
    }
}
