//! Sends what an attacker in the network of the nodes may send. The front must refuse and count each message by its
//! reason, and keep the nodes.

use anyhow::Context as _;
use catamaran_e2e::Front;
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, HttpClient, Response};

use crate::network::{self, MCMP, STRANGER};
use crate::standing::refused;

/// Sends all of it, and judges.
pub(crate) fn attack(front: &Front, verdict: &mut Verdict) -> anyhow::Result<()> {
    let forged = "JVMRoute=node1&Host=10.77.0.9&Port=1&Type=http";
    let taken = "JVMRoute=other&Host=10.77.0.2&Port=8009&Type=ajp";
    let outside = "JVMRoute=other&Host=192.0.2.1&Port=8009&Type=ajp";
    let without_port = "JVMRoute=x&Host=10.77.0.9";
    // What is sent: its name, command, path and form; then the reason that counts it, and the type of the refusal.
    #[rustfmt::skip]
    let messages = [
        ("CONFIG for a node of another address", "CONFIG", "/", forged, "forged", "MEM"),
        ("CONFIG at a node's address", "CONFIG", "/", taken, "forged", "MEM"),
        ("REMOVE-APP for a node of another address", "REMOVE-APP", "/*", "JVMRoute=node2", "forged", "MEM"),
        ("STATUS of a node that nobody announced", "STATUS", "/", "JVMRoute=x&Load=1", "unknown-node", "MEM"),
        ("CONFIG outside of `members`", "CONFIG", "/", outside, "network", "SYNTAX"),
        ("CONFIG without a port", "CONFIG", "/", without_port, "syntax", "SYNTAX"),
    ];
    for (message, command, path, form, reason, kind) in messages {
        let before = refused(front, reason)?;
        let answer = say(command, path, form)?;
        let refusal = (answer.status, answer.header("type").unwrap_or_default());
        let counted = refused(front, reason)? - before;
        verdict.judge(
            &format!("{message} is refused with {kind}, and counted as {reason}"),
            format!("{refusal:?}, counted {counted}"),
            refusal == (500, kind) && counted == 1,
        );
    }
    garbage(front, verdict)?;
    flood(front, verdict)
}

/// Judges what the front does with bytes that are no HTTP.
fn garbage(front: &Front, verdict: &mut Verdict) -> anyhow::Result<()> {
    let before = refused(front, "garbage")?;
    let mut client = connect()?;
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")?;
    let answer = client.receive();
    let counted = refused(front, "garbage")? - before;
    verdict.judge(
        "bytes that are no HTTP end the connection, and are counted as garbage",
        format!(
            "{}, counted {counted}",
            if answer.is_err() {
                "closed"
            } else {
                "answered"
            }
        ),
        answer.is_err() && counted == 1,
    );
    Ok(())
}

/// Judges that messages as fast as they are answered end their connection.
fn flood(front: &Front, verdict: &mut Verdict) -> anyhow::Result<()> {
    let before = refused(front, "flood")?;
    let mut client = connect()?;
    let request = request("STATUS", "/", "JVMRoute=nobody&Load=1");
    let mut answered = 0;
    while answered < FLOOD_MAX
        && client.send(request.as_bytes()).is_ok()
        && client.receive().is_ok()
    {
        answered += 1;
    }
    let has_counted = || (refused(front, "flood").ok()? == before + 1).then_some(());
    let counted = Deadline::default().poll("the count of floods", has_counted);
    verdict.judge(
        "a flood of STATUS ends its connection, and is counted as flood",
        format!("{answered} were answered"),
        answered < FLOOD_MAX && counted.is_ok(),
    );
    Ok(())
}

fn say(command: &str, path: &str, form: &str) -> anyhow::Result<Response> {
    let mut client = connect()?;
    client.send(request(command, path, form).as_bytes())?;
    client.receive().with_context(|| command.to_owned())
}

fn request(command: &str, path: &str, form: &str) -> String {
    let length = form.len();
    format!("{command} {path} HTTP/1.1\r\nHost: front\r\nContent-Length: {length}\r\n\r\n{form}")
}

/// Connects from an address that is among `peers` and is no node's.
fn connect() -> anyhow::Result<HttpClient> {
    let connected = HttpClient::connect_from(STRANGER.into(), network::address(MCMP));
    connected.context("the listener for nodes")
}

/// Far more messages than a node sends when it joins.
const FLOOD_MAX: u32 = 100_000;
