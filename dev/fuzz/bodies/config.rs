//! Checks the configuration file with any text.
//!
//! A plain function that panics on a finding: the fuzz target `config` calls it, and so does the
//! replay of the committed corpus in the crate's own tests.

use catamaran_config::{Severity, parse, parse_listen_address, parse_upstream_url};

/// Reads any bytes as a file: it must be usable or have findings, and all findings must be printable.
pub(crate) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let report = match parse("fuzz.toml", &text) {
        Ok(loaded) => {
            assert_eq!(loaded.report.faults(), 0);
            assert!(!loaded.config.listeners.is_empty());
            assert!(!loaded.config.routes.is_empty());
            loaded.report
        }
        Err(report) => {
            assert!(report.faults() > 0);
            report
        }
    };
    for finding in report.findings() {
        let is_inside =
            |span: &std::ops::Range<usize>| span.start <= span.end && span.end <= text.len();
        assert!(finding.span.as_ref().is_none_or(is_inside), "{finding:?}");
        assert!(finding.span.is_some() || finding.severity == Severity::Fault);
    }
    let shown = report.to_string();
    assert_eq!(shown.is_empty(), report.findings().is_empty());
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    let _ = parse_upstream_url(&text);
    let _ = parse_listen_address(&text);
}
