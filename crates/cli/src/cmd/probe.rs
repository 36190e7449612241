//! `probe`: has a running front check whether a backend is well.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use catamaran_admin_api::{BackendProbe, ProbeResult};

use super::client::{At, Client, pretty};
use super::operate::{PAUSE, Target, parse_target};
use super::status::{expect_whole, word};
use crate::failure::Failure;

/// Ask a backend now whether it is well; exit 1 if it is not
///
/// The front asks it, whatever its activation is: as `probe` of its upstream says, else by CPING over AJP,
/// else by a connection. Only `kind = "request"` proves that the secret is right and that the
/// application is deployed.
#[derive(clap::Args)]
pub(crate) struct ProbeArgs {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Target,

    /// Print the probe as the admin listener tells it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let client = args.at.client()?;
    let probe = probe_now(&client, &args.target, None)?.unwrap_or_default();
    let text = words(&probe);
    let mut stdout = io::stdout();
    if args.json {
        write!(stdout, "{}", pretty(&probe)?)?;
    } else {
        writeln!(stdout, "{}: {text}", args.target)?;
        if let Some(unproved) = &probe.unproved {
            writeln!(io::stderr(), "note: {unproved}")?;
        }
    }
    if !probe.answered {
        return Err(Failure::Said(text));
    }
    Ok(())
}

/// Asks the front to probe a backend, and returns the result; `None` if there is none before `until`.
pub(super) fn probe_now(
    client: &Client,
    target: &Target,
    until: Option<Instant>,
) -> Result<Option<BackendProbe>, Failure> {
    let path = target.path() + "/probe";
    let ProbeResult {
        number, mut probe, ..
    } = client.object("POST", &path, None)?;
    // A higher number is that of a later probe, which another client asked for; its result is as good.
    while probe.as_ref().is_none_or(|probe| probe.number < number) {
        if is_over(until) {
            return Ok(None);
        }
        std::thread::park_timeout(PAUSE);
        probe = expect_whole(client, target)?.backend.last_probe;
    }
    Ok(probe)
}

/// Describes what was asked and how it was answered.
pub(super) fn words(probe: &BackendProbe) -> String {
    let request = match (&probe.kind[..], &probe.method, &probe.path) {
        ("request", Some(method), Some(path)) => format!("{} {}", word(method), word(path)),
        ("cping", ..) => "CPING".to_owned(),
        _ => "a connection".to_owned(),
    };
    let time = Duration::from_secs_f64(probe.took_ms.max(0.0) / 1000.0);
    if probe.answered {
        format!("{request} was answered after {time:.1?}")
    } else {
        format!("{request} failed: {}", word(&probe.found))
    }
}

/// Whether this moment has passed; never if it is `None`.
pub(super) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| now() >= until)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command waits for a front that runs in real time"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn probe(value: Value) -> BackendProbe {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn it_is_said_what_was_asked_and_what_came_of_it() {
        let request = json!({
            "kind": "request", "method": "GET", "path": "/app/", "took_ms": 12.34, "answered": true,
            "found": "answered",
        });
        assert_eq!(
            words(&probe(request)),
            "GET /app/ was answered after 12.3ms"
        );
        let cping = json!({
            "kind": "cping", "took_ms": 1000, "answered": false, "found": "no answer to CPING",
        });
        assert_eq!(words(&probe(cping)), "CPING failed: no answer to CPING");
    }
}
