//! `drain`, `stop`, `activate`, `weight`, `reset` and `reload`: commands with which operators change a
//! running front.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use catamaran_admin_api::{BackendMember, BackendProbe, DrainProgress, OperationReport};
use catamaran_units::parse_duration;
use serde_json::{Map, Value, json};

use super::client::{At, Client, pretty, understood};
use super::probe::{is_over, now, probe_now, words};
use super::status::{is_out, moment, word};
use crate::failure::Failure;

/// The name of a backend, with the name of its upstream.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(super) upstream: String,
    pub(super) backend: String,
}

/// Give a backend no new sessions, and stop it when those it has are over
///
/// Its sessions stay with it. It is stopped when none was seen for `session_timeout` and no request is in
/// flight, or at the deadline. `activate` takes it back at any time.
#[derive(clap::Args)]
pub(crate) struct Drain {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Target,

    /// Stop it after so long in any case, such as 2h, or at a time such as 2030-01-31T04:00:00Z [default:
    /// 24h]
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    #[command(flatten)]
    change: Change,
}

/// Give a backend no requests
///
/// Exchanges in flight end, then its connections are closed. Its sessions move to others, which may not
/// know them.
#[derive(clap::Args)]
pub(crate) struct Stop {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Option<Target>,

    #[command(flatten)]
    change: Change,
}

/// Give a backend all requests that fall to it
///
/// With --wait it is probed first, and nothing is changed before a probe that began after this command was
/// answered as it should: as `probe` of the upstream says, else CPING over AJP, else a connection. `probe`
/// says what each of them proves.
#[derive(clap::Args)]
pub(crate) struct Activate {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Target,

    #[command(flatten)]
    change: Change,
}

/// What every change of activation has.
#[derive(clap::Args)]
struct Change {
    /// Undo the change after a duration such as 2h, or at a time such as 2030-01-31T04:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Why, as colleagues see it in the status and on the page
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Change it even if no backend for new sessions is left
    #[arg(long)]
    force: bool,

    /// Wait until the change is complete; `activate` waits for a good probe before it changes anything
    #[arg(long)]
    wait: bool,

    /// With --wait: give up after this time, with exit code 1. A drain or a stop continues all the same
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "wait")]
    timeout: Option<Duration>,

    /// Print the backend as the admin listener tells it, in JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: At,
}

/// Change the weight of a backend
#[derive(clap::Args)]
pub(crate) struct Weight {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Target,

    /// Its weight, 1 to 1000
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    weight: u32,

    #[command(flatten)]
    at: At,
}

/// Undo every change made to a backend at run time: the file's settings apply again
#[derive(clap::Args)]
pub(crate) struct Reset {
    /// The backend, as UPSTREAM/BACKEND
    #[arg(value_name = "UPSTREAM/BACKEND", value_parser = parse_target)]
    target: Target,

    #[command(flatten)]
    at: At,
}

/// Have a running front read its file again; print the faults and exit 1 if there are any
#[derive(clap::Args)]
pub(crate) struct Reload {
    #[command(flatten)]
    at: At,
}

pub(crate) fn drain(args: &Drain) -> Result<(), Failure> {
    let mut patch = args.change.patch("drain");
    patch.insert("then".to_owned(), json!("stopped"));
    if let Some(deadline) = &args.deadline {
        patch.insert("deadline".to_owned(), json!(deadline));
    }
    args.change
        .apply(&args.target, patch, |backend| match activation(backend) {
            "stopped" => State::Done,
            "drain" => State::Waiting {
                whole: drain_progress(backend),
                step: drain_step(backend),
            },
            other => State::Changed(other.to_owned()),
        })
}

pub(crate) fn stop(args: &Stop) -> Result<(), Failure> {
    let Some(target) = &args.target else {
        return Err(Failure::Usage(
            "say which backend: catamaran stop UPSTREAM/BACKEND (the server itself is ended by SIGTERM, \
             with systemd by `systemctl stop catamaran`)"
                .to_owned(),
        ));
    };
    let patch = args.change.patch("stopped");
    args.change.apply(target, patch, |backend| {
        match (activation(backend), backend.backend.in_flight) {
            ("stopped", 0) => State::Done,
            ("stopped", flying) => State::Waiting {
                whole: in_flight(flying),
                step: in_flight(flying),
            },
            (other, _) => State::Changed(other.to_owned()),
        }
    })
}

