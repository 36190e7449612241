//! Renders a result for people: on a terminal, as Markdown, and as one page of HTML, all from the
//! [`ResultDocument`] alone.

mod claims;
mod headline;
mod html;
mod markdown;
mod picture;
mod table;
mod terminal;
#[cfg(test)]
mod whole_forms;

pub use html::html;
pub use markdown::markdown;
pub use picture::picture;
pub use terminal::terminal;

use crate::result::{CellResult, ResultDocument};
use crate::run::MemoryCount;

/// A few short sentences on when, where and in which form the experiment ran.
fn setting(result: &ResultDocument) -> String {
    let host = &result.host;
    let form = match (result.is_quick, result.is_published) {
        (true, _) => "The short form, whose claims are exploratory",
        (false, true) => "The published form, with the source's own cells",
        (false, false) => "The whole form",
    };
    let duel = if result.is_duel {
        format!(", as a duel with the seed {}", result.seed)
    } else {
        String::new()
    };
    let end = if result.is_complete {
        ""
    } else {
        "; incomplete"
    };
    let build = match host.slow_build() {
        Some(warning) => format!(" {warning}"),
        None => String::new(),
    };
    let void: usize = result.cells.iter().map(|cell| cell.void).sum();
    format!(
        "{form}{duel}: {} rounds of {} cells, {} void{end}. {}{}, {} cores of {}, {} MiB, Linux {}.{build}{}",
        result.rounds,
        result.cells.len(),
        runs(void),
        date(host.started_at_s),
        host.system,
        host.cores,
        host.processor,
        host.memory_mib,
        host.kernel,
        memory(result)
    )
}

/// A remark, after a space, if memory was counted in another way than today; else empty.
fn memory(result: &ResultDocument) -> &'static str {
    let has_memory =
        |cell: &CellResult| cell.measures.keys().any(|name| name.starts_with("memory"));
    match result.memory {
        MemoryCount::Proportional if result.cells.iter().any(has_memory) => {
            " Memory is PSS, in which our servers share the pages of their program with the load."
        }
        _ => "",
    }
}

/// A number of runs in words.
fn runs(count: usize) -> String {
    match count {
        0 => "no run".to_owned(),
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    }
}

