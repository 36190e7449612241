//! The events of the day.

use std::net::TcpStream;
use std::time::Duration;

use catamaran_testkit::{Signal, signal_process};

use crate::servers::CONNECTIONS_MAX;
use crate::stage::Stage;

/// One thing that happens.
pub(crate) struct Event {
    pub(crate) title: &'static str,
    /// How long it lasts.
    pub(crate) lasts: Duration,
    /// Words by which `catamaran status` may report it: a line with one of them counts.
    pub(crate) told_by: &'static [&'static str],
    /// Whether our front may not fail a request because of it.
    pub(crate) is_harmless: bool,
    pub(crate) begin: fn(&mut Stage) -> anyhow::Result<Held>,
    pub(crate) end: fn(&mut Stage) -> anyhow::Result<()>,
}

/// Connections that are held while an event lasts.
pub(crate) type Held = Vec<TcpStream>;

pub(crate) const DAY: [Event; 8] = [
    Event {
        title: "the name server's process ends",
        lasts: Duration::from_secs(15),
        told_by: &["resol"],
        is_harmless: true,
        begin: |stage| {
            stage.stop_dns();
            Ok(Held::new())
        },
        // It goes on during the next event.
        end: |_| Ok(()),
    },
    Event {
        title: "the name server is silent",
        lasts: Duration::from_secs(15),
        told_by: &["resol"],
        is_harmless: true,
        begin: |stage| {
            stage.mute_dns()?;
            Ok(Held::new())
        },
        end: |stage| {
            stage.stop_dns();
            stage.start_dns()
        },
    },
    Event {
        title: "SIGSTOP of one Tomcat",
        lasts: Duration::from_secs(15),
        told_by: &["suspect", "down", "no answer", "timeout"],
        is_harmless: false,
        begin: |stage| signal(stage, Signal::Stop),
        end: |stage| signal(stage, Signal::Continue).map(drop),
    },
    Event {
        title: "kill -9 of one Tomcat",
        lasts: Duration::from_secs(15),
        told_by: &["refused", "down"],
        is_harmless: true,
        begin: |stage| signal(stage, Signal::Kill),
        end: |stage| stage.cluster.redeploy("two", 1),
    },
    Event {
        title: "one Tomcat comes back with another secret",
        lasts: Duration::from_secs(15),
        told_by: &["secret", "403"],
        is_harmless: false,
        begin: |stage| {
            stage.cluster.redeploy_with_secret("two", "another")?;
            Ok(Held::new())
        },
        end: |stage| stage.cluster.redeploy("two", 1),
    },
    Event {
        title: "the disk of the logs is full",
        lasts: Duration::from_secs(15),
        told_by: &["log"],
        is_harmless: true,
        begin: |stage| {
            stage.fill_disk()?;
            Ok(Held::new())
        },
        end: |stage| stage.free_disk(),
    },
    Event {
        title: "a client holds as many connections as there may be",
        lasts: Duration::from_secs(15),
        told_by: &["connections_max", "limit"],
        is_harmless: false,
        begin: |stage| {
            let mut held = Held::new();
            for server in &stage.servers {
                for _ in 0..CONNECTIONS_MAX {
                    // The server refuses some; those are not held.
                    held.extend(TcpStream::connect_timeout(&server.clear, CONNECTING));
                }
            }
            Ok(held)
        },
        end: |_| Ok(()),
    },
    Event {
        title: "a reload with an expired certificate",
        lasts: Duration::from_secs(15),
        told_by: &["expired"],
        is_harmless: true,
        begin: |stage| {
            stage.put_certificate(true)?;
            stage.reload()?;
            Ok(Held::new())
        },
        end: |stage| {
            stage.put_certificate(false)?;
            stage.reload()
        },
    },
];

fn signal(stage: &Stage, signal: Signal) -> anyhow::Result<Held> {
    signal_process(stage.cluster.node("two").process().id(), signal)?;
    Ok(Held::new())
}

const CONNECTING: Duration = Duration::from_millis(200);
