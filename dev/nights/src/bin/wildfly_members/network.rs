//! Makes a network: a bridge with the front's addresses, and a namespace for each node.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// The address at which the front serves clients.
pub(crate) const FRONT: ([u8; 4], u16) = ([10, 77, 0, 1], 8000);
/// The address at which the front listens for nodes.
pub(crate) const MCMP: ([u8; 4], u16) = ([10, 77, 0, 1], 6666);
/// An address in the same network that belongs to no node.
pub(crate) const STRANGER: [u8; 4] = [10, 77, 0, 9];

/// Makes the bridge, and a namespace for each of these last numbers of an address.
pub(crate) fn build(hosts: &[u8]) -> anyhow::Result<()> {
    // `ip netns` keeps the names of namespaces in /run.
    run("mount", "-t tmpfs tmpfs /run")?;
    for words in [
        "link set lo up",
        // Without IGMP snooping the bridge sends multicasts to all ports.
        "link add name br0 type bridge mcast_snooping 0",
        "addr add 10.77.0.1/24 dev br0",
        "addr add 10.77.0.9/24 dev br0",
        "link set br0 up",
        "route add 224.0.0.0/4 dev br0",
    ] {
        run("ip", words)?;
    }
    hosts.iter().try_for_each(|host| {
        let words = format!(
            "netns add n{host}
             link add v{host} type veth peer name eth0 netns n{host}
             link set v{host} master br0 up
             -n n{host} link set lo up
             -n n{host} addr add 10.77.0.{host}/24 dev eth0
             -n n{host} link set eth0 up
             -n n{host} route add 224.0.0.0/4 dev eth0"
        );
        words.lines().try_for_each(|line| run("ip", line))
    })
}

/// A command that runs a program in the namespace of a host; the caller adds its arguments.
pub(crate) fn at(host: u8, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("n{host}"), program]);
    command
}

/// One of the addresses above as a socket address.
pub(crate) fn address(of: ([u8; 4], u16)) -> SocketAddr {
    of.into()
}

/// Runs a program with these words, which spaces separate; another status than 0 is an error.
fn run(program: &str, words: &str) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {words}: {errors}");
    Ok(())
}
