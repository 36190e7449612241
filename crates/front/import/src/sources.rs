//! The files to convert, by the server that they belong to.

use crate::files::Text;

/// The server that a configuration belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `workers.properties` and `uriworkermap.properties` without httpd's files.
    ModJk,
    /// httpd, with mod_jk or mod_proxy.
    Httpd,
    /// A configuration of nginx.
    Nginx,
}

/// The texts to convert, by the server that they belong to.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) httpd: Vec<Text>,
    pub(crate) workers: Vec<Text>,
    pub(crate) maps: Vec<Text>,
    pub(crate) nginx: Vec<Text>,
}

impl Sources {
    /// Whether there is a file of httpd or of mod_jk.
    pub(crate) fn has_httpd(&self) -> bool {
        !(self.httpd.is_empty() && self.workers.is_empty() && self.maps.is_empty())
    }

    /// Adds a text to the texts of its server: that of `kind`, or else the one whose grammar most of its lines have.
    pub(crate) fn add(&mut self, text: Text, kind: Option<Kind>) {
        let mut lines: Vec<&str> = text.text.lines().map(str::trim).collect();
        lines.retain(|line| !line.is_empty() && !line.starts_with('#'));
        let some_line = |test: fn(&str) -> bool| lines.iter().any(|line| test(line));
        // At least half of the lines; a text without lines passes.
        let most_lines = |test: fn(&str) -> bool| {
            let passed = lines.iter().filter(|line| test(line)).count();
            2 * passed >= lines.len()
        };
        let is_workers = some_line(|line| line.starts_with("worker."))
            && most_lines(|line| line.contains('=') && !line.starts_with('<'));
        let is_map = !lines.is_empty()
            && most_lines(|line| line.starts_with(['/', '!', '-', '*']) && line.contains('='));
        let is_nginx = most_lines(|line| line.ends_with([';', '{', '}']))
            && some_line(|line| line.ends_with([';', '{']));
        match kind {
            Some(Kind::Httpd) => self.httpd.push(text),
            Some(Kind::Nginx) => self.nginx.push(text),
            // mod_jk has two kinds of files, which only their content distinguishes.
            _ if is_workers => self.workers.push(text),
            _ if is_map => self.maps.push(text),
            Some(Kind::ModJk) => self.workers.push(text),
            None if is_nginx => self.nginx.push(text),
            None => self.httpd.push(text),
        }
    }
}