pub(crate) fn activate(args: &Activate) -> Result<(), Failure> {
    if args.change.wait {
        args.change.wait_until_fit(&args.target)?;
    }
    let patch = args.change.patch("active");
    args.change
        .apply(&args.target, patch, |backend| match activation(backend) {
            // `wait_until_fit` has waited before the change.
            "active" => State::Done,
            other => State::Changed(other.to_owned()),
        })
}

pub(crate) fn weight(args: &Weight) -> Result<(), Failure> {
    let fronts = Fronts::of(&args.at)?;
    let patch = json!({"weight": args.weight});
    let change = |client: &Client| client.object("PATCH", &args.target.path(), Some(&patch));
    for (place, backend) in fronts.change(change)? {
        let text = format!("weight {}", backend.settings.weight);
        say(&place, &args.target, &text)?;
    }
    Ok(())
}

pub(crate) fn reset(args: &Reset) -> Result<(), Failure> {
    let fronts = Fronts::of(&args.at)?;
    let path = args.target.path() + "/reset";
    for (place, backend) in fronts.change(|client| client.object("POST", &path, None))? {
        let weight = backend.settings.weight;
        let text = format!("{}, weight {weight}", activation(&backend));
        say(&place, &args.target, &text)?;
    }
    Ok(())
}

pub(crate) fn reload(args: &Reload) -> Result<(), Failure> {
    let client = args.at.client()?;
    let answer = client.ask("POST", "/api/v1/reload", None)?;
    if answer.status == 200 {
        let OperationReport { report } = understood(answer.body)?;
        writeln!(io::stdout(), "reloaded; {}", word(&report))?;
        return Ok(());
    }
    let raw_detail = answer.detail().unwrap_or_default();
    let detail = raw_detail.trim_end();
    writeln!(
        io::stderr(),
        "{detail}\nnot reloaded; the front keeps the configuration it has"
    )?;
    Err(Failure::Said(String::new()))
}

/// The progress of a change.
enum State {
    Done,
    /// The change is not complete: `whole` describes all of it, and `step` the part that is printed again
    /// when it changes.
    Waiting {
        whole: String,
        step: String,
    },
    /// Another operator has changed the activation to this one meanwhile.
    Changed(String),
}

impl Change {
    fn patch(&self, activation: &str) -> Map<String, Value> {
        let mut patch = Map::new();
        let mut put = |key: &str, value: Value| patch.insert(key.to_owned(), value);
        put("activation", json!(activation));
        put("until", json!(self.until));
        put("reason", json!(self.reason));
        put("force", json!(self.force));
        patch
    }

    /// Makes the change on all fronts. With `--wait` it returns when the change is complete on each of
    /// them.
    fn apply(
        &self,
        target: &Target,
        patch: Map<String, Value>,
        state: impl Fn(&BackendMember) -> State,
    ) -> Result<(), Failure> {
        let fronts = Fronts::of(&self.at)?;
        let patch = Value::Object(patch);
        let change = |client: &Client| client.object("PATCH", &target.path(), Some(&patch));
        let changed = fronts.change(change)?;
        if !self.wait {
            for (place, backend) in changed {
                let text = match state(&backend) {
                    State::Waiting { whole, .. } => format!("{}: {whole}", activation(&backend)),
                    State::Done | State::Changed(_) => activation(&backend).to_owned(),
                };
                self.end(&place, target, &text, &backend)?;
            }
            return Ok(());
        }
        let mut waits = Vec::new();
        for ((place, backend), client) in changed.into_iter().zip(&fronts.0) {
            waits.push(Wait {
                progress: Progress::new(target, &place),
                client,
                place,
                backend,
            });
        }
        self.wait_for_all(target, waits, state)
    }

