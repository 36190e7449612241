//! What must hold of the grammars of other servers for any text whatever.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpus in the crate's own tests.

use std::ops::Range;

use catamaran_import::read::{httpd, nginx, properties};

/// Any bytes as a file of httpd.
pub(crate) fn httpd(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match httpd::parse(&text) {
        Ok(nodes) => httpd_nodes(&nodes, &text),
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
        Ok(nodes) => nginx_nodes(&nodes, &text),
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
}

fn place(line: usize, span: &Range<usize>, text: &str) {
    assert!(line >= 1 && line <= text.split('\n').count(), "{line}");
    assert!(text.get(span.clone()).is_some(), "{span:?}");
    let before = text[..span.start].matches('\n').count();
    assert_eq!(before + 1, line);
}
