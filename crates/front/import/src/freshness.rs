//! How long files are fresh: the keys `cache_control` and `cache_control_types` of a route.

use std::collections::BTreeMap;

use catamaran_proxy::config::MediaPattern;

use crate::plan::Keys;
use crate::toml_text::{inline_table, quoted};

/// Values of `Cache-Control` of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// By patterns of media types; `None`: the field is not sent.
    of_types: BTreeMap<String, Option<String>>,
    /// That of all other files; `None`: the field is not sent.
    pub(crate) others: Option<String>,
}

impl Freshness {
    /// The same value for all files.
    pub(crate) fn of_all(value: Option<String>) -> Self {
        Self {
            of_types: BTreeMap::new(),
            others: value,
        }
    }

    /// Sets the value for files of a media type, or of all that a pattern such as `image/*` matches, in place of an
    /// earlier one. Returns `false` if the text is neither.
    pub(crate) fn set(&mut self, pattern: &str, value: Option<String>) -> bool {
        let lower = pattern.to_ascii_lowercase();
        let is_valid = MediaPattern::parse(&lower).is_some();
        if is_valid {
            self.of_types.insert(lower, value);
        }
        is_valid
    }

    /// Whether files of different types have different values.
    pub(crate) fn depends_on_type(&self) -> bool {
        !self.of_types.is_empty()
    }

    /// Writes the values into the keys of a route, in place of those that it has.
    pub(crate) fn write(&self, keys: &mut Keys) {
        for key in [OF_ALL, BY_TYPE] {
            keys.remove(key);
        }
        if let Some(value) = &self.others {
            keys.insert(OF_ALL.to_owned(), quoted(value));
        }
        if self.depends_on_type() {
            let pairs = self.of_types.iter().map(|(pattern, value)| {
                let value = value.as_deref().unwrap_or("off");
                (quoted(pattern), quoted(value))
            });
            keys.insert(BY_TYPE.to_owned(), inline_table(pairs));
        }
    }
}

const OF_ALL: &str = "cache_control";

const BY_TYPE: &str = "cache_control_types";
