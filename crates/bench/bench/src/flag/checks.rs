//! Flags for what counts as a failure, and for the gate that judges a run.

use catamaran_load::gate::{Condition, Gate, Waiver};
use catamaran_load::versus::RatioLimit;

use super::ValueKind::Needed;
use super::{Flag, switch_on};
use crate::refusal::Refusal;
use crate::refusal::RunKind::Memcached;

/// The settings of what counts as a failure, and of the gate (`--fail-if`).
#[derive(Debug, Default)]
pub(crate) struct CheckSettings {
    pub(crate) variable_length: bool,
    pub(crate) bodies: bool,
    pub(crate) receive_errors: bool,
    pub(crate) gate: Gate,
    /// The limits of ratios, of `--versus`.
    pub(crate) ratios: Vec<RatioLimit>,
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('l'),
        long: "variable-length",
        help: "Answers may differ in length",
        apply: |settings, _| switch_on(&mut settings.checks.variable_length),
        ..Flag::OURS
    },
    Flag {
        long: "check-bodies",
        help: "Compare the checksum of each body with the first one, in --json",
        conflicts: &[(Memcached, "--check-bodies: every value is checked")],
        apply: |settings, _| switch_on(&mut settings.checks.bodies),
        ..Flag::OURS
    },
    Flag {
        short: Some('r'),
        long: "receive-errors",
        help: "As ab: do not stop at an error of a receive (we never do)",
        apply: |settings, _| switch_on(&mut settings.checks.receive_errors),
        ..Flag::OURS
    },
    Flag {
        long: "fail-if",
        value: Needed("CONDITION"),
        help: "Exit with 1 if it holds, with 3 if the run does not tell: p99>20ms, errors>0.1%, rate<5000, with \
               --versus rate<0.95x, cpu>1.05x; repeatable",
        apply: |settings, given| {
            if RatioLimit::is_meant(given.text()) {
                let limit =
                    RatioLimit::parse(given.text()).map_err(|fault| Refusal::RatioLimit {
                        text: given.owned(),
                        fault,
                    })?;
                settings.checks.ratios.push(limit);
                return Ok(());
            }
            let condition = Condition::parse(given.text()).map_err(|fault| Refusal::Condition {
                text: given.owned(),
                fault,
            })?;
            settings.checks.gate.conditions.push(condition);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "waive",
        value: Needed("LIST"),
        help: "With --fail-if: what does not fail the run by itself, of non-2xx, unsent, failed and invalid",
        apply: |settings, given| {
            for word in given.text().split(',') {
                let mut all = Waiver::ALL.into_iter();
                let Some(waiver) = all.find(|waiver| waiver.word() == word) else {
                    let expected = "non-2xx, unsent, failed or invalid, with commas between them";
                    return Err(given.bad(expected));
                };
                settings.checks.gate.waived.push(waiver);
            }
            Ok(())
        },
        ..Flag::OURS
    },
];
