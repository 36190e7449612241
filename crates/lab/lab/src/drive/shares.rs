//! Drives the load by a schedule at shares of the capacity, and measures these spans in addition to the run's own.

use std::collections::BTreeMap;

use super::evidence::{Spans, Surroundings};
use super::stage::Stage;
use super::thirds::ThirdValues;
use super::{DriveFault, Scene};
use crate::experiment::Load;
use crate::facts::Facts;
use crate::gate::{Effect, GateFinding, check_run};
use crate::measure::Measure;

/// The measures of the spans at shares of the capacity, with their gates.
#[derive(Debug, Default)]
pub(super) struct ShareValues {
    /// The measures by name, such as `p99@0.5` at half of the capacity.
    pub(super) measures: BTreeMap<String, f64>,
    /// The values of the measures in each third of a span.
    pub(super) thirds: ThirdValues,
    /// The gates on spans that were left out.
    pub(super) gates: Vec<GateFinding>,
}

/// The measures and facts of the span at one share.
struct ShareSpan {
    share: f64,
    facts: Facts,
    measures: BTreeMap<String, f64>,
    thirds: ThirdValues,
}

/// Drives `load` at each of its shares of `capacity`, in requests per second.
pub(super) fn drive(
    scene: Scene<'_>,
    stage: &mut Stage,
    load: &Load,
    capacity: f64,
) -> Result<ShareValues, DriveFault> {
    let mut values = ShareValues::default();
    let around = Surroundings::default();
    for &share in &load.shares {
        let scheduled = Load {
            rate: Some(capacity * share),
            ..load.clone()
        };
        // No measure of calls or bytes is taken at shares.
        let is_counting = false;
        let span = scene.measure(stage, &scheduled, is_counting)?;
        let spans = Spans {
            load: &scheduled,
            timed: &span,
            counting: &span,
            strace: None,
        };
        let share_span = ShareSpan {
            share,
            facts: scene.facts(stage, spans, &around)?,
            measures: scene.measures(stage, spans, &around)?,
            thirds: span.thirds.clone(),
        };
        values.add(share_span, &scene.experiment.gates_off);
    }
    Ok(values)
}

impl ShareValues {
    /// Adds the measures of a span, unless a gate that is not in `gates_off` says that the load missed its schedule;
    /// then only the finding is added.
    fn add(&mut self, span: ShareSpan, gates_off: &[String]) {
        let share = span.share;
        let mut is_on_schedule = true;
        for fired in check_run(&span.facts) {
            // With these gates, what was measured is not the load of the schedule.
            let is_of_schedule =
                ["late", "failed", "status", "generator"].contains(&&fired.gate[..]);
            if !is_of_schedule || fired.effect == Effect::Note || gates_off.contains(&fired.gate) {
                continue;
            }
            is_on_schedule = false;
            let words = format!(
                "Nothing is measured at {:.0} % of the capacity: {}",
                share * 100.0,
                fired.words
            );
            self.gates
                .push(GateFinding::new(&fired.gate, Effect::Note, words));
        }
        if !is_on_schedule {
            return;
        }
        for (name, value) in span.measures {
            if Measure::has_shares(&name) {
                self.measures.insert(format!("{name}@{share}"), value);
            }
        }
        for (name, values) in span.thirds {
            if Measure::has_shares(&name) {
                self.thirds.insert(format!("{name}@{share}"), values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(share: f64, warning: Option<&str>) -> ShareSpan {
        let mut facts = Facts {
            completed: 1000,
            ..Facts::default()
        };
        let warnings = warning.map(|kind| (kind.to_owned(), "late".to_owned()));
        facts.warnings.extend(warnings);
        ShareSpan {
            share,
            facts,
            measures: ["p99", "throughput"]
                .map(|name| (name.to_owned(), 2.0))
                .into(),
            thirds: ["p99", "throughput"]
                .map(|name| (name.to_owned(), [1.0; 3]))
                .into(),
        }
    }

    #[test]
    fn a_loop_that_was_late_is_left_out() {
        let mut values = ShareValues::default();
        values.add(span(0.5, None), &[]);
        let expected = BTreeMap::from([("p99@0.5".to_owned(), 2.0)]);
        assert_eq!(
            values.measures, expected,
            "no more than has a meaning there"
        );
        assert_eq!(values.thirds.len(), 1);
        values.add(span(0.9, Some("generator-late")), &[]);
        assert!(!values.measures.contains_key("p99@0.9"));
        let [fired] = &values.gates[..] else {
            panic!("{:?}", values.gates)
        };
        assert_eq!((&fired.gate[..], fired.effect), ("late", Effect::Note));
        assert!(fired.words.starts_with("Nothing is measured at 90 %"));
        values.add(span(0.9, Some("generator-late")), &["late".to_owned()]);
        assert!(values.measures.contains_key("p99@0.9"), "the gate is off");
    }
}
