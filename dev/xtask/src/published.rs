//! The pages of the five published tests, `docs/published.md` and `docs/published/*`, in two languages, with their pictures.
//!
//! `crates/lab/lab/published` has what the sources say: the texts of ab and strace as they were printed, a file for
//! each source with its other numbers and its claims, and a file of texts for each language. This module compares
//! each claim with the committed result that repeats it, and with what the post's own software does when it is run
//! today.

mod capacity;
mod check;
mod eras;
mod evidence;
mod expression;
mod figure_words;
mod index;
mod language;
mod numbers;
mod page;
mod picture;
mod reproduced;
mod source;
mod starts;
mod text;
mod texts;
mod undecided;
mod verdict;

use std::path::Path;

pub(crate) use self::check::check;
use self::eras::{Era, Eras, Evidence};
use self::evidence::{Answer, answer};
use self::language::Language;
use self::page::PostPage;
use self::source::{Claim, Library, Source};
use crate::figures::LabResult;

/// A published claim with the answer of our results.
struct Judged<'a> {
    claim: &'a Claim,
    answer: Answer,
}

/// A file that is written: its name below the root, and its text.
pub(crate) type PageFile = (String, String);

/// The files of all pages and pictures, and the README's list of answers.
pub(crate) struct PublishedFiles {
    pub(crate) files: Vec<PageFile>,
    /// Lines of Markdown, one for each post.
    pub(crate) answers: String,
}

/// Writes all pages and pictures.
///
/// # Errors
///
/// A file of a source cannot be read or names what does not exist, or a committed result lacks a claim, cell or
/// measure that a source refers to.
pub(crate) fn files(
    root: &Path,
    results: &[(String, LabResult)],
) -> anyhow::Result<PublishedFiles> {
    let library = source::load(&root.join(FOLDER))?;
    let eras = Eras::of(results);
    let judged = judge(&library, &eras)?;
    let pages = |language| -> Vec<PostPage<'_>> {
        let posts = judged.iter();
        posts
            .map(|(source, claims)| PostPage {
                source,
                claims,
                // Beside numbers of a post stand those of today's software.
                results: &eras.now,
                phrases: &library.phrases,
                language,
            })
            .collect()
    };
    let english = pages(Language::English);
    let mut files = vec![("docs/published.md".to_owned(), index::text(&english)?)];
    for page in Language::ALL.into_iter().flat_map(pages) {
        let (test, suffix) = (&page.source.test, page.language.suffix());
        files.push((format!("docs/published/{}", page.name()), page.text()?));
        let picture = |name: String| format!("docs/pictures/published/{name}{suffix}.svg");
        files.push((picture(test.clone()), picture::ratios(&page)?));
        files.push((picture(format!("{test}-layout")), picture::layout(&page)));
    }
    Ok(PublishedFiles {
        files,
        answers: index::list(&english),
    })
}

/// The sources with their claims, each with its answer.
type JudgedSource<'a> = (&'a Source, Vec<Judged<'a>>);

/// Answers all claims.
fn judge<'a>(library: &'a Library, eras: &Eras) -> anyhow::Result<Vec<JudgedSource<'a>>> {
    let mut judged = Vec::new();
    for source in &library.sources {
        let then = Evidence::of(source, eras.results_of(Era::Then))?;
        let now = Evidence::of(source, eras.results_of(Era::Now))?;
        let mut claims = Vec::new();
        for claim in &source.claims {
            let answer = answer(source, claim, &then, &now)?;
            claims.push(Judged { claim, answer });
        }
        judged.push((source, claims));
    }
    Ok(judged)
}

const FOLDER: &str = "crates/lab/lab/published";

#[cfg(test)]
mod tests;
