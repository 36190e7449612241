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
    pub(crate) fn has_httpd(&self) -> bool {
        !(self.httpd.is_empty() && self.workers.is_empty() && self.maps.is_empty())
    }

    pub(crate) fn add(&mut self, text: Text, kind: Option<Kind>) {
        let lines = text.text.lines().map(str::trim);
        let lines: Vec<&str> = lines
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
            .collect();
        let most =
            |is: &dyn Fn(&str) -> bool| 2 * lines.iter().filter(|it| is(it)).count() >= lines.len();
        let is_workers = lines.iter().any(|it| it.starts_with("worker."))
            && most(&|it| it.contains('=') && !it.starts_with('<'));
        let is_map = most(&|it| it.starts_with(['/', '!', '-', '*']) && it.contains('='));
        let is_nginx = most(&|it| it.ends_with([';', '{', '}']))
            && lines
                .iter()
                .any(|it| it.ends_with(';') || it.ends_with('{'));
        match kind {
            Some(Kind::Httpd) => self.httpd.push(text),
            Some(Kind::Nginx) => self.nginx.push(text),
            _ if is_workers => self.workers.push(text),
            _ if is_map && !lines.is_empty() => self.maps.push(text),
            Some(Kind::ModJk) => self.workers.push(text),
            None if is_nginx => self.nginx.push(text),
            None => self.httpd.push(text),
        }
    }
}
