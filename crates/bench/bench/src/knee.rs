//! `bench knee`: runs the steps of a search for the highest rate that a server sustains.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_load::document::knee::{Knee, SCHEMA};
use catamaran_load::gate::{Condition, Verdict};
use catamaran_load::knee::{self, Search};
use catamaran_load::plan::{Pace, Plan, WarmUp};
use catamaran_load::render;

use crate::output::{self, INTERRUPTED, UNDECIDED};
use crate::parts::{self, End, is_text};
use crate::refusal::{Refusal, RunKind};
use crate::settings::Settings;
use crate::{BenchFailure, Program, flag, memcached, plan, refuse};

/// The word that asks for the search for a knee, as the first word of a command line.
pub(crate) const WORD: &str = "knee";

/// Runs the search for the server of a command line, and prints the result; returns the exit code.
pub(crate) fn run(
    name: &str,
    mut settings: Settings,
    program: &Program,
) -> Result<u8, BenchFailure> {
    let mode = settings.mode;
    let (plan, search) = match prepare(&mut settings) {
        Ok(prepared) => prepared,
        Err(refusal) => return refuse(name, mode, &refusal),
    };
    output::check_files(&settings)?;
    let interrupted = program.interrupts(mode)?;
    (program.raise_limit)();
    if let Some(code) = memcached::prefill(&settings, &plan, program, &interrupted)? {
        return Ok(code);
    }
    let knee = match climb(&plan, search, &settings, program, &interrupted) {
        Ok(knee) => knee,
        Err(end) => return end.report(name, mode),
    };
    let json = render::knee::json(&knee);
    parts::write(&settings, &render::knee::conclusion(&knee), &json)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(INTERRUPTED);
    }
    Ok(match render::knee::verdict(&knee) {
        Verdict::Passed => 0,
        Verdict::Failed => 1,
        Verdict::Undecided => UNDECIDED,
    })
}

/// The plan of the first step, and the search, which begins at its rate. Fills in defaults for what was not given.
fn prepare(settings: &mut Settings) -> Result<(Plan, Search), Refusal> {
    flag::check(&settings.flags, RunKind::Knee)?;
    let first_rate = *settings.load.rate.get_or_insert(FIRST_RATE);
    // Taken out, because `plan::prepare` refuses it: other commands do not search.
    let rate_max = settings.load.rate_max.take().unwrap_or(f64::INFINITY);
    fill_defaults(settings);
    Ok((plan::prepare(settings)?, Search::new(first_rate, rate_max)))
}

/// Fills in the gate's condition and the times of a step where the user gave none.
fn fill_defaults(settings: &mut Settings) {
    if settings.checks.gate.conditions.is_empty() {
        let condition = Condition::parse(LIMIT).expect("the default is a condition");
        settings.checks.gate.conditions.push(condition);
    }
    let load = &mut settings.load;
    load.duration.get_or_insert(STEP);
    if load.warm_up == WarmUp::None {
        load.warm_up = WarmUp::For(WARM_UP);
    }
}

