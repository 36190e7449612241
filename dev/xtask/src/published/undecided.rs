//! What would decide a sentence that is undecided.

use super::Judged;
use super::evidence::{CaseAnswer, CaseSize, EvidenceWeight};
use super::source::Source;
use super::verdict::{NowVerdict, SentenceVerdict};

/// What would decide a sentence, and the command that measures it; `None` if it is decided or not comparable.
pub(super) fn remedy(source: &Source, judged: &Judged<'_>) -> Option<String> {
    let answer = &judged.answer;
    if answer.verdict != SentenceVerdict::Undecided {
        return None;
    }
    let repeat = &source.repeat;
    if answer.now == NowVerdict::OtherVersion {
        return Some(format!(
            "it counts what one version does, and that version alone decides it: `{repeat}`"
        ));
    }
    let open = answer.cases.iter().filter(|case| !is_decided(case.now));
    let mut reasons: Vec<String> = open.map(of_case).collect();
    reasons.dedup();
    if answer.cases.is_empty() {
        let mut places = judged.claim.here.iter();
        return Some(match places.next() {
            Some(here) => format!("docs/lab has no {}", here.result),
            None => "nothing of ours measures it".to_owned(),
        });
    }
    if reasons.is_empty() {
        // Another run does not change this: the cases are not alike.
        return Some("its cases are decided and disagree".to_owned());
    }
    Some(format!("{}: `{repeat}`", reasons.join("; ")))
}

/// What an open case lacks.
fn of_case(case: &CaseAnswer) -> String {
    let reason = match &case.size {
        CaseSize::Gate { name, starts } => format!(
            "the gate `{name}` took runs, and {} starts are left",
            starts.len()
        ),
        CaseSize::TooFew { starts, needed } => {
            format!("there are {} of {needed} starts", starts.len())
        }
        CaseSize::Ratio {
            weight: EvidenceWeight::MayBeChance,
            ..
        } => "more starts, since it may be chance beside the post's other sentences".to_owned(),
        CaseSize::Ratio {
            starts_to_decide: Some(starts),
            ..
        } => format!("about {starts} starts"),
        CaseSize::Ratio { .. } => "more starts: the interval has both sides of 1".to_owned(),
        CaseSize::Count(_) | CaseSize::Runs { .. } => "a count does not answer it".to_owned(),
    };
    match case.case.as_str() {
        "" => reason,
        name => format!("{reason} ({name})"),
    }
}

fn is_decided(now: NowVerdict) -> bool {
    matches!(now, NowVerdict::Holds | NowVerdict::DoesNotHold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_case_says_what_it_lacks() {
        let case = |name: &str, size| CaseAnswer {
            result: "a".to_owned(),
            case: name.to_owned(),
            measure: "cpu".to_owned(),
            size,
            now: NowVerdict::Undecided,
        };
        let gate = CaseSize::Gate {
            name: "unsteady".to_owned(),
            starts: vec![1.0; 4],
        };
        assert_eq!(
            of_case(&case("rtt=0ms", gate)),
            "the gate `unsteady` took runs, and 4 starts are left (rtt=0ms)"
        );
        let ratio = |weight, starts_to_decide| CaseSize::Ratio {
            ends: [0.9, 1.0, 1.2],
            is_capacity: false,
            starts_to_decide,
            weight,
        };
        for (size, words) in [
            (ratio(EvidenceWeight::NotShown, Some(25)), "about 25 starts"),
            (
                ratio(EvidenceWeight::MayBeChance, None),
                "more starts, since it may be chance beside the post's other sentences",
            ),
            (
                CaseSize::TooFew {
                    starts: vec![1.0; 5],
                    needed: 6,
                },
                "there are 5 of 6 starts",
            ),
        ] {
            assert_eq!(of_case(&case("", size)), words);
        }
    }
}
