//! Expands files of nginx to directives with their places in the ledger: includes files and fills in
//! placeholders.

use std::path::{Path, PathBuf};

use crate::directive::Directive;
use crate::files::{Budget, Files, ImportError, Text};
use crate::ledger::{Id, Ledger, Place, Weight};
use crate::nginx::files::MIME_TYPES;
use crate::nginx::maps;
use crate::read::nginx::{Node, parse};

/// The state of the expansion of one configuration.
pub(crate) struct Expansion<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) budget: &'a mut Budget,
    pub(crate) defines: &'a [(String, String)],
    /// The directory of the main file, for relative `include`s.
    pub(crate) beside: PathBuf,
    /// The directory of nginx's own main file, to which the names of certificates are relative; `None`: not known.
    pub(crate) main_directory: Option<PathBuf>,
    /// nginx's prefix, to which directories of files are relative; `None`: not known.
    pub(crate) prefix: Option<&'a Path>,
    pub(crate) depth: usize,
}

impl Expansion<'_> {
    /// Parses a file, and returns its directives with those of included files.
    pub(crate) fn file(&mut self, text: &Text) -> Result<Vec<Directive>, ImportError> {
        let nodes = self.parsed(text)?;
        if self.depth == 0 && nodes.iter().any(|it| it.name == "http") {
            self.main_directory = text.path.parent().map(Path::to_path_buf);
        }
        let mut found = Vec::new();
        self.nodes(nodes, text, &mut found)?;
        Ok(found)
    }

    /// The nodes of a file whose placeholders are filled in.
    fn parsed(&mut self, text: &Text) -> Result<Vec<Node>, ImportError> {
        let filled = self.filled(text);
        parse(&filled).map_err(|error| ImportError::Syntax {
            file: std::sync::Arc::clone(&text.name),
            line: error.line,
            message: error.message,
        })
    }

    /// The lines of a `map`, with those of the files that they include. An `include` without a file stays.
    fn lines(&mut self, lines: Vec<Node>, text: &Text) -> Result<Vec<Node>, ImportError> {
        let mut all = Vec::new();
        for line in lines {
            let pattern = line.words.first().filter(|_| line.name == "include");
            let paths = pattern.map_or_else(Vec::new, |it| self.paths(it, text));
            if paths.is_empty() {
                all.push(line);
                continue;
            }
            if self.depth >= DEPTH_MAX {
                return Err(TOO_DEEP);
            }
            for path in paths {
                let included = self.budget.read(self.files, &path)?;
                let nodes = self.parsed(&included)?;
                self.depth += 1;
                all.extend(self.lines(nodes, &included)?);
                self.depth -= 1;
            }
        }
        Ok(all)
    }

    /// Adds the directives of parsed nodes, with those of included files.
    fn nodes(
        &mut self,
        nodes: Vec<Node>,
        text: &Text,
        found: &mut Vec<Directive>,
    ) -> Result<(), ImportError> {
        for node in nodes {
            let place = Place {
                file: std::sync::Arc::clone(&text.name),
                line: node.line,
            };
            let id = self.ledger.enter("nginx", &node.name, &place);
            if node.name == "include" {
                self.ledger.mapped(id);
                self.include(
                    node.words.first().map_or("", String::as_str),
                    text,
                    id,
                    found,
                )?;
                continue;
            }
            let mut words = node.words;
            let inner = match node.inner {
                // The lines of such a block are data, not directives.
                Some(_) if node.name == "geo" => Some(Vec::new()),
                Some(inner) if node.name == "split_clients" => {
                    let pair = |it: &Node| format!("{}={}", it.name, it.words.join(" "));
                    words.extend(inner.iter().map(pair));
                    Some(Vec::new())
                }
                Some(inner) if node.name == "map" => {
                    words.extend(maps::words(self.lines(inner, text)?));
                    Some(Vec::new())
                }
                Some(inner) if node.name == "types" => {
                    for kind in inner {
                        let pair = |it: &String| format!("{it}={}", kind.name);
                        words.extend(kind.words.iter().map(pair));
                    }
                    Some(Vec::new())
                }
                Some(inner) => {
                    let mut directives = Vec::new();
                    self.nodes(inner, text, &mut directives)?;
                    Some(directives)
                }
                None => None,
            };
            self.make_absolute(&node.name, &mut words);
            found.push(Directive {
                id,
                name: node.name,
                words,
                inner,
            });
        }
        Ok(())
    }

    /// Makes a relative path absolute that a directive names in its first word, if it is known what it is relative to.
    fn make_absolute(&self, name: &str, words: &mut [String]) {
        let directory = match name {
            "root" | "alias" => self.prefix,
            _ if BESIDE_MAIN_FILE.contains(&name) => self.main_directory.as_deref(),
            _ => None,
        };
        let base = directory.filter(|it| it.is_absolute());
        let (Some(base), Some(path)) = (base, words.first_mut()) else {
            return;
        };
        let is_path = !path.is_empty() && !path.starts_with(['/', '$']) && !path.contains(':');
        if is_path {
            *path = base.join(&*path).to_string_lossy().into_owned();
        }
    }

    /// The directives of the files that an `include` names.
    fn include(
        &mut self,
        pattern: &str,
        text: &Text,
        id: Id,
        found: &mut Vec<Directive>,
    ) -> Result<(), ImportError> {
        if self.depth >= DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        if pattern.ends_with(MIME_TYPES) {
            found.push(Directive {
                id,
                name: MIME_TYPES.to_owned(),
                words: Vec::new(),
                inner: None,
            });
            return Ok(());
        }
        // Debian's file is known, and often stays behind when a configuration is copied.
        if pattern.ends_with("proxy_params") && self.paths(pattern, text).is_empty() {
            let text = Text {
                text: PROXY_PARAMS.into(),
                ..text.clone()
            };
            self.depth += 1;
            found.extend(self.file(&text)?);
            self.depth -= 1;
            return Ok(());
        }
        let paths = self.paths(pattern, text);
        if paths.is_empty()
            && !self.is_empty_there(pattern)
            && !HARMLESS.iter().any(|it| pattern.ends_with(it))
        {
            found.push(Directive::missing(pattern, id, self.ledger));
        }
        for path in paths {
            let text = self.budget.read(self.files, &path)?;
            self.depth += 1;
            found.extend(self.file(&text)?);
            self.depth -= 1;
        }
        Ok(())
    }

    /// Whether it is known that a pattern that fits no file here fits none there either: its directory is here.
    fn is_empty_there(&self, pattern: &str) -> bool {
        let path = self.beside.join(pattern);
        let is_plain = |path: &&Path| !path.to_string_lossy().contains(['*', '?', '[']);
        let directory = path.parent().filter(is_plain);
        // nginx has other patterns than the importer looks for.
        let is_read = pattern.contains('*') && !pattern.contains(['?', '[']);
        is_read && directory.is_some_and(|it| self.files.names(it).is_some())
    }

    /// The files that an `include` names. A relative path is looked up first next to the main file, then next to this
    /// file.
    fn paths(&self, pattern: &str, text: &Text) -> Vec<PathBuf> {
        if Path::new(pattern).is_absolute() {
            return self.files.matching(pattern);
        }
        let beside = text.path.parent().unwrap_or_else(|| Path::new(""));
        let above = beside.parent().unwrap_or_else(|| Path::new(""));
        let roots = [
            self.beside.as_path(),
            beside,
            above,
            Path::new("/etc/nginx"),
        ];
        let found = roots.map(|root| self.files.matching(&root.join(pattern).to_string_lossy()));
        found
            .into_iter()
            .find(|it| !it.is_empty())
            .unwrap_or_default()
    }

    /// The line with the values of `--define` in place of `${NAME}`, as `envsubst` writes them; variables of nginx
    /// are not replaced.
    fn with_defines(&self, line: &str) -> String {
        let defines = self.defines.iter();
        defines.fold(line.to_owned(), |line, (name, value)| {
            line.replace(&format!("${{{name}}}"), value)
        })
    }

    /// The text with placeholders of templates filled in. A placeholder without a value is reported as a risk, and
    /// replaced by a host name that does not resolve.
    fn filled(&mut self, text: &Text) -> String {
        let mut out = String::new();
        let mut names: Vec<String> = Vec::new();
        for (index, line) in text.text.split('\n').enumerate() {
            if index > 0 {
                out.push('\n');
            }
            let line = self.with_defines(line);
            let mut rest = line.as_str();
            if rest.trim_start().starts_with("{%") {
                let place = Place {
                    file: std::sync::Arc::clone(&text.name),
                    line: index + 1,
                };
                let said = "a condition of a template was left out: render the template first";
                self.ledger.say(Weight::Risk, Some(place), said);
                continue;
            }
            while let Some(start) = rest.find("{{") {
                let Some(length) = rest[start..].find("}}") else {
                    break;
                };
                let name = rest[start + 2..start + length].trim().to_owned();
                out.push_str(&rest[..start]);
                rest = &rest[start + length + 2..];
                let known = self
                    .defines
                    .iter()
                    .find(|it| it.0 == name)
                    .map(|it| it.1.clone());
                let value = known.unwrap_or_else(|| {
                    let at = names.iter().position(|it| *it == name);
                    let number = 1 + at.unwrap_or_else(|| {
                        names.push(name.clone());
                        names.len() - 1
                    });
                    let place = Place {
                        file: std::sync::Arc::clone(&text.name),
                        line: index + 1,
                    };
                    let said = format!("`{name}` is not filled in; `placeholder-{number}.invalid` stands in its place (--define \"{name}=VALUE\")");
                    self.ledger.unfilled(&name, place, said);
                    format!("placeholder-{number}.invalid")
                });
                out.push_str(&value);
            }
            out.push_str(rest);
        }
        out
    }
}

/// Included files of distributions that restrict no access, so that they may be missing.
const HARMLESS: &[&str] = &[
    "fastcgi_params",
    "fastcgi.conf",
    "uwsgi_params",
    "scgi_params",
    "options-ssl-nginx.conf",
    "snippets/snakeoil.conf",
];

/// Debian's `proxy_params`, used if the file does not exist.
const PROXY_PARAMS: &str = "proxy_set_header Host $http_host;\nproxy_set_header X-Real-IP $remote_addr;\n\
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\nproxy_set_header X-Forwarded-Proto $scheme;\n";

/// Directives whose files are relative to the directory of the main file (`ngx_conf_full_name` with `conf_prefix`).
const BESIDE_MAIN_FILE: [&str; 13] = [
    "auth_basic_user_file",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_crl",
    "proxy_ssl_password_file",
    "proxy_ssl_trusted_certificate",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_crl",
    "ssl_password_file",
    "ssl_stapling_file",
    "ssl_trusted_certificate",
];

const DEPTH_MAX: usize = 20;

const TOO_DEEP: ImportError = ImportError::TooMuch("20 levels of files");