/// The day in UTC with a comma after it; empty if it is not known.
fn date(started_at_s: u64) -> String {
    // In results by an older version the time may be 0.
    let seconds = i64::try_from(started_at_s).unwrap_or(0);
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) if seconds > 0 => format!("{}, ", time.strftime("%Y-%m-%d")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::experiment::{ERA, Layout, Level};
    use crate::store;

    /// Each committed result, with its directory.
    fn committed() -> Vec<(std::path::PathBuf, ResultDocument)> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/lab");
        let entries = fs::read_dir(directory).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let results = paths.filter(|path| path.is_dir()).map(|path| {
            let (_, result) = store::open_result(&path).unwrap();
            (path, result)
        });
        results.collect()
    }

    #[test]
    fn committed_reports_are_what_their_results_say() {
        let results = committed();
        assert!(results.len() >= 2);
        for (path, result) in results {
            let mut cells = result.cells.iter();
            assert!(
                cells.all(|cell| cell.over_time.is_none()),
                "{} has values over time, which no committed page shows: see docs/lab.md",
                path.display()
            );
            let file = path.join("report.md");
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                text == markdown(&result),
                "{} is not what `catamaran lab report` writes now",
                file.display()
            );
        }
    }

    #[test]
    fn a_page_has_what_was_published_and_what_was_noted() {
        let results = committed();
        let (_, keepalive) = results
            .iter()
            .find(|(path, _)| path.ends_with("keepalive"))
            .unwrap();
        let mut result = keepalive.clone();
        result.note = "Beside `other` work.".to_owned();
        result.as_published = vec![crate::result::AsPublishedResult {
            name: "004-on".to_owned(),
            theirs: "Requests per second:    16804.02".to_owned(),
            ours: "Requests per second:    <9000>".to_owned(),
            deviations: vec!["another machine".to_owned()],
            rounds: Some("9100/s".to_owned()),
        }];
        let page = html(&result);
        for words in [
            "<p class=\"note\">Beside <code>other</code> work.</p>",
            "<figcaption>published</figcaption><pre>Requests per second:    16804.02</pre>",
            "&lt;9000&gt;</pre>",
            "The rounds say: 9100/s.",
            "Otherwise than there: another machine.",
            "System calls of a request: 004-on.strace",
            "<td class=\"n brief\" data-name=\"published\">×0.77</td>",
        ] {
            assert!(page.contains(words), "{words}");
        }
        let text = markdown(&result);
        let again = text.find("<th>published</th><th>here</th>").unwrap();
        assert!(
            text.find("## Claims").unwrap() < again,
            "ab's blocks are folded away below"
        );
        assert_eq!(text.matches("<details>").count(), 1);
        assert!(text.contains("| lstat | 6.00 | 1.00 |"), "{text}");
    }

    #[test]
    fn a_report_begins_with_both_eras_and_says_the_limit_beside_verdicts() {
        let results = committed();
        let (_, keepalive) = results
            .iter()
            .find(|(path, _)| path.ends_with("keepalive-repetition"))
            .unwrap();
        let mut result = keepalive.clone();
        let control = result.control;
        let level = |era: &str| Level::Text(era.to_owned());
        result.cells[control]
            .levels
            .insert(ERA.to_owned(), level("now"));
        result.claims.clear();
        for claim in &keepalive.claims {
            for era in ["then", "now"] {
                let mut of_era = claim.clone();
                of_era.each.insert(ERA.to_owned(), level(era));
                result.claims.push(of_era);
            }
        }
        result.layout = Some(Layout {
            there: "one machine".to_owned(),
            here: Vec::new(),
            limits: vec!["cpu".to_owned()],
        });
        let text = markdown(&result);
        let first = text.split("\n\n**").next().unwrap();
        for era in ["then", "now"] {
            let row = format!(
                "| Keep-alive raises throughput (era={era}) | ×3.21 | ×1.48 [1.45..1.64] | **holds {era}** |"
            );
            assert!(first.contains(&row), "{first}");
        }
        assert!(text.contains("There: one machine."), "{text}");
        let rows = text.matches("; capacity is 1 / `cpu` |").count();
        // Throughput and CPU time, of either era.
        assert_eq!(rows, 4, "{text}");
        let page = html(&result);
        assert_eq!(page.matches("<div class=\"first\">").count(), 2);
        assert!(page.contains("<br><small>capacity is 1 / `cpu`</small>"));
    }

    #[test]
    fn planted_ratios_stand_beside_what_was_told() {
        let (_, mut result) = committed().remove(0);
        assert!(!markdown(&result).contains("## Planted, and told"));
        let claim = &mut result.claims[0];
        claim.says = "More work costs throughput".to_owned();
        claim.each.clear();
        (claim.ratio, claim.low, claim.high) = (Some(1.14), Some(1.137), Some(1.143));
        claim.planted = Some(crate::claim::PlantedRatio {
            ratio: 1.2,
            decided_after: Some(10),
        });
        let row =
            "| More work costs throughput | 1.200 | 1.140 [1.137..1.143] | -5.00 % | **no** | 10 |";
        assert!(markdown(&result).contains(row), "{}", markdown(&result));
        let page = html(&result);
        assert!(page.contains("<h2>Planted, and told</h2>"));
        assert!(page.contains("<td class=\"n brief\" data-name=\"truly\">no</td>"));
    }

    #[test]
    fn the_setting_is_a_line_of_its_own() {
        let (_, mut result) = committed().remove(0);
        result.rounds = 6;
        result.cells.iter_mut().for_each(|cell| cell.void = 0);
        let line = setting(&result);
        assert!(line.contains(", no run void. 2026-"), "{line}");
        result.is_quick = true;
        let line = setting(&result);
        assert!(line.starts_with("The short form, whose claims are exploratory: 6 rounds of"));
        assert_eq!(date(0), "");
    }
}
