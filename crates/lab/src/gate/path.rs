//! Whether each server of a cell was asked as often as its place in the path wants.

use super::{AskedFacts, Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    if facts.completed == 0 {
        return None;
    }
    let mut servers = facts.asked.iter();
    let words = servers.find_map(|(name, asked)| words(name, asked))?;
    Some(Fired::new("path", Effect::Void, words))
}

/// What is wrong with a server's part; `None` if nothing is. Where requests were not counted, CPU time tells a server that
/// took none.
fn words(name: &str, asked: &AskedFacts) -> Option<String> {
    let AskedFacts {
        expected,
        counted,
        cpu_us,
    } = *asked;
    let is_seldom = counted.is_some_and(|counted| counted < expected * (1.0 - LOST_MAX));
    if let Some(counted) = counted.filter(|_| is_seldom) {
        return Some(format!(
            "The server {name} was asked {counted:.2} times for each answer, at least {expected} expected: another server \
             answered in its place."
        ));
    }
    let cpu = cpu_us.filter(|cpu| *cpu < expected * CPU_MIN_US)?;
    Some(format!(
        "The server {name} took {cpu:.2} µs of CPU time for each answer, too little to be asked {expected} times: another \
         server answered in its place."
    ))
}

/// Requests that ended with the span may have been counted at one end of it alone.
const LOST_MAX: f64 = 0.01;

/// No server reads a request and writes an answer, two system calls with TCP behind them, in less, in microseconds.
const CPU_MIN_US: f64 = 0.5;