    /// Waits until the change is complete on every front, and prints the result of each.
    fn wait_for_all(
        &self,
        target: &Target,
        mut waits: Vec<Wait<'_>>,
        state: impl Fn(&BackendMember) -> State,
    ) -> Result<(), Failure> {
        let until = self.until();
        loop {
            let mut unfinished = Vec::new();
            for mut wait in waits {
                match state(&wait.backend) {
                    State::Done => {
                        let text = activation(&wait.backend);
                        self.end(&wait.place, target, text, &wait.backend)?;
                    }
                    State::Changed(other) => {
                        let place = &wait.place;
                        let text = format!(
                            "{place}{target} is {other}: somebody else changed it meanwhile"
                        );
                        return Err(Failure::Fault(text));
                    }
                    // The deadline, which is in `whole`, is printed only once.
                    State::Waiting { whole, step } => {
                        wait.progress.begin_or_say(&whole, step)?;
                        unfinished.push(wait);
                    }
                }
            }
            if unfinished.is_empty() {
                return Ok(());
            }
            if is_over(until) {
                let text = format!("{target} was not done within --timeout; the change stays");
                return Err(Failure::Fault(text));
            }
            pause(until);
            for wait in &mut unfinished {
                wait.backend = super::status::expect_whole(wait.client, target)?;
            }
            waits = unfinished;
        }
    }

    /// Prints the result for the backend: as text, or with `--json` as JSON.
    fn end(
        &self,
        place: &str,
        target: &Target,
        text: &str,
        backend: &BackendMember,
    ) -> Result<(), Failure> {
        if self.json {
            Ok(write!(io::stdout(), "{}", pretty(backend)?)?)
        } else {
            say(place, target, text)
        }
    }

    /// Waits, on each front in turn, for a good answer to a probe that began after this call. If the backend is out,
    /// it waits until enough probes in a row were answered to bring it back. After `--timeout` it fails.
    fn wait_until_fit(&self, target: &Target) -> Result<(), Failure> {
        let fronts = Fronts::of(&self.at)?;
        let until = self.until();
        for client in &fronts.0 {
            self.wait_until_fit_at(client, &fronts.place(client), target, until)?;
        }
        Ok(())
    }

    /// As [`Self::wait_until_fit`], on one front. `until` is the time at which it fails; `None`: never.
    fn wait_until_fit_at(
        &self,
        client: &Client,
        place: &str,
        target: &Target,
        until: Option<Instant>,
    ) -> Result<(), Failure> {
        let mut progress = Progress::new(target, place);
        loop {
            let probe = probe_now(client, target, until)?;
            let now = match &probe {
                Some(probe) if probe.answered => {
                    let backend = super::status::expect_whole(client, target)?;
                    if !is_out(&backend) {
                        return note_unproved(probe);
                    }
                    "it answers, and stays out until as many probes in a row were answered as `up` of \
                     [upstream.NAME.probe] says"
                        .to_owned()
                }
                Some(probe) => words(probe),
                None => "its probe has not ended".to_owned(),
            };
            progress.say(now)?;
            if is_over(until) {
                return Err(unfit(client, target, &progress.said));
            }
            pause(until);
        }
    }

    /// The moment at which waiting ends; `None` to wait for ever.
    fn until(&self) -> Option<Instant> {
        Some(now() + self.timeout?)
    }
}

/// The fronts on which a change is made.
struct Fronts(Vec<Client>);

impl Fronts {
    fn of(at: &At) -> Result<Self, Failure> {
        at.clients().map(Self)
    }

    /// The prefix of the backend's name in messages: the front's address if there are several fronts, else
    /// empty.
    fn place(&self, client: &Client) -> String {
        match &self.0[..] {
            [_] => String::new(),
            _ => format!("{}: ", client.place()),
        }
    }

    /// Makes a change on every front, and returns the backend's new state at each.
    ///
    /// If some refuse, the others are changed all the same, and the failure names the fronts that refused.
    fn change(
        &self,
        make: impl Fn(&Client) -> Result<BackendMember, Failure>,
    ) -> Result<Vec<(String, BackendMember)>, Failure> {
        let (mut changed, mut refusals) = (Vec::new(), Vec::new());
        for client in &self.0 {
            match make(client) {
                Ok(backend) => changed.push((self.place(client), backend)),
                Err(failure) if self.0.len() == 1 => return Err(failure),
                Err(failure) => refusals.push(format!("{}: {}", client.place(), failure.words())),
            }
        }
        if refusals.is_empty() {
            return Ok(changed);
        }
        let places: Vec<&str> = changed
            .iter()
            .map(|(place, _)| place.trim_end_matches(": "))
            .collect();
        let elsewhere = if places.is_empty() {
            "it was changed nowhere".to_owned()
        } else {
            format!("it was changed at {}", places.join(" and "))
        };
        Err(Failure::Fault(format!(
            "not changed at {}; {elsewhere}",
            refusals.join("; nor at ")
        )))
    }
}

