//! Checks the readers of other servers' files, and the import, with any text.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpus in the crate's own tests.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use catamaran_import::read::{httpd, nginx, properties};
use catamaran_import::{Files, Kind, Options, import};

/// Any bytes as a file of httpd.
pub(crate) fn httpd(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match httpd::parse(&text) {
        Ok(nodes) => {
            httpd_nodes(&nodes, &text);
            convert(data, Kind::Httpd);
        }
        Err(error) => assert!(error.line >= 1 && !error.message.is_empty()),
    }
}

fn httpd_nodes(nodes: &[httpd::Node], text: &str) {
    for node in nodes {
        place(node.line, &node.span, text);
        httpd_nodes(node.inner.as_deref().unwrap_or_default(), text);
    }
}

/// Any bytes as a file of nginx.
pub(crate) fn nginx(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match nginx::parse(&text) {
        Ok(nodes) => {
            nginx_nodes(&nodes, &text);
            convert(data, Kind::Nginx);
        }
        Err(error) => assert!(error.line >= 1 && !error.message.is_empty()),
    }
}

fn nginx_nodes(nodes: &[nginx::Node], text: &str) {
    for node in nodes {
        place(node.line, &node.span, text);
        nginx_nodes(node.inner.as_deref().unwrap_or_default(), text);
    }
}

/// Any bytes as a file of mod_jk.
pub(crate) fn properties(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for property in properties::parse(&text) {
        place(property.line, &property.span, &text);
        assert!(!property.name.contains('\n') && !property.value.contains('\n'));
    }
    convert(data, Kind::ModJk);
}

fn place(line: usize, span: &Range<usize>, text: &str) {
    assert!(line >= 1 && line <= text.split('\n').count(), "{line}");
    assert!(text.get(span.clone()).is_some(), "{span:?}");
    let before = text[..span.start].matches('\n').count();
    assert_eq!(before + 1, line);
}

/// The only file that exists.
struct OneFile<'d>(&'d [u8]);

impl Files for OneFile<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path != Path::new(NAME) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(self.0.to_vec())
    }

    fn matching(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }

    fn names(&self, _: &Path) -> Option<Vec<String>> {
        None
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Imports the text: the result must pass `check` or say that it does not, and each directive must have one entry in
/// the report.
fn convert(data: &[u8], kind: Kind) {
    if data.len() > CONVERTED_MAX {
        return;
    }
    for keep in [None, Some("http://127.0.0.1:8081")] {
        let options = Options {
            kind: Some(kind),
            files: vec![PathBuf::from(NAME)],
            keep: keep.map(str::to_owned),
            inline_secrets: true,
            ..Options::default()
        };
        let Ok(import) = import(&OneFile(data), &options) else {
            continue;
        };
        assert_eq!(import.sums.total(), import.directives.len());
        if let Err(report) = catamaran_config::parse("catamaran.toml", &import.text) {
            let mut remarks = import.remarks.iter();
            let is_said = remarks.any(|it| it.text.starts_with("`check` refuses"));
            assert!(is_said, "{report}\n{}", import.text);
        }
    }
}

const NAME: &str = "/fuzz.conf";

/// Longer texts are only read, not imported.
const CONVERTED_MAX: usize = 4096;
