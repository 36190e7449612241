//! Writes our figures and those of posts as text, in a language.

use super::evidence::{CaseAnswer, CaseSize, EvidenceWeight};
use super::language::{Language, filled};
use super::source::{Claim, Direction, Published};
use crate::figures::rounded;

/// The published figure.
pub(super) fn published(claim: &Claim, published: &Published, language: Language) -> String {
    let words = language.words();
    match published {
        Published::Ratio(ratio) if claim.is_one_number() => format!("×{ratio}"),
        Published::Ratio(ratio) => ratio_in_words(*ratio),
        Published::Range([from, to]) => format!("×{from}{}×{to}", words.to),
        Published::Count(count) => count_in_words(*count),
        Published::Direction(Direction::More) => words.more.to_owned(),
        Published::Direction(Direction::Less) => words.less.to_owned(),
    }
}

/// Our figure of a case, and why it does not decide if it does not.
pub(super) fn case(case: &CaseAnswer, language: Language) -> String {
    let words = language.words();
    let mut text = figure(case, language);
    if !case.case.is_empty() {
        text = format!("{}{}{text}", case.case, words.colon);
    }
    let CaseSize::Ratio {
        is_capacity,
        starts_to_decide,
        weight,
        ..
    } = &case.size
    else {
        return text;
    };
    if *is_capacity {
        text += words.comma;
        text += &filled(words.capacity, &[&case.measure]);
    }
    let doubt = match weight {
        EvidenceWeight::Decides => return text,
        EvidenceWeight::MayBeChance => words.may_be_chance,
        EvidenceWeight::NotShown => words.not_shown,
    };
    text = text + words.comma + doubt;
    if let Some(starts) = starts_to_decide {
        text += words.comma;
        text += &filled(words.starts_to_decide, &[&starts.to_string()]);
    }
    text
}

/// Our figure of a case, without a remark.
pub(super) fn figure(case: &CaseAnswer, language: Language) -> String {
    let words = language.words();
    match &case.size {
        CaseSize::Ratio { ends, .. } => interval(*ends),
        CaseSize::Count(ends) => {
            let [low, count, high] = ends.map(count_in_words);
            format!("{count} [{low}..{high}]")
        }
        CaseSize::Runs { counts, is_ratio } => {
            // A ratio is that of two runs.
            let (in_words, runs_of_figure): (fn(f64) -> String, usize) = if *is_ratio {
                (ratio_in_words, 2)
            } else {
                (count_in_words, 1)
            };
            let mut figures: Vec<String> = counts.iter().map(|count| in_words(*count)).collect();
            let runs = match figures.len() * runs_of_figure {
                1 => words.one_run.to_owned(),
                2 => words.two_runs.to_owned(),
                count => filled(words.runs, &[&count.to_string()]),
            };
            figures.dedup();
            figures.join(words.comma) + words.comma + &runs
        }
        CaseSize::TooFew { starts, needed } => {
            let few = [starts.len().to_string(), needed.to_string()];
            let text = filled(words.too_few, &few.each_ref().map(String::as_str));
            text + &ends_of(starts, language)
        }
        CaseSize::Gate { name, starts } => filled(words.gate, &[name]) + &ends_of(starts, language),
    }
}

/// The lowest and the highest ratio of the starts; empty without starts.
fn ends_of(starts: &[f64], language: Language) -> String {
    let words = language.words();
    let [low, high] = [f64::min, f64::max].map(|end| starts.iter().copied().reduce(end));
    match (low, high) {
        (Some(low), Some(high)) => {
            let ends = [low, high].map(ratio_in_words);
            words.comma.to_owned() + &filled(words.starts, &ends.each_ref().map(String::as_str))
        }
        _ => String::new(),
    }
}

/// Writes a ratio with its interval as docs/measured.md does, or with more digits if it is very small.
pub(super) fn interval([low, ratio, high]: [f64; 3]) -> String {
    let number = |ratio: f64| match ratio {
        ..0.1 => format!("{ratio:.4}"),
        _ => rounded(ratio),
    };
    let [low, ratio, high] = [low, ratio, high].map(number);
    format!("×{ratio} [{low}..{high}]")
}

/// Writes a ratio with enough digits to tell it from 1, or from 0.
pub(super) fn ratio_in_words(ratio: f64) -> String {
    match ratio {
        ..0.1 => format!("×{ratio:.4}"),
        _ => format!("×{ratio:.3}"),
    }
}

/// A count with up to six digits.
pub(super) fn count_in_words(count: f64) -> String {
    let whole = count.abs().max(1.0).log10().floor() as usize + 1;
    let text = format!("{count:.*}", 6_usize.saturating_sub(whole));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