/// A front on which a change is not complete yet.
struct Wait<'f> {
    client: &'f Client,
    place: String,
    backend: BackendMember,
    progress: Progress<'f>,
}

/// The progress of a change, with what was printed of it last.
struct Progress<'t> {
    target: &'t Target,
    place: String,
    said: String,
}

impl<'t> Progress<'t> {
    fn new(target: &'t Target, place: &str) -> Self {
        Self {
            target,
            place: place.to_owned(),
            said: String::new(),
        }
    }

    /// Prints `whole` the first time, and after that each `step` that differs from the one before.
    fn begin_or_say(&mut self, whole: &str, step: String) -> Result<(), Failure> {
        if self.said.is_empty() {
            writeln!(io::stderr(), "{}{}: {whole}", self.place, self.target)?;
            self.said = step;
            return Ok(());
        }
        self.say(step)
    }

    /// Prints the progress if it differs from what was printed last.
    fn say(&mut self, now: String) -> Result<(), Failure> {
        if now != self.said {
            writeln!(io::stderr(), "{}{}: {now}", self.place, self.target)?;
            self.said = now;
        }
        Ok(())
    }
}

fn pause(until: Option<Instant>) {
    let left = until.map_or(PAUSE, |until| until.saturating_duration_since(now()));
    std::thread::park_timeout(PAUSE.min(left));
}

/// The failure that a backend was not activated; `why` says how its probes were answered.
fn unfit(client: &Client, target: &Target, why: &str) -> Failure {
    let backend = super::status::expect_whole(client, target);
    let now = backend.map_or_else(|_| "as it was".to_owned(), |it| activation(&it).to_owned());
    Failure::Fault(format!(
        "{target} is not fit to serve: {why}; nothing was changed, it is {now}"
    ))
}

/// Prints what the successful probe does not prove, if there is anything.
fn note_unproved(probe: &BackendProbe) -> Result<(), Failure> {
    if let Some(unproved) = &probe.unproved {
        writeln!(io::stderr(), "note: {unproved}")?;
    }
    Ok(())
}

impl Target {
    /// The path of the backend in the admin API.
    pub(super) fn path(&self) -> String {
        let (upstream, backend) = (escape(&self.upstream), escape(&self.backend));
        format!("/api/v1/upstreams/{upstream}/backends/{backend}")
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.upstream, self.backend)
    }
}

/// Parses `UPSTREAM/BACKEND`. The name of a backend may contain slashes.
pub(super) fn parse_target(text: &str) -> Result<Target, String> {
    match text.split_once('/') {
        Some((upstream, backend)) if !upstream.is_empty() && !backend.is_empty() => Ok(Target {
            upstream: upstream.to_owned(),
            backend: backend.to_owned(),
        }),
        _ => Err("write UPSTREAM/BACKEND, as `catamaran status` shows them".to_owned()),
    }
}

/// Percent-encodes a name so that it can be one segment of a path.
pub(super) fn escape(name: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(one).collect()
}

fn activation(backend: &BackendMember) -> &str {
    &backend.settings.activation
}

/// Describes what a drain waits for, and until when.
pub(super) fn drain_progress(member: &BackendMember) -> String {
    let flying = in_flight(member.backend.in_flight);
    let Some(drain) = &member.drain else {
        return flying;
    };
    let left = match sessions_left(drain) {
        Some(sessions) => format!("{sessions}, {flying}"),
        None => flying,
    };
    let deadline = moment(&drain.deadline);
    match unseen_until(drain) {
        None => format!("{left}; stops when they are over, at {deadline} in any case"),
        Some(until) => format!(
            "{left}; waits until {until} for sessions that began before the front did, which it has not \
             seen; stops at {deadline} in any case"
        ),
    }
}

