//! Expands files of httpd to the directives that apply: includes files, fills in variables, evaluates conditions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::directive::Directive;
use crate::files::{Budget, Files, ImportError, Text};
use crate::httpd::modules::{Modules, guards_of};
use crate::ledger::{Id, Ledger, Place};
use crate::read::httpd::{Node, parse};

/// The state of the expansion of one configuration.
pub(crate) struct Expansion<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) budget: &'a mut Budget,
    pub(crate) defines: HashMap<String, String>,
    /// The variables of Debian's `envvars`.
    pub(crate) environment: HashMap<String, String>,
    pub(crate) server_root: Option<PathBuf>,
    pub(crate) modules: Modules,
    /// A number for each placeholder, so that each is reported once.
    pub(crate) placeholders: HashMap<String, usize>,
    pub(crate) depth: usize,
}

impl Expansion<'_> {
    /// Parses a file, and returns its directives that are in force.
    pub(crate) fn file(&mut self, text: &Text) -> Result<Vec<Directive>, ImportError> {
        let nodes = parse(&text.text).map_err(|error| ImportError::Syntax {
            file: std::sync::Arc::clone(&text.name),
            line: error.line,
            message: error.message,
        })?;
        self.nodes(nodes, text, true)
    }

    /// The directives that nodes of a file stand for. If they are not in force, they only enter the ledger, as dropped.
    fn nodes(
        &mut self,
        nodes: Vec<Node>,
        text: &Text,
        in_force: bool,
    ) -> Result<Vec<Directive>, ImportError> {
        let mut found = Vec::new();
        for node in nodes {
            self.node(node, text, in_force, &mut found)?;
        }
        Ok(found)
    }

    /// Adds the directives that a parsed node stands for: itself, those of an included file, or those of a section
    /// whose condition holds.
    fn node(
        &mut self,
        node: Node,
        text: &Text,
        in_force: bool,
        found: &mut Vec<Directive>,
    ) -> Result<(), ImportError> {
        let name = node.name.to_ascii_lowercase();
        let server = if name.starts_with("jk") {
            "mod_jk"
        } else {
            "httpd"
        };
        let place = Place::new(&text.name, node.line);
        let id = self.ledger.enter(server, &node.name, &place);
        if !in_force {
            self.ledger.dropped(id, "its section is not in force");
            self.nodes(node.inner.unwrap_or_default(), text, false)?;
            return Ok(());
        }
        // Their `%{…}` and groups may look like variables of the file.
        let keeps_variables = matches!(
            name.as_str(),
            "logformat" | "customlog" | "rewriterule" | "rewritecond"
        );
        let words = if keeps_variables {
            node.words
        } else {
            node.words.iter().map(|it| self.filled(it, id)).collect()
        };
        match name.as_str() {
            "include" | "includeoptional" => {
                self.ledger.mapped(id);
                let pattern = words.first().map_or("", String::as_str);
                return self.include(pattern, name == "includeoptional", text, id, found);
            }
            "define" => {
                self.ledger.mapped(id);
                let variable = words.first().cloned().unwrap_or_default();
                let value = words.get(1).cloned().unwrap_or_default();
                self.defines.insert(variable, value);
            }
            "serverroot" => {
                self.ledger.mapped(id);
                self.server_root = words.first().map(PathBuf::from);
            }
            "ifmodule" | "ifdefine" | "ifversion" => {
                self.ledger.mapped(id);
                let holds = self.holds(&name, &words);
                let may_hold = holds != Some(false);
                let inside = self.nodes(node.inner.unwrap_or_default(), text, may_hold)?;
                found.extend(match holds {
                    Some(_) => inside,
                    None => guards_of(inside, self.ledger),
                });
            }
            "loadmodule" => {
                self.ledger.dropped(id, "the front has no modules");
                self.modules.load(words.first().map_or("", String::as_str));
            }
            _ => {
                let words = self.below_root(&name, words);
                let inner = node.inner.map(|inner| self.nodes(inner, text, true));
                let inner = inner.transpose()?;
                found.extend(beside_demands(Directive {
                    id,
                    name,
                    words,
                    inner,
                }));
            }
        }
        Ok(())
    }

    /// The words of a directive. If the first one is a file that httpd looks for below the server's root, it becomes
    /// absolute.
    fn below_root(&self, name: &str, mut words: Vec<String>) -> Vec<String> {
        let root = self.server_root.as_deref().filter(|it| it.is_absolute());
        if let Some(root) = root.filter(|_| BELOW_ROOT.contains(&name))
            && let Some(path) = words.first_mut().filter(|it| !it.is_empty())
        {
            *path = root.join(&*path).to_string_lossy().into_owned();
        }
        words
    }

    /// Whether the condition of a section such as `<IfModule>` holds, for httpd 2.4; `None` if that is not known.
    /// A module of which nothing is known counts as loaded.
    fn holds(&self, name: &str, words: &[String]) -> Option<bool> {
        let test = words.first().map_or("", String::as_str);
        let negated_test = test.strip_prefix('!');
        let is_negated = negated_test.is_some();
        let subject = negated_test.unwrap_or(test);
        let holds = match name {
            "ifdefine" => self.defines.contains_key(subject),
            "ifversion" => is_of_version(subject, words.last().map_or("", String::as_str)),
            _ => match self.modules.has(subject) {
                Some(is_loaded) => is_loaded,
                None if is_negated => return None,
                None => true,
            },
        };
        Some(holds != is_negated)
    }

    /// Adds the directives of the files that an `Include` names. If there is none, adds one that closes the place,
    /// unless it is known that nothing is missing there.
    fn include(
        &mut self,
        pattern: &str,
        is_optional: bool,
        text: &Text,
        id: Id,
        found: &mut Vec<Directive>,
    ) -> Result<(), ImportError> {
        if self.depth >= DEPTH_MAX {
            return Err(ImportError::TooMuch("20 levels of files"));
        }
        let paths = self.paths(pattern, text);
        if paths.is_empty() {
            self.modules.miss_file();
            let is_known_to_be_empty = self.is_empty_there(pattern, is_optional, text);
            let is_harmless = HARMLESS.iter().any(|ending| pattern.ends_with(ending));
            if !is_known_to_be_empty && !is_harmless {
                found.push(Directive::missing(pattern, id, self.ledger));
            }
        }
        // The paths are those that exist.
        for path in paths {
            let included = self.budget.read(self.files, &path)?;
            self.depth += 1;
            found.extend(self.file(&included)?);
            self.depth -= 1;
        }
        Ok(())
    }

    /// The files that a path in a directive names; it may be a pattern.
    pub(crate) fn paths(&self, pattern: &str, text: &Text) -> Vec<PathBuf> {
        for path in self.rooted(pattern, text) {
            let matching = self.files.matching(&path.to_string_lossy());
            if !matching.is_empty() {
                return matching;
            }
        }
        Vec::new()
    }

    /// Whether it is known that an `Include` that names no file here names none there either: it names a directory that is
    /// empty, or it is optional and its directory is there. Without `IncludeOptional` httpd does not start if a pattern
    /// fits nothing, so that files are missing here.
    fn is_empty_there(&self, pattern: &str, is_optional: bool, text: &Text) -> bool {
        let Some(path) = self.rooted(pattern, text).into_iter().next() else {
            return false;
        };
        if let Some(names) = self.files.names(&path) {
            return names.is_empty();
        }
        // httpd has other patterns than the importer looks for. Which directories a pattern would fit is not known.
        let is_plain = |path: &&Path| !path.to_string_lossy().contains(['*', '?']);
        let directory = path.parent().filter(is_plain);
        let is_read = !pattern.contains(['[', '{', '\\']);
        is_optional && is_read && directory.is_some_and(|it| self.files.names(it).is_some())
    }

    /// The paths that a relative path in a directive may mean: below the server's root, or next to the file.
    fn rooted(&self, pattern: &str, text: &Text) -> Vec<PathBuf> {
        if Path::new(pattern).is_absolute() {
            return vec![PathBuf::from(pattern)];
        }
        let server_root = self.server_root.as_deref().into_iter();
        let directories = server_root.chain(text.path.parent());
        directories.map(|it| it.join(pattern)).collect()
    }

    /// A word with its variables filled in. A variable without a value is reported as a risk, and replaced by a host
    /// name that does not resolve.
    fn filled(&mut self, word: &str, id: Id) -> String {
        let mut text = word.to_owned();
        for _ in 0..VARIABLES_MAX {
            // `{{name}}` is a placeholder of a template. The opening that comes first in the text is filled first.
            let openings = ["${", "{{"].into_iter();
            let first = openings
                .filter_map(|opening| Some((text.find(opening)?, opening)))
                .min();
            let Some((start, opening)) = first else { break };
            let closing = if opening == "${" { "}" } else { "}}" };
            let name_start = start + opening.len();
            let Some(length) = text[start..].find(closing) else {
                break;
            };
            let name_end = start + length;
            let name = text[name_start..name_end].trim().to_owned();
            let known = match opening {
                "${" => self.variable(&name),
                _ => None,
            };
            let value = known.unwrap_or_else(|| self.placeholder(&name, id));
            if text.len() + value.len() > WORD_MAX {
                break;
            }
            text.replace_range(start..name_end + closing.len(), &value);
        }
        text
    }

    /// The value of a variable of the file or of the environment.
    fn variable(&self, name: &str) -> Option<String> {
        let environment = &self.environment;
        let of_files = self.defines.get(name).or_else(|| environment.get(name));
        of_files.cloned().or_else(|| self.files.variable(name))
    }

    /// A host name that does not resolve, in place of a variable without a value.
    fn placeholder(&mut self, name: &str, id: Id) -> String {
        let next = self.placeholders.len() + 1;
        let number = *self.placeholders.entry(name.to_owned()).or_insert(next);
        let text = format!(
            "`{name}` is not filled in; `placeholder-{number}.invalid` stands in its place (--define {name}=VALUE)"
        );
        let place = self.ledger.place(id).clone();
        self.ledger.unfilled(name, place, text);
        format!("placeholder-{number}.invalid")
    }
}

