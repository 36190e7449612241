//! The description of a key, from which its parser, its error messages and its reference entry are
//! made.
//!
//! A key is a record beside the code that reads it. Its text is for operators: what changes when
//! the value changes, what goes wrong at either extreme, and what other servers call it.
//!
//! The documentation of the type that a key fills refers to the reference for all of that. A test holds each default
//! here against that of the type.

use toml::Spanned;
use toml::de::DeValue;

use crate::value::{Complaint, Values};

/// A key of the file.
pub struct Key<V> {
    /// Its name in the file.
    pub name: &'static str,
    /// What its value may be.
    pub values: V,
    /// What it means.
    pub doc: Doc,
}

/// What a key means.
pub struct Doc {
    /// What holds when the key is left out.
    pub preset: Preset,
    /// A value other than the preset, as one would write it.
    pub sample: &'static str,
    /// What changes when it changes, and why the preset is what it is.
    pub effect: &'static str,
    /// What goes wrong when it is too low, too high or wrong.
    pub extremes: &'static str,
    /// The directives of other servers that it answers to; empty when there is none.
    pub elsewhere: &'static str,
}

/// What holds when a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The file is at fault.
    Required,
    /// This value, as one would write it.
    Value(&'static str),
    /// No value; in words, what that means.
    Unset(&'static str),
}

/// A key of any type, for lists of keys.
pub trait AnyKey: Sync {
    /// Its name in the file.
    fn name(&self) -> &'static str;
    /// What it means.
    fn doc(&self) -> &Doc;
    /// The kind and range of its value.
    fn values(&self) -> String;
    /// Whether it may have this value.
    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool;
}

impl<V: Values> AnyKey for Key<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &Doc {
        &self.doc
    }

    fn values(&self) -> String {
        self.values.describe()
    }

    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool {
        self.values.read(value).is_ok()
    }
}

/// A key of the file: its name, what its value may be and which field it fills, and what it means. All that there is to
/// say of a key is said here, and a list of them is how a table is read.
pub struct Record<T: 'static> {
    /// Its name in the file.
    pub name: &'static str,
    /// Which backends, routes or the like it is for.
    pub group: Group,
    /// What its value may be, and what is filled with it.
    pub value: &'static dyn Value<T>,
    /// What it means.
    pub doc: Doc,
}

/// Keys that belong together within their table: they are only for AJP, say. The text is for developers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub &'static str);

/// Keys that are for everything that the table describes.
pub const ALL: Group = Group("all");

/// A kind of value, without what it fills.
pub trait Kind: Sync {
    /// The kind and its range, for the reference page.
    fn describe(&self) -> String;
    /// Whether this is such a value.
    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool;
}

/// A kind of value that fills something of a `T`.
pub trait Value<T>: Kind {
    /// Fills it, or says everything that is wrong with the value and leaves it as it was.
    fn read_into(&self, value: &Spanned<DeValue<'_>>, into: &mut T) -> Result<(), Vec<Complaint>>;
}

/// Values of the kind `V`, and what of a `T` one is put into.
pub struct Fill<V: Values, T>(pub V, pub fn(&mut T) -> &mut V::Read);

impl<V: Values, T> Kind for Fill<V, T> {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool {
        self.0.read(value).is_ok()
    }
}

impl<V: Values, T> Value<T> for Fill<V, T> {
    fn read_into(&self, value: &Spanned<DeValue<'_>>, into: &mut T) -> Result<(), Vec<Complaint>> {
        *self.1(into) = self.0.read(value)?;
        Ok(())
    }
}

impl<T> AnyKey for Record<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &Doc {
        &self.doc
    }

    fn values(&self) -> String {
        self.value.describe()
    }

    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool {
        self.value.takes(value)
    }
}

/// A list of keys, whatever they fill.
pub trait AnyKeys: Sync {
    /// The one of that index, with its group.
    fn get(&self, index: usize) -> Option<(Group, &'static dyn AnyKey)>;
}

impl<T> AnyKeys for &'static [Record<T>] {
    fn get(&self, index: usize) -> Option<(Group, &'static dyn AnyKey)> {
        let key = <[_]>::get(self, index)?;
        Some((key.group, key))
    }
}

/// Keys of a table: those of a list that are in certain groups.
pub struct Part {
    keys: &'static dyn AnyKeys,
    groups: fn(Group) -> bool,
}

impl Part {
    /// All of a list.
    pub const fn all(keys: &'static dyn AnyKeys) -> Self {
        Self {
            keys,
            groups: |_| true,
        }
    }

    /// Those of a list that are in such a group.
    pub const fn of(keys: &'static dyn AnyKeys, groups: fn(Group) -> bool) -> Self {
        Self { keys, groups }
    }

    fn keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        let all = (0..).map_while(|index| self.keys.get(index));
        all.filter_map(|(group, key)| (self.groups)(group).then_some(key))
    }
}

/// A table of the file.
pub struct Section {
    /// How its header is written, such as `[[listen]]`.
    pub header: &'static str,
    /// What it is for.
    pub intro: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: &'static [&'static dyn AnyKey],
    /// Its keys, in the order of the reference, behind those of `keys`.
    pub parts: &'static [Part],
    /// Keys that a later version will have, with what to do until then.
    pub later: &'static [(&'static str, &'static str)],
}

impl Section {
    /// Whether it has a key of that name.
    pub fn has(&self, name: &str) -> bool {
        self.keys().any(|key| key.name() == name)
    }

    /// All its keys, in the order of the reference.
    pub fn keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        let keys = self.keys.iter().copied();
        keys.chain(self.parts.iter().flat_map(Part::keys))
    }
}
