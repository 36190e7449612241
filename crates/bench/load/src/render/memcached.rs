//! Renders the load on memcached and its results, for people and for programs.

use super::page::Page;
use crate::report::{MemcachedSubject, Operations, Subject};

/// Writes the lines about the server and the load, in place of ab's lines about a document.
pub(super) fn heading(page: &mut Page, subject: &Subject, load: &MemcachedSubject) {
    page.pair("Server Hostname", &subject.hostname);
    page.pair("Server Port", subject.port);
    page.gap();
    page.pair("Protocol", subject.protocol.name());
    if subject.streams > 1 {
        page.pair(
            "Pipeline",
            format_args!("{} per connection", subject.streams),
        );
    }
    page.pair("Operations", &load.mix);
    let order = match load.zipf {
        Some(exponent) => format!("by Zipf's law with exponent {exponent}"),
        None => "each as frequent as any other".to_owned(),
    };
    page.pair("Keys", format_args!("{}, {order}", load.keys));
    page.pair("Value", format_args!("{} bytes", load.value_bytes));
    if load.prefilled > 0 {
        page.pair(
            "Prefilled",
            format_args!("{} sets, in no count", load.prefilled),
        );
    }
}

/// Writes the counts of operations, among the counts of requests.
pub(super) fn counts(page: &mut Page, operations: &Operations) {
    let Operations {
        hits,
        misses,
        stored,
    } = operations;
    if operations.gets() > 0 {
        let gets = operations.gets();
        page.pair(
            "Gets",
            format_args!("{gets} (hits: {hits}, misses: {misses})"),
        );
    }
    if *stored > 0 {
        page.pair("Sets", stored);
    }
}

/// The results of operations in one line.
pub(super) fn answers(operations: &Operations) -> String {
    let mut parts = Vec::new();
    if let Some(share) = operations.hit_share() {
        // Rounded down, so that 100 % means that no get missed.
        let percent = (share * 1000.0).floor() / 10.0;
        let (hits, misses) = (operations.hits, operations.misses);
        parts.push(format!("hits {hits} ({percent:.1} %), misses {misses}"));
    }
    if operations.stored > 0 {
        parts.push(format!("stored {}", operations.stored));
    }
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use catamaran_memcache::Dialect;

    use super::*;
    use crate::render::{sample, text};
    use crate::report::{Report, SpokenProtocol};

    fn report() -> Report {
        let mut report = sample::report();
        report.statuses.clear();
        report.operations = Some(Operations {
            hits: 1,
            misses: 1,
            stored: 1,
        });
        let subject = &mut report.subject;
        subject.protocol = SpokenProtocol::Memcached(Dialect::Meta);
        subject.memcached = Some(MemcachedSubject {
            mix: "get=2, set=1".to_owned(),
            keys: 10,
            zipf: Some(0.99),
            value_bytes: 100,
            prefilled: 10,
        });
        report.conclude();
        report
    }

    #[test]
    fn misses_are_apart_and_nothing_is_called_a_page() {
        let text = text::text(&report());
        for line in [
            "Answers   hits 1 (50.0 %), misses 1, stored 1\n",
            "Protocol:               memcached (meta)\n",
            "Operations:             get=2, set=1\n",
            "Keys:                   10, by Zipf's law with exponent 0.99\n",
            "Value:                  100 bytes\n",
            "Prefilled:              10 sets, in no count\n",
            "Gets:                   2 (hits: 1, misses: 1)\n",
            "Sets:                   1\n",
            "Values transferred:     1041 bytes\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        for word in ["HTML", "Document", "2xx", "Keep-Alive", "Software"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_share_of_hits_is_not_rounded_up() {
        let answers = |hits, misses, stored| {
            answers(&Operations {
                hits,
                misses,
                stored,
            })
        };
        assert_eq!(answers(99_999, 1, 0), "hits 99999 (99.9 %), misses 1");
        assert_eq!(answers(5, 0, 0), "hits 5 (100.0 %), misses 0");
        assert_eq!(answers(0, 0, 7), "stored 7");
        assert_eq!(answers(0, 0, 0), "none");
    }

    #[test]
    fn programs_get_the_counts() {
        let facts = report().memcached.unwrap();
        assert_eq!(
            (facts.gets, facts.hits, facts.misses, facts.sets),
            (2, 1, 1, 1)
        );
        let mut report = sample::report();
        report.conclude();
        assert_eq!(report.memcached, None);
    }
}
