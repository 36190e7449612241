//! The texts of a published test in one language, as people write them.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::language::Language;
use super::source::Source;

/// The texts of a test. `{ID}` stands for a figure; [`super::page`] fills it in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    pub(super) title: String,
    /// The answer in one sentence without figures, for the README and the index.
    pub(super) short_answer: String,
    /// What the test did, in two sentences.
    pub(super) did: String,
    /// The answer in two sentences: whether the post was right, whether it still holds, and what to do today.
    pub(super) answer: String,
    /// The causes of differences between the published figures and ours.
    pub(super) explains: Vec<String>,
    /// What each of [`Source::own`] compares.
    #[serde(default)]
    pub(super) own: Vec<String>,
    /// Remarks that a reader of the source's figures should know.
    pub(super) remarks: Vec<String>,
    pub(super) layout: LayoutTexts,
    /// The texts of claims, by their ids.
    pub(super) claim: BTreeMap<String, ClaimTexts>,
}

/// Which programs shared a machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutTexts {
    /// The post's machines: each one's name, then its programs in the order in which a request meets them.
    pub(super) there: Vec<Vec<String>>,
    /// Our groups of cores, in the same form.
    pub(super) here: Vec<Vec<String>>,
    /// Which program was the limit; sentences on speed are judged by its CPU time.
    pub(super) limit: String,
}

/// A sentence of the post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimTexts {
    /// The sentence, in our words.
    pub(super) says: String,
    /// Its label in the picture; without one it has no row there.
    pub(super) short: Option<String>,
    /// A note on the answer.
    pub(super) note: Option<String>,
}

/// The dictionary: English phrases and their Chinese translations.
pub(super) type Phrases = BTreeMap<String, String>;

impl Texts {
    /// Checks that there is a sentence for each claim, and a text for each row of our own.
    pub(super) fn check(&self, source: &Source) -> anyhow::Result<()> {
        let mut claims = source.claims.iter();
        ensure!(
            claims.len() == self.claim.len()
                && claims.all(|claim| self.claim.contains_key(&claim.id)),
            "the sentences are not those of the claims"
        );
        ensure!(
            self.own.len() == source.own.len(),
            "`own` has another number of texts than of rows"
        );
        Ok(())
    }
}

/// A phrase in this language. Phrases without lower-case letters (numbers, identifiers) are the same in all
/// languages.
///
/// # Errors
///
/// The dictionary does not have the phrase.
pub(super) fn phrase<'a>(
    phrases: &'a Phrases,
    language: Language,
    english: &'a str,
) -> anyhow::Result<&'a str> {
    let is_number = !english.contains(|c: char| c.is_ascii_lowercase());
    match language {
        Language::English => Ok(english),
        Language::Chinese if is_number => Ok(english),
        Language::Chinese => phrases
            .get(english)
            .map(String::as_str)
            .with_context(|| format!("terms.zh.toml has no {english:?}")),
    }
}
