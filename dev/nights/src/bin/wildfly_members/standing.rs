//! Reads the state of nodes from the front: by MCMP, and by the admin API.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::Front;
use catamaran_testkit::{Deadline, Expired, HttpClient};
use serde_json::Value;

use crate::network::{self, MCMP};
use crate::node::PATIENCE;

/// The state of a member in the front's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) speech: String,
    pub(crate) address: String,
    /// `active`, `drain`, `stopped` and so on.
    pub(crate) state: String,
    /// From where the front knows the member.
    pub(crate) source: String,
}

/// The state of a node; `None` if the front does not know it.
pub(crate) fn stands(front: &Front, name: &str) -> Option<Standing> {
    let path = format!("/api/v1/upstreams/wildfly/backends/{name}");
    let answer = front.ask_admin(&path).ok()?;
    let value: Value = serde_json::from_slice(&answer.body).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Standing {
        speech: text(&value["protocol"])?,
        address: text(&value["address"])?,
        state: text(&value["found"]["state"])?,
        source: text(&value["found"]["from"])?,
    })
}

/// The status of `/demo` on a node, as the front reports it by MCMP: `ENABLED`, `DISABLED` or `STOPPED`.
pub(crate) fn context(name: &str) -> anyhow::Result<Option<String>> {
    let mut client = HttpClient::connect(network::address(MCMP))?;
    let told = client
        .ask(b"INFO / HTTP/1.1\r\nHost: front\r\nConnection: close\r\n\r\n")?
        .text();
    let node = told.lines().find_map(|line| {
        let (number, rest) = line.strip_prefix("Node: [")?.split_once("],Name: ")?;
        rest.starts_with(&format!("{name},")).then_some(number)
    });
    let Some(number) = node else { return Ok(None) };
    let start = format!("Context: [{number}:1:1], Context: /demo, Status: ");
    let mut lines = told.lines();
    Ok(lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned)))
}

/// Waits until a context has this status; with `None`, until the front does not know the node.
pub(crate) fn wait_for_context(name: &str, status: Option<&str>) -> anyhow::Result<()> {
    let event = format!("/demo of {name} to be {}", status.unwrap_or("gone"));
    let has_status = || {
        thread::park_timeout(PAUSE);
        let known = context(name).ok()?;
        (known.as_deref() == status).then_some(())
    };
    Ok(Deadline::after(PATIENCE).poll(event, has_status)?)
}

/// Waits until the front has no member with this name.
pub(crate) fn wait_until_gone(front: &Front, name: &str) -> Result<(), Expired> {
    let gone = || stands(front, name).is_none().then_some(());
    Deadline::after(PATIENCE).poll(format!("{name} to be no member"), gone)
}

/// Waits until nodes have sent this command so often to the process that serves.
pub(crate) fn wait_for_messages(front: &Front, command: &str, count: u64) -> anyhow::Result<()> {
    let are_there = || {
        thread::park_timeout(PAUSE);
        let labels = format!("upstream=\"wildfly\",command=\"{command}\"");
        let messages = sample(front, "catamaran_mcmp_messages_total", &labels).ok()?;
        (messages >= count).then_some(())
    };
    let event = format!("{count} times {command} of nodes");
    Ok(Deadline::after(PATIENCE).poll(event, are_there)?)
}

/// Waits until a node serves, and returns its state.
pub(crate) fn wait_until_active(front: &Front, name: &str) -> anyhow::Result<Standing> {
    wait_for_context(name, Some("ENABLED"))?;
    let active = || stands(front, name).filter(|it| it.state == "active");
    let what = format!("{name} to be active");
    Ok(Deadline::after(PATIENCE).poll(what, active)?)
}

/// How many messages were refused for this reason.
pub(crate) fn refused(front: &Front, reason: &str) -> anyhow::Result<u64> {
    let labels = format!("upstream=\"wildfly\",reason=\"{reason}\"");
    sample(front, "catamaran_mcmp_refused_total", &labels)
}

/// The value of one sample of `/metrics`; 0 if the page does not have it.
fn sample(front: &Front, name: &str, labels: &str) -> anyhow::Result<u64> {
    let name = format!("{name}{{{labels}}} ");
    let page = front.ask_admin("/metrics")?.text();
    let value = page.lines().find_map(|line| line.strip_prefix(&name));
    value.map_or(Ok(0), |value| value.parse().context("a number"))
}

/// The metrics of MCMP and of members, for the transcript.
pub(crate) fn summary(front: &Front) -> anyhow::Result<Vec<String>> {
    let page = front.ask_admin("/metrics")?.text();
    let samples = page
        .lines()
        .filter(|line| line.starts_with("catamaran_mcmp_"));
    let mut lines: Vec<String> = samples.map(str::to_owned).collect();
    let answer = front.ask_admin("/api/v1/events")?;
    let document: Value = serde_json::from_slice(&answer.body)?;
    let events = document["events"].as_array().context("a list of events")?;
    lines.extend(events.iter().filter_map(|event| {
        let (node, text) = (event["backend"].as_str()?, event["text"].as_str()?);
        Some(format!("event: {node} {text}"))
    }));
    Ok(lines)
}

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(20);
