//! `upgrade`, `log reopen` and `certificates`: commands that concern a running front as a whole.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use catamaran_admin_api::{
    CertificateStatus, FrontStatus, IssuedNameStatus, OperationReport, ProfileList,
    ReplacedCertificate, UpgradeStart,
};
use catamaran_units::{parse_duration, parse_lifetime};
use jiff::Timestamp;

use super::client::{At, Client, understood};
use super::operate::{PAUSE, escape};
use super::probe::{is_over, now};
use super::status::{moment, word};
use crate::failure::Failure;

/// Have a front that runs replaced by a new process of the same command; exit 1 if it was not
///
/// As SIGUSR2 does: the front starts its command again, for a new version of the program, and hands its
/// listeners over without a refused connection. This command waits until the new process serves. If that
/// does not happen, the front goes on as before, and its reason is printed.
#[derive(clap::Args)]
pub(crate) struct Upgrade {
    /// Give up waiting after so long, with exit code 1
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s")]
    timeout: Duration,

    #[command(flatten)]
    at: At,
}

/// The logs of a front that runs
#[derive(clap::Args)]
pub(crate) struct Log {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(clap::Subcommand)]
enum LogCommand {
    Reopen(Reopen),
}

/// Open the access log again, after its file was moved away; exit 1 if that cannot be
///
/// As SIGUSR1 does, for logrotate's `postrotate`.
#[derive(clap::Args)]
struct Reopen {
    #[command(flatten)]
    at: At,
}

/// Show the certificates that a front serves; exit 1 if one has ended or its new files are refused
#[derive(clap::Args)]
pub(crate) struct Certificates {
    /// Exit 1 as well if one ends within so long, such as 14d
    #[arg(long, value_name = "DURATION", value_parser = parse_lifetime)]
    within: Option<Duration>,

    /// Have the front order a new certificate for this name by ACME now, at most once an hour, and show nothing
    #[arg(long, value_name = "NAME", conflicts_with_all = ["within", "json"])]
    renew: Option<String>,