/// The time until which a drain without visible sessions goes on, for sessions that began before the front did and
/// that it cannot count. `None` if the drain does not wait for such sessions.
fn unseen_until(drain: &DrainProgress) -> Option<String> {
    let earliest = drain.earliest.as_ref()?;
    let moment_of: jiff::Timestamp = earliest.parse().ok()?;
    let waits = drain.sessions_now == Some(0) && moment_of > jiff::Timestamp::now();
    waits.then(|| moment(earliest))
}

/// As [`drain_progress`], but short, and without figures that change with each request, because a line is printed
/// whenever this text changes.
fn drain_step(member: &BackendMember) -> String {
    let drain = member.drain.as_ref();
    let waiting = drain.filter(|drain| drain.sessions_now != Some(0));
    waiting
        .and_then(sessions_left)
        .unwrap_or_else(|| in_flight(member.backend.in_flight))
}

fn sessions_left(drain: &DrainProgress) -> Option<String> {
    let now = drain.sessions_now?;
    // Sessions from before the drain that the front had not seen lately may appear, so that there are more now than
    // at the start.
    let start = drain.sessions_at_start.max(now);
    Some(format!("{now} of {start} sessions left"))
}

fn in_flight(count: usize) -> String {
    match count {
        1 => "1 request in flight".to_owned(),
        count => format!("{count} requests in flight"),
    }
}

fn say(place: &str, target: &Target, text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{place}{target}: {text}")?)
}

/// The pause between two requests to the front while waiting.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn member(value: Value) -> BackendMember {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_drain_says_its_deadline_and_no_step_changes_with_each_request() {
        let drains = |sessions: Value, flying: u64| {
            member(json!({
                "in_flight": flying,
                "drain": {
                    "sessions_now": sessions, "sessions_at_start": 9,
                    "deadline": "2030-01-31T04:00:00Z",
                },
            }))
        };
        let at = "stops when they are over, at 2030-01-31 04:00:00 UTC in any case";
        for (sessions, flying, whole, step) in [
            (
                json!(7),
                2,
                "7 of 9 sessions left, 2 requests in flight",
                "7 of 9 sessions left",
            ),
            (
                json!(0),
                1,
                "0 of 9 sessions left, 1 request in flight",
                "1 request in flight",
            ),
            (
                json!(11),
                0,
                "11 of 11 sessions left, 0 requests in flight",
                "11 of 11 sessions left",
            ),
            // Where sessions are not counted.
            (Value::Null, 1, "1 request in flight", "1 request in flight"),
        ] {
            let backend = drains(sessions, flying);
            assert_eq!(drain_progress(&backend), format!("{whole}; {at}"));
            assert_eq!(drain_step(&backend), step);
        }
    }

    #[test]
    fn a_drain_without_sessions_says_what_it_waits_for() {
        let drains = |earliest: &str| {
            let backend = member(json!({
                "in_flight": 0,
                "drain": {
                    "sessions_now": 0, "sessions_at_start": 0, "earliest": earliest,
                    "deadline": "2999-01-31T04:00:00Z",
                },
            }));
            drain_progress(&backend)
        };
        let left = "0 of 0 sessions left, 0 requests in flight";
        let end = "at 2999-01-31 04:00:00 UTC in any case";
        let waits = "waits until 2999-01-30 04:30:00 UTC for sessions that began before the front did, which it \
                     has not seen; stops";
        assert_eq!(
            drains("2999-01-30T04:30:00Z"),
            format!("{left}; {waits} {end}")
        );
        let over = "stops when they are over,";
        assert_eq!(
            drains("2020-01-30T04:30:00Z"),
            format!("{left}; {over} {end}")
        );
    }

    #[test]
    fn a_backend_may_be_named_by_its_url() {
        let target = parse_target("shop/ajp://10.1.0.11:8009").unwrap();
        assert_eq!(target.to_string(), "shop/ajp://10.1.0.11:8009");
        let expected = "/api/v1/upstreams/shop/backends/ajp%3A%2F%2F10.1.0.11%3A8009";
        assert_eq!(target.path(), expected);
        for bad in ["", "shop", "/blue", "shop/"] {
            assert!(parse_target(bad).is_err(), "{bad}");
        }
    }
}