/// Runs all steps, or those until the interrupt, and prints each.
fn climb(
    first: &Plan,
    mut search: Search,
    settings: &Settings,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Knee, End> {
    let (gate, is_text) = (&settings.checks.gate, is_text(settings));
    let conditions = gate.conditions.iter();
    let mut knee = Knee {
        schema: SCHEMA.to_owned(),
        url: first.subject.url.clone(),
        limits: conditions.map(|condition| condition.text.clone()).collect(),
        steps: Vec::new(),
        sustained_per_s: None,
        broken_per_s: None,
        is_generator: false,
    };
    if is_text {
        let limits = knee.limits.join(", ");
        say(&format!("Limits: {limits}\n\n{}", render::knee::header()))?;
    }
    while let Some((rate, is_repeat)) = search.next() {
        let plan = step_plan(first, rate, is_repeat);
        let Some(report) = parts::run(plan, program, interrupted)? else {
            break;
        };
        let step = knee::step(rate, &report, gate);
        if is_text {
            say(&render::knee::step(&step))?;
        }
        if step.is_generator {
            // Requests were sent late, so the step says nothing about the server.
            search.note_late();
        } else {
            let verdict = Verdict::named(&step.verdict);
            search.note(verdict.unwrap_or(Verdict::Undecided));
        }
        knee.steps.push(step);
    }
    knee.sustained_per_s = search.sustained();
    knee.broken_per_s = search.broken();
    // No rate broke the server, but some were more than the generator could send.
    let was_late = knee.steps.iter().any(|step| step.is_generator);
    knee.is_generator = knee.broken_per_s.is_none() && was_late;
    Ok(knee)
}

/// Prints text at once, so that each step shows when it is over.
fn say(text: &str) -> Result<(), End> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    written.map_err(|error| End::Failed(error.into()))
}

/// The plan of a step at `rate`. It is long enough for a 99th percentile; a repetition of an
/// undecided step is twice as long.
fn step_plan(first: &Plan, rate: f64, is_repeat: bool) -> Plan {
    let mut plan = first.clone();
    if let Pace::Open { per_second, .. } = &mut plan.pace {
        *per_second = rate;
    }
    let needed = Duration::from_secs_f64((REQUESTS_MIN / rate).min(STEP_MAX.as_secs_f64()));
    let length = plan.stop.duration.unwrap_or(STEP).max(needed);
    plan.stop.duration = Some(length * if is_repeat { 2 } else { 1 });
    plan
}

/// The default condition that a step must not meet to be sustained.
const LIMIT: &str = "p99>100ms";

/// The rate at which the search begins by default, in requests per second.
const FIRST_RATE: f64 = 250.0;

/// The default duration of a step.
const STEP: Duration = Duration::from_secs(5);

/// The longest time that a step gets because its rate is low.
const STEP_MAX: Duration = Duration::from_secs(60);

/// The warm-up of each step, in which requests left from the last one are answered.
const WARM_UP: Duration = Duration::from_secs(1);

/// The least number of requests in a step: ten beyond the 99th percentile, and some for the randomness of the schedule.
const REQUESTS_MIN: f64 = 1150.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::Mode;
    use crate::settings::read;

    fn prepared(line: &str) -> Result<(Plan, Search), Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        prepare(&mut read(&words, Mode::Ours)?)
    }

    #[test]
    fn steps_are_long_enough_for_their_percentile() {
        let (plan, search) = prepared("http://h/").unwrap();
        assert_eq!(search.next(), Some((FIRST_RATE, false)));
        let seconds = |rate, is_repeat| {
            let duration = step_plan(&plan, rate, is_repeat).stop.duration;
            duration.map(|duration| duration.as_secs())
        };
        assert_eq!(seconds(1000.0, false), Some(5));
        assert_eq!(seconds(1000.0, true), Some(10));
        assert_eq!(seconds(115.0, false), Some(10));
        assert_eq!(seconds(0.1, false), Some(60));
        let (plan, search) = prepared("--rate 50 --rate-max 40 --duration 1s http://h/").unwrap();
        assert_eq!(search.next(), Some((40.0, false)));
        let plan = step_plan(&plan, 5000.0, false);
        assert_eq!(plan.stop.duration, Some(Duration::from_secs(1)));
        assert!(matches!(
            plan.pace,
            Pace::Open {
                per_second: 5000.0,
                ..
            }
        ));
    }

    #[test]
    fn what_chooses_the_rate_otherwise_is_refused() {
        for (line, expected) in [
            ("-n 5 http://h/", "does not go with -n"),
            ("--stage 1s=5 http://h/", "does not go with --stage"),
            ("--versus http://a/ http://h/", "does not go with --versus"),
            ("", "there is no URL"),
        ] {
            let refusal = prepared(line).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{line}: {refusal}");
        }
    }
}
