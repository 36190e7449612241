//! `lab extra`: the processes that experiments start in addition to the servers. Users do not call it.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_lab::drive::READY;
use catamaran_lab::experiment::CrowdKind;
use catamaran_lab::extra::{bare, crowd, echo, link, spin};
use clap::Subcommand;
use serde::Serialize;

use crate::descriptors::raise_limit;
use crate::failure::Failure;

/// What experiments start beside the servers
#[derive(clap::Args)]
pub(super) struct LabExtraArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Clients that ask seldom or slowly, until SIGTERM
    Crowd {
        /// idle, drip or sip
        #[arg(long, value_parser = kind)]
        kind: CrowdKind,
        /// How many
        #[arg(long)]
        clients: usize,
        /// Between two steps of each, or `never`
        #[arg(long)]
        every: String,
        /// What is asked for
        url: String,
    },
    /// Messages to a server that sends them back
    Echo {
        /// Where the report is written
        #[arg(long)]
        json: PathBuf,
        /// Messages under way at once
        #[arg(long)]
        clients: usize,
        /// The length of a message
        #[arg(long)]
        bytes: usize,
        /// How long
        #[arg(long, value_parser = catamaran_units::parse_duration)]
        time: Duration,
        /// echo+tcp://IP:PORT or echo+udp://IP:PORT
        #[arg(value_parser = site)]
        url: (echo::Transport, SocketAddr),
    },
    /// A relay with a delay
    Link {
        /// The time to the server and back
        #[arg(long, value_parser = catamaran_units::parse_duration)]
        round_trip: Duration,
        /// LISTEN=TO, both IP:PORT; several with spaces between them
        ends: String,
    },
    /// A server that does nothing but move bytes
    Bare(Bare),
    /// A process that computes until SIGTERM
    Spin,
}

/// A server that does nothing but move bytes
#[derive(clap::Args)]
struct Bare {
    /// Computes for so long before each answer
    #[arg(long, default_value = "0ms", value_parser = catamaran_units::parse_duration)]
    spin: Duration,
    /// CPU time that each read takes in all; 0 for what it takes anyway
    #[arg(long, default_value = "0ms", value_parser = catamaran_units::parse_duration)]
    work: Duration,
    /// The length of the page
    #[arg(long, default_value_t = 347)]
    page: usize,
    /// Relays to this backend instead, unless it is `none`
    #[arg(long, default_value = "none", value_parser = backend)]
    relay: Backend,
    /// Where it listens
    listen: SocketAddr,
}

impl Bare {
    fn serve(self, stop: &AtomicBool) -> io::Result<()> {
        let relay = self.relay.0;
        let job = relay.map_or(bare::Job::Answer(self.page), bare::Job::Relay);
        let effort = bare::Effort {
            spin: self.spin,
            work: self.work,
        };
        bare::run(TcpListener::bind(self.listen)?, job, effort, stop)
    }
}

pub(super) fn run(args: LabExtraArgs) -> Result<ExitCode, Failure> {
    raise_limit();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    match args.command {
        Command::Crowd {
            kind,
            clients,
            every,
            url,
        } => {
            let request = crowd::CrowdRequest {
                kind,
                clients,
                every: pause(&every)?,
                url,
            };
            crowd(&request, &stop)?;
        }
        Command::Echo {
            json,
            clients,
            bytes,
            time,
            url: (transport, address),
        } => {
            let request = echo::EchoRequest {
                transport,
                address,
                clients,
                bytes,
                time,
            };
            let document = json_of(&echo::run(&request, &stop)?)?;
            std::fs::write(json, document)?;
        }
        Command::Link { round_trip, ends } => {
            link::run(listening_ends(&ends)?, round_trip, &stop)?;
        }
        Command::Bare(bare) => bare.serve(&stop)?,
        Command::Spin => spin::run(&stop),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the clients of a crowd until `stop`, and prints their tally.
fn crowd(request: &crowd::CrowdRequest, stop: &AtomicBool) -> Result<(), Failure> {
    let tally = crowd::run(request, stop, || {
        // The ready line is for the lab. Without a reader, nobody waits for it.
        let _ = writeln!(io::stdout(), "{READY}");
    })?;
    writeln!(io::stdout(), "{}", json_of(&tally)?)?;
    Ok(())
}

/// Parses the ends of a link, and listens on each.
fn listening_ends(ends: &str) -> Result<Vec<link::End>, Failure> {
    let addresses: Result<Vec<_>, _> = ends.split_whitespace().map(end).collect();
    let mut listening = Vec::new();
    for (listen, to) in addresses.map_err(Failure::Fault)? {
        let listener = TcpListener::bind(listen)?;
        listening.push(link::End { listener, to });
    }
    Ok(listening)
}

fn json_of(document: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(document).map_err(|error| Failure::Fault(error.to_string()))
}

fn kind(text: &str) -> Result<CrowdKind, String> {
    let known = CrowdKind::ALL.iter().find(|(name, _)| *name == text);
    known
        .map(|(_, kind)| *kind)
        .ok_or_else(|| "it is idle, drip or sip".to_owned())
}

fn site(text: &str) -> Result<(echo::Transport, SocketAddr), String> {
    echo::EchoRequest::site(text)
        .ok_or_else(|| "it is echo+tcp://IP:PORT or echo+udp://IP:PORT".to_owned())
}

fn end(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (listen, to) = text.split_once('=').ok_or("it is LISTEN=TO")?;
    let address = |text: &str| match text.parse::<SocketAddr>() {
        Ok(address) => Ok(address),
        Err(error) => Err(error.to_string()),
    };
    Ok((address(listen)?, address(to)?))
}

/// The address of a backend; `None` if there is no backend.
#[derive(Clone, Copy)]
struct Backend(Option<SocketAddr>);

fn backend(text: &str) -> Result<Backend, String> {
    if text == "none" {
        return Ok(Backend(None));
    }
    let address = text.parse().map_err(|_| "it is IP:PORT or none")?;
    Ok(Backend(Some(address)))
}

fn pause(text: &str) -> Result<Option<Duration>, Failure> {
    if text == "never" {
        return Ok(None);
    }
    let parsed = catamaran_units::parse_duration(text);
    parsed
        .map(Some)
        .map_err(|error| Failure::Fault(format!("--every {text}: {error}")))
}
