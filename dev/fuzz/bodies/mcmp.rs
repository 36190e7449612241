//! Checks the messages of nodes (MCMP), and the list of members that follows from them.
//!
//! Plain functions that panic on a finding: the fuzz target calls them, and so does the replay of the
//! committed corpus in the crate's own tests.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use catamaran_discover::Answer;
use catamaran_discover::mcmp::message::Message;
use catamaran_discover::mcmp::nodes::{NodeRules, Nodes};

/// Lines, each with a command, a path and a form. Whatever they say, names must be fit for a log, the list must stay
/// within its limits, and an answer must be one line of text.
pub(crate) fn messages(input: &[u8]) {
    let mut nodes = Nodes::default();
    let rules = NodeRules {
        may_be_member: &|host| !host.is_empty(),
        in_flight: &|_| 1,
        nodes_max: 3,
    };
    let peers = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)].map(IpAddr::V4);
    for (second, line) in (0..).zip(input.split(|byte| *byte == b'\n')) {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let command = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let path = parts.next().unwrap_or_default();
        let form = parts.next().unwrap_or_default();
        let Ok(message) = Message::parse(&command, path, form) else {
            continue;
        };
        if let Some(route) = message.route() {
            assert!(
                !route.is_empty() && route.bytes().all(|byte| byte.is_ascii_graphic()),
                "{route:?}"
            );
        }
        let peer = peers[usize::from(line.len() % 2 == 1)];
        let now = Duration::from_secs(second);
        nodes.expire(now);
        if let Ok(reply) = nodes.handle(&message, peer, now, &rules) {
            let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\n';
            assert!(reply.text.bytes().all(is_plain), "{:?}", reply.text);
        }
    }
    if let Answer::Members { found, .. } = nodes.answer() {
        assert!(found.len() <= 3);
        assert!(found.iter().all(|member| member.contexts.len() <= 100));
    }
}