    /// Print what the admin listener answers
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn upgrade(args: &Upgrade) -> Result<(), Failure> {
    let client = args.at.client()?;
    let until = Some(now() + args.timeout);
    let start: UpgradeStart = client.object("POST", "/api/v1/upgrade", None)?;
    let before = start.process;
    loop {
        match watch(&client, &start)? {
            Some(process) => {
                writeln!(
                    io::stdout(),
                    "upgraded: process {process} serves in place of {before}"
                )?;
                return Ok(());
            }
            None if is_over(until) => {
                let text = format!("process {before} still serves after {:?}", args.timeout);
                return Err(Failure::Fault(text));
            }
            None => std::thread::park_timeout(PAUSE),
        }
    }
}

/// The id of the process that serves after the upgrade; `None` while the old process still serves.
///
/// # Errors
/// The front says that the upgrade failed, or its status is not readable.
fn watch(client: &Client, start: &UpgradeStart) -> Result<Option<u32>, Failure> {
    // While the old process hands over, a connection may end without an answer or with a refusal; the next call asks
    // again.
    let body = match client.ask("GET", "/api/v1/status", None) {
        Ok(answer) if answer.status == 200 => answer.body,
        Ok(_) | Err(_) => return Ok(None),
    };
    let status: FrontStatus = understood(body)?;
    if status.process != start.process {
        return Ok(Some(status.process));
    }
    // An earlier upgrade may have failed as well; its failure has another number.
    if status.upgrade.number == start.number
        && let Some(reason) = status.upgrade.failed
    {
        return Err(Failure::Fault(format!(
            "not upgraded: {}; process {} goes on",
            reason.escape_debug(),
            start.process
        )));
    }
    Ok(None)
}

pub(crate) fn log(args: &Log) -> Result<(), Failure> {
    let LogCommand::Reopen(Reopen { at }) = &args.command;
    let client = at.client()?;
    let OperationReport { report } = client.object("POST", "/api/v1/log/reopen", None)?;
    writeln!(io::stdout(), "{}", word(&report))?;
    Ok(())
}

pub(crate) fn certificates(args: &Certificates) -> Result<(), Failure> {
    let client = args.at.client()?;
    if let Some(name) = &args.renew {
        let path = format!("/api/v1/tls/{}/renew", escape(name));
        let OperationReport { report } = client.object("POST", &path, None)?;
        writeln!(io::stdout(), "{}", word(&report))?;
        return Ok(());
    }
    let answer = client.expect("GET", "/tls", None)?;
    let tls: ProfileList = understood(answer.clone())?;
    let seconds = Timestamp::now().as_second();
    let text = if args.json {
        format!("{answer:#}\n")
    } else {
        table(&tls, seconds)
    };
    io::stdout().write_all(text.as_bytes())?;
    let within = args.within.unwrap_or_default().as_secs();
    match complaints(&tls, seconds, within) {
        0 => Ok(()),
        _ => Err(Failure::Said(String::new())),
    }
}

fn table(tls: &ProfileList, now: i64) -> String {
    let mut text = String::new();
    if tls.profiles.is_empty() {
        return "no listener speaks TLS\n".to_owned();
    }
    for profile in &tls.profiles {
        let (name, read) = (word(&profile.name), moment(&profile.read));
        writeln!(text, "[tls.{name}], read at {read}").expect("a string takes all");
        for certificate in &profile.certificates {
            let names: Vec<String> = certificate.names.iter().map(|name| word(name)).collect();
            let (verb, days) = match left(certificate, now) {
                Some(seconds @ 0..) => ("ends", format!(", in {} days", seconds / DAY)),
                Some(seconds) => ("ENDED", format!(", {} days ago", -seconds / DAY)),
                None => ("ends", String::new()),
            };
            writeln!(
                text,
                "  {} ({}) {verb} {}{days}\n    {}, issued by {}",
                names.join(", "),
                word(&certificate.key_type),
                moment(&certificate.not_after),
                word(&certificate.file),
                word(&certificate.issuer),
            )
            .expect("a string takes all");
            if let Some(replaced) = &certificate.replaced {
                writeln!(text, "    {}", replacement(certificate, replaced, now))
                    .expect("a string takes all");
            }
        }
        for issued in &profile.acme {
            writeln!(text, "  {}", issuance(issued)).expect("a string takes all");
        }
        if let Some(reason) = &profile.refused {
            let reason = reason.escape_debug();
            writeln!(
                text,
                "  its changed files are REFUSED, the previous ones stay in use: {reason}"
            )
            .expect("a string takes all");
        }
    }
    text
}

/// The state of a name that gets its certificate by ACME.
fn issuance(issued: &IssuedNameStatus) -> String {
    let mut text = format!("{} by ACME: {}", word(&issued.name), word(&issued.state));
    if let Some(next) = &issued.next_attempt {
        text.push_str(&format!(", next attempt at {}", moment(next)));
    }
    if issued.unstored {
        text.push_str(
            "\n    IN MEMORY ALONE: `state_dir` cannot be written, and a restart loses it",
        );
    }
    if let Some(problem) = &issued.problem {
        let attempts = match issued.failures {
            0 => String::new(),
            failures => format!("{failures} in a row "),
        };
        text.push_str(&format!(
            "\n    {attempts}FAILED: {}",
            problem.escape_debug()
        ));
    }
    text
}

/// Since when a certificate is served in place of which.
fn replacement(
    certificate: &CertificateStatus,
    replaced: &ReplacedCertificate,
    now: i64,
) -> String {
    let verb = match seconds_until(&replaced.not_after, now) {
        Some(..0) => "ended",
        _ => "ends",
    };
    let ends = |moment: &str| seconds_until(moment, now);
    let order = if ends(&certificate.not_after) < ends(&replaced.not_after) {
        ", LATER than this one"
    } else {
        ""
    };
    let (since, end) = (moment(&replaced.at), moment(&replaced.not_after));
    format!("since {since} in place of one that {verb} {end}{order}")
}

/// The seconds until a certificate ends; `None` if its end cannot be read.
fn left(certificate: &CertificateStatus, now: i64) -> Option<i64> {
    seconds_until(&certificate.not_after, now)
}

/// The seconds until a moment; `None` if it cannot be read.
fn seconds_until(moment: &str, now: i64) -> Option<i64> {
    let timestamp: Timestamp = moment.parse().ok()?;
    Some(timestamp.as_second() - now)
}

/// The number of certificates that have ended or will end within this many seconds, plus the number of
/// profiles whose new files are refused.
fn complaints(tls: &ProfileList, now: i64, within: u64) -> usize {
    let within = i64::try_from(within).unwrap_or(i64::MAX);
    let mut complaints = 0;
    for profile in &tls.profiles {
        let times_left = profile
            .certificates
            .iter()
            .filter_map(|certificate| left(certificate, now));
        complaints += times_left.filter(|seconds| *seconds < within).count();
        complaints += usize::from(profile.refused.is_some());
    }
    complaints
}

/// The seconds of a day.
const DAY: i64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn list(profiles: Vec<Value>) -> ProfileList {
        serde_json::from_value(json!({ "profiles": profiles })).unwrap()
    }