/// A directive, and behind it those inside of it that do not belong to it: of what stands in a `<RequireAll>` and the like,
/// httpd reads all but `Require` and such sections as if it stood beside them.
fn beside_demands(mut directive: Directive) -> Vec<Directive> {
    let mut beside = Vec::new();
    if DEMANDS.contains(&directive.name.as_str())
        && let Some(inner) = directive.inner.take()
    {
        let belongs = |it: &Directive| it.inner.is_some() || it.name == "require";
        let (own, others): (Vec<Directive>, Vec<Directive>) = inner.into_iter().partition(belongs);
        directive.inner = Some(own);
        beside = others;
    }
    [directive].into_iter().chain(beside).collect()
}

/// The variables of the file `envvars` next to a configuration, or in the directory above it, as on a Debian.
pub(crate) fn environment(files: &dyn Files, beside: &Path) -> HashMap<String, String> {
    let mut directories = beside.ancestors().skip(1).take(2);
    let Some(file) = directories.find_map(|it| files.read(&it.join("envvars")).ok()) else {
        return HashMap::new();
    };
    let text = String::from_utf8_lossy(&file);
    let mut variables = HashMap::new();
    for line in text.lines() {
        if let Some(assignment) = line.trim().strip_prefix("export ")
            && let Some((name, quoted_value)) = assignment.split_once('=')
        {
            // `SUFFIX` is empty for the first of several instances, which is assumed here.
            let value = quoted_value
                .trim_matches(['"', '\''])
                .replace("$SUFFIX", "");
            // Only a shell knows the value of what begins with these signs.
            if !value.contains(['$', '`']) {
                variables.insert(name.to_owned(), value);
            }
        }
    }
    variables
}

/// Whether httpd 2.4 passes a comparison with a version. Of `version`, only these releases are distinguished.
fn is_of_version(comparison: &str, version: &str) -> bool {
    let is_2_4 = version.starts_with("2.4");
    let is_2_4_or_older = is_2_4 || version.starts_with("2.2") || version.starts_with("2.0");
    match comparison {
        "<" | "<=" => !is_2_4_or_older,
        "=" | "==" | "~" => is_2_4,
        _ => is_2_4_or_older,
    }
}

/// Included files of distributions that restrict no access, so that they may be missing.
const HARMLESS: &[&str] = &[
    "options-ssl-apache.conf",
    "mods-enabled/*.conf",
    "mods-enabled/*.load",
    "ports.conf",
    "conf.modules.d/*.conf",
];

/// Directives whose files are relative to the server's root.
const BELOW_ROOT: [&str; 2] = ["authuserfile", "authgroupfile"];

/// Sections of which all or some demands must be met.
const DEMANDS: [&str; 3] = ["requireall", "requireany", "requirenone"];

const DEPTH_MAX: usize = 20;
const VARIABLES_MAX: usize = 100;
const WORD_MAX: usize = 64 << 10;
