//! Whether there were spans in which no answer came although requests waited for one.

use catamaran_units::show_count;

use super::{Effect, Facts, Fired};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let silences = facts.silences.as_ref().filter(|it| it.count > 0)?;
    let meaning = match facts.clients {
        Some(_) => ": clients that wait send nothing, so that percentiles hide it",
        None => "",
    };
    let (longest, from, min) = (silences.longest_ms, silences.from_s, silences.min_ms);
    let others = match silences.count {
        1 => String::new(),
        count => format!(", in {} spans of {min:.0} ms or more", show_count(count)),
    };
    let words = format!("No answer came for {longest:.0} ms from {from:.1} s on{others}{meaning}.");
    Some(Fired::new("silences", Effect::Note, words))
}
