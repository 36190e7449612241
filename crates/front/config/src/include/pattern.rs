//! Patterns of `include`, and the files that match them.

use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern, glob_with};

/// A pattern of `include`, and the directory from which it starts if it is relative.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IncludePattern {
    base: PathBuf,
    text: String,
}

impl IncludePattern {
    /// The pattern in a text; `None`: the text has no wildcards, and is the path of a file.
    pub(crate) fn parse(text: &str, base: &Path) -> Option<Self> {
        text.contains(['*', '?', '[']).then(|| Self {
            base: base.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The files that match, sorted. `*` and `?` match neither a leading dot nor a `/`. Names that are not UTF-8 match
    /// nothing.
    ///
    /// There is at most one file more than may be included, which is enough to report that there are too many.
    ///
    /// # Errors
    /// The pattern is malformed, or a directory cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, String> {
        let pattern = self.anchored()?;
        // With `require_literal_leading_dot`, `glob_with` panics at a name that is not UTF-8.
        let with_hidden = MatchOptions {
            require_literal_leading_dot: false,
            ..OPTIONS
        };
        let paths = glob_with(&pattern, with_hidden).map_err(|error| error.to_string())?;
        let names_hidden = has_hidden(Path::new(&self.text));
        let plain_pattern = without_dots(Path::new(&pattern));
        let plain_text = plain_pattern.to_str().unwrap_or_default();
        let visible = Pattern::new(plain_text).map_err(|error| error.to_string())?;
        let mut files = Vec::new();
        for path in paths {
            match path {
                Ok(path) if visible.matches_path_with(&without_dots(&path), OPTIONS) => {
                    files.push(path);
                }
                Ok(_) => {}
                // What is in a hidden directory does not matter.
                Err(error) if !names_hidden && self.is_below_hidden(error.path()) => {}
                Err(error) => return Err(error.to_string()),
            }
            if files.len() > FILES_MAX {
                break;
            }
        }
        files.sort();
        Ok(files)
    }

    /// Whether a path is hidden, or in a hidden directory, as seen from where the pattern starts.
    fn is_below_hidden(&self, path: &Path) -> bool {
        has_hidden(path.strip_prefix(&self.base).unwrap_or(path))
    }

    /// The pattern with the directory from which it starts.
    fn anchored(&self) -> Result<String, String> {
        let directory = self
            .base
            .to_str()
            .ok_or("the directory's name is not UTF-8")?;
        if directory.is_empty() || self.text.starts_with('/') {
            Ok(self.text.clone())
        } else {
            Ok(format!("{}/{}", Pattern::escape(directory), self.text))
        }
    }
}

/// A path without its components `.`.
fn without_dots(path: &Path) -> PathBuf {
    let is_dot = |part: &Component<'_>| matches!(part, Component::CurDir);
    path.components().filter(|part| !is_dot(part)).collect()
}

/// Whether a name in a path has a leading dot.
fn has_hidden(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The most files that may be included: enough for one file for each of very many hosts.
pub(super) const FILES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn matched(directory: &Path, pattern: &str) -> Vec<String> {
        let pattern = IncludePattern::parse(pattern, directory).unwrap();
        let within = |path: &PathBuf| {
            let path = without_dots(path.strip_prefix(directory).unwrap());
            path.to_str().unwrap().to_owned()
        };
        pattern.files().unwrap().iter().map(within).collect()
    }

    #[test]
    fn hidden_names_and_names_that_are_not_utf8_match_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["a.toml", ".b.toml", "c.toml.bak", "d/e.toml", ".f/g.toml"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        fs::write(directory.path().join(OsStr::from_bytes(b"\xff.toml")), "").unwrap();
        for (pattern, expected) in [
            ("*.toml", &["a.toml"][..]),
            ("./*.toml", &["a.toml"]),
            ("d/../*.toml", &["d/../a.toml"]),
            ("*/*.toml", &["d/e.toml"]),
            ("**/*.toml", &["a.toml", "d/e.toml"]),
            (".*.toml", &[".b.toml"]),
            (".f/*", &[".f/g.toml"]),
            ("[x]*", &[]),
        ] {
            assert_eq!(matched(directory.path(), pattern), expected, "{pattern}");
        }
    }
}
