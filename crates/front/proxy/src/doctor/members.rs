//! Checks of discovered members: those present now are checked like backends of the file, and a check tells what the
//! greatest allowed number of members would need.

use std::time::Duration;

use catamaran_discover::{Answer, Members, Rules, merge};
use catamaran_gauge::machine::{Check, Verdict};
use tokio::time::timeout;

use crate::config::{Config, MembersConfig, UpstreamConfig};

/// The outcome of asking one source for members.
#[derive(Debug)]
pub struct SourceReport {
    upstream: String,
    /// The reason why no members are known; `None`: the source answered well.
    failed: Option<String>,
}

/// Asks each source once, and adds the members that it names to the configuration.
///
/// # Errors
/// The event loop cannot be started.
pub fn find_members(config: &mut Config) -> std::io::Result<Vec<SourceReport>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut reports = Vec::new();
    for upstream in &mut config.upstreams {
        if let Some(members) = upstream.members.clone() {
            // The timeout needs the runtime when it is made, so it is made within `async`.
            let asking = async { timeout(ASK_MAX, members.source.ask()).await };
            let answer = runtime.block_on(asking).unwrap_or_else(|_| {
                Answer::Failed(format!("there was no answer within {ASK_MAX:?}"))
            });
            reports.push(add(upstream, &members, &answer));
        }
    }
    Ok(reports)
}

/// Adds the members that an answer names to the upstream, by the rules of a running front.
fn add(upstream: &mut UpstreamConfig, members: &MembersConfig, answer: &Answer) -> SourceReport {
    let rules = Rules {
        leave: Duration::ZERO,
        members_max: members.members_max,
        is_trusted: members.source.is_trusted(),
        is_own: &|_, _| false,
        is_taken: &|name| upstream.backends.iter().any(|it| it.name == name),
    };
    let merged = merge(&Members::default(), answer, Duration::ZERO, &rules);
    let found = merged.members.iter();
    upstream.found = found
        .filter_map(|member| members.backend(member).ok())
        .collect();
    SourceReport {
        upstream: upstream.name.clone(),
        failed: merged.kept,
    }
}

/// A check for each upstream with a source: the number of its members now, and whether there are enough files for
/// `members_max` of them.
///
/// `need` files are needed for the present configuration; `limit` is the most that may be open.
pub(super) fn checks(config: &Config, found: &[SourceReport], need: u64, limit: u64) -> Vec<Check> {
    let mut checks = Vec::new();
    for report in found {
        let mut upstreams = config.upstreams.iter();
        let Some(upstream) = upstreams.find(|it| it.name == report.upstream) else {
            continue;
        };
        let Some(members) = &upstream.members else {
            continue;
        };
        let (count, max) = (upstream.found.len(), members.members_max);
        let each = members.connections_max();
        let further_files = max.saturating_sub(count) * each;
        let most = need.saturating_add(further_files as u64);
        let subject = format!("members of {}", report.upstream);
        let value = match &report.failed {
            Some(reason) => format!("none known: {reason}"),
            None => format!("{count} by {}", members.source.token()),
        };
        let needed = format!(
            "{each} connections each; `members_max` = {max} of them need {most} open files, of which there may be {limit}"
        );
        let verdict = if report.failed.is_none() && most <= limit {
            Verdict::Enough
        } else {
            Verdict::Note
        };
        checks.push(Check::new(verdict, subject, value, needed));
    }
    checks
}

/// The longest time to wait for a source.
const ASK_MAX: Duration = Duration::from_secs(5);