    #[test]
    fn a_certificate_is_told_with_its_end() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let certificate = |end: &str| {
            json!({
                "names": ["a.test", "*.a.test"], "issuer": "CN=ca", "not_after": end,
                "key_type": "ECDSA", "file": "/etc/a.pem",
            })
        };
        let profile = |end: &str, refused: Value| {
            json!({
                "name": "www", "read": "2029-12-01T00:00:00Z", "refused": refused,
                "certificates": [certificate(end)],
            })
        };
        let good = list(vec![profile("2030-01-31T04:00:00Z", Value::Null)]);
        let expected = "\
[tls.www], read at 2029-12-01 00:00:00 UTC
  a.test, *.a.test (ECDSA) ends 2030-01-31 04:00:00 UTC, in 30 days
    /etc/a.pem, issued by CN=ca
";
        let now = now.as_second();
        assert_eq!(table(&good, now), expected);
        let within = |days: u64| complaints(&good, now, days * 24 * 60 * 60);
        assert_eq!((within(0), within(30), within(31)), (0, 0, 1));
        let bad = list(vec![profile("2029-12-30T00:00:00Z", json!("no key"))]);
        let said = table(&bad, now);
        assert!(
            said.contains("ENDED 2029-12-30 00:00:00 UTC, 2 days ago"),
            "{said}"
        );
        assert!(
            said.contains("REFUSED, the previous ones stay in use: no key"),
            "{said}"
        );
        assert_eq!(complaints(&bad, now, 0), 2);
        assert_eq!(table(&list(vec![]), now), "no listener speaks TLS\n");
    }

    #[test]
    fn a_name_is_told_with_its_next_attempt() {
        let failed = json!({
            "name": "b.test", "state": "awaited", "failures": 2, "problem": "order: no\nanswer",
            "next_attempt": "2030-01-01T00:10:00Z",
        });
        let served = json!({
            "name": "a.test", "state": "served", "next_attempt": "2030-03-01T00:00:00Z", "unstored": true,
        });
        let followed = json!({"name": "c.test", "state": "followed"});
        let tls = list(vec![json!({
            "name": "www", "read": "2029-12-01T00:00:00Z", "acme": [served, failed, followed],
        })]);
        let expected = "\
[tls.www], read at 2029-12-01 00:00:00 UTC
  a.test by ACME: served, next attempt at 2030-03-01 00:00:00 UTC
    IN MEMORY ALONE: `state_dir` cannot be written, and a restart loses it
  b.test by ACME: awaited, next attempt at 2030-01-01 00:10:00 UTC
    2 in a row FAILED: order: no\\nanswer
  c.test by ACME: followed
";
        assert_eq!(table(&tls, 0), expected);
    }

    #[test]
    fn a_certificate_is_told_with_the_one_that_it_replaced() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let said = |end: &str| {
            let replaced = json!({"not_after": end, "at": "2029-12-24T10:00:00Z"});
            let certificate = json!({"not_after": "2030-01-31T04:00:00Z", "replaced": replaced});
            let tls = list(vec![json!({"name": "www", "certificates": [certificate]})]);
            let text = table(&tls, now.as_second());
            text.lines().last().unwrap_or_default().to_owned()
        };
        let since = "    since 2029-12-24 10:00:00 UTC in place of one that";
        assert_eq!(
            said("2029-12-31T00:00:00Z"),
            format!("{since} ended 2029-12-31 00:00:00 UTC")
        );
        assert_eq!(
            said("2030-03-01T00:00:00Z"),
            format!("{since} ends 2030-03-01 00:00:00 UTC, LATER than this one")
        );
    }
}
