//! The description of a key, from which its parser, its error messages and its entry in the reference are made.
//!
//! A key is described by a record beside the code that reads it. Its text is for operators: what changes when the value
//! changes, what goes wrong at either extreme, and what other servers call it.
//!
//! The documentation of the type that a key fills refers to the reference for all of that. A test compares each default
//! here with that of the type.

use toml::Spanned;
use toml::de::DeValue;

use crate::value::{Complaint, Values};

/// The description of one key: its name, what its value may be, which field it fills, and what it means.
///
/// Everything about a key is said here, and a table is read by going through a list of keys.
pub struct Key<T: 'static> {
    /// The name of the key in the file.
    pub name: &'static str,
    /// The group of the key, such as the kind of backends or routes that it is for.
    pub group: Group,
    /// What the value may be, and which field of `T` it fills.
    pub value: &'static dyn Value<T>,
    /// The value that applies if the key is left out.
    pub preset: Preset,
    /// An example value other than the preset, as one would write it in the file.
    pub sample: &'static str,
    /// What changes when the value changes, and why the preset is what it is.
    pub effect: &'static str,
    /// What goes wrong when the value is too low, too high or wrong.
    pub extremes: &'static str,
    /// The directives of other servers that correspond to it; empty if there are none.
    pub elsewhere: &'static str,
}

/// The value that applies if a key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The key must be present: its absence is a fault of the file.
    Required,
    /// This value applies, written as in the file.
    Value(&'static str),
    /// There is no value; the text says what that means.
    Unset(&'static str),
}

/// Marks keys of a table that belong together, such as those that are only for AJP. The text is for developers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub &'static str);

/// The group of keys that are for everything that the table describes.
pub const ALL: Group = Group("all");

/// What a value may be, regardless of what it fills.
pub trait Kind: Sync {
    /// The kind of value and its range in words, for the reference page.
    fn describe(&self) -> String;
    /// Whether `value` is a valid value of this kind.
    fn takes(&self, value: &Spanned<DeValue<'_>>) -> bool;
}

/// What a value may be, and which part of a `T` it fills.
pub trait Value<T>: Kind {
    /// Reads `value` into its field. If it is wrong, returns everything that is wrong with it and leaves the field as
    /// it was.
    fn read_into(&self, value: &Spanned<DeValue<'_>>, into: &mut T) -> Result<(), Vec<Complaint>>;
}

/// A kind of value `V`, and a function that gives the field of a `T` into which the value is put.
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

/// Makes a [`Fill`] of a field: `fill!(Counts(1..=100), ProbeConfig.up)`.
#[macro_export]
macro_rules! fill {
    ($kind:expr, $type:ident $(. $field:ident)+) => {
        &$crate::key::Fill($kind, |it: &mut $type| &mut it $(. $field)+)
    };
}

/// A key without the type that it fills. The fields are those of [`Key`].
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

/// A list of keys without the type that they fill.
pub trait AnyKeys: Sync {
    /// The key at `index`; `None` past the end.
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

/// A part of the keys of a table: those of a list that belong to certain groups.
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

    /// Those keys of the list whose group `groups` accepts.
    pub const fn of(keys: &'static dyn AnyKeys, groups: fn(Group) -> bool) -> Self {
        Self { keys, groups }
    }

    fn keys(&self) -> impl Iterator<Item = AnyKey> {
        let all = (0..).map_while(|index| self.keys.get(index));
        all.filter(|key| (self.groups)(key.group))
    }
}

/// The description of a table of the file.
pub struct Section {
    /// The header of the table as it is written, such as `[[listen]]`.
    pub header: &'static str,
    /// What the table is for, as text for the reference page.
    pub intro: &'static str,
    /// The keys of the table, in the order of the reference page.
    pub keys: &'static [Part],
    /// Keys that a later version will have, each with what to do until then.
    pub later: &'static [(&'static str, &'static str)],
}

impl Section {
    /// Whether the table has a key of that name.
    pub fn has(&self, name: &str) -> bool {
        self.keys().any(|key| key.name == name)
    }

    /// All keys of the table, in the order of the reference page.
    pub fn keys(&self) -> impl Iterator<Item = AnyKey> {
        self.keys.iter().flat_map(Part::keys)
    }
}
