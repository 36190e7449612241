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

/// A key of the file: its name, what its value may be and which field it fills, and what it means. All that there is to
/// say of a key is said here, and a list of them is how a table is read.
pub struct Key<T: 'static> {
    /// Its name in the file.
    pub name: &'static str,
    /// Which backends, routes or the like it is for.
    pub group: Group,
    /// What its value may be, and what is filled with it.
    pub value: &'static dyn Value<T>,
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

/// A [`Fill`] of a field: `fill!(Counts(1..=100), ProbeConfig.up)`.
#[macro_export]
macro_rules! fill {
    ($kind:expr, $type:ident $(. $field:ident)+) => {
        &$crate::key::Fill($kind, |it: &mut $type| &mut it $(. $field)+)
    };
}

/// A key, whatever it fills. The fields are those of [`Key`].
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "they are those of `Key`")]
pub struct AnyKey {
    pub name: &'static str,
    pub group: Group,
    pub kind: &'static dyn Kind,
    pub preset: Preset,
    pub sample: &'static str,
    pub effect: &'static str,
    pub extremes: &'static str,
    pub elsewhere: &'static str,
}

/// A list of keys, whatever they fill.
pub trait AnyKeys: Sync {
    /// The one of that index.
    fn get(&self, index: usize) -> Option<AnyKey>;
}

impl<T> AnyKeys for &'static [Key<T>] {
    fn get(&self, index: usize) -> Option<AnyKey> {
        let key = <[Key<T>]>::get(self, index)?;
        Some(AnyKey {
            name: key.name,
            group: key.group,
            kind: key.value,
            preset: key.preset,
            sample: key.sample,
            effect: key.effect,
            extremes: key.extremes,
            elsewhere: key.elsewhere,
        })
    }
}

/// Keys of a table: those of a list that are in certain groups.
pub struct Part {
    keys: &'static dyn AnyKeys,
    groups: fn(Group) -> bool,
}

impl Part {
    /// All keys of a list.
    pub const fn all(keys: &'static dyn AnyKeys) -> Self {
        Self {
            keys,
            groups: |_| true,
        }
    }

    /// The keys of a list whose groups `groups` accepts.
    pub const fn of(keys: &'static dyn AnyKeys, groups: fn(Group) -> bool) -> Self {
        Self { keys, groups }
    }

    fn keys(&self) -> impl Iterator<Item = AnyKey> {
        let all = (0..).map_while(|index| self.keys.get(index));
        all.filter(|key| (self.groups)(key.group))
    }
}

/// A table of the file.
pub struct Section {
    /// How its header is written, such as `[[listen]]`.
    pub header: &'static str,
    /// What it is for.
    pub intro: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: &'static [Part],
    /// Keys that a later version will have, with what to do until then.
    pub later: &'static [(&'static str, &'static str)],
}

impl Section {
    /// Whether the table has a key of that name.
    pub fn has(&self, name: &str) -> bool {
        self.keys().any(|key| key.name == name)
    }

    /// All its keys, in the order of the reference.
    pub fn keys(&self) -> impl Iterator<Item = AnyKey> {
        self.keys.iter().flat_map(Part::keys)
    }
}
