//! The header fields of a message: one list, in the order received.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::field::{is_token, is_token_text, is_value, is_value_text};
use crate::name::{self, Id, NameRef, Traits};

/// The fields of a head in the order received, repeated ones included.
///
/// Names and values are ranges of the head's own bytes, so that a field takes no memory of its own; fields that are
/// added or changed are written after them. A name in the table ([`name`]) is stored as its number. Values have no
/// control characters but tabs: in an added value each becomes a space (RFC 9110, section 5.5), and in an added name
/// a byte that is not allowed becomes `_`.
#[derive(Default)]
pub struct Fields {
    /// The head as received, or the copy of it that a store keeps.
    received: Bytes,
    /// Lines of HTTP/1.1 that were added. Offsets beyond the end of `received` are into these.
    added: Vec<u8>,
    entries: Vec<Entry>,
    /// A set of the names in the table that fields have, or had before they were removed; see [`Id::bit`].
    names: u64,
    /// All traits that a field has, or had before it was removed.
    traits: Traits,
}

/// The position of one field in the bytes.
#[derive(Clone, Copy)]
struct Entry {
    name_at: u32,
    value_at: u32,
    value_len: u32,
    /// The length of the name; 0: it is written nowhere, and is the spelling in the table.
    name_len: u16,
    name: EntryName,
    flags: u8,
}

/// The number of a name in the table; `None` for other names.
type EntryName = Option<Id>;

impl Entry {
    #[inline]
    fn traits(self) -> Traits {
        let own = match self.name {
            Some(id) => id.traits(),
            None => Traits::UNKNOWN,
        };
        match self.flags & IS_NOMINATED {
            0 => own,
            _ => own.with(Traits::NOMINATED),
        }
    }

    fn is_line(self) -> bool {
        self.flags & IS_LINE != 0
    }

    /// The offset after the field's line.
    fn line_end(self) -> u32 {
        self.value_at + self.value_len + 2
    }
}

/// One field of a list.
#[derive(Clone, Copy)]
pub struct Field<'f> {
    fields: &'f Fields,
    entry: &'f Entry,
}

impl<'f> Field<'f> {
    /// The number of the field's name in the table; `None` for other names.
    #[inline]
    #[must_use]
    pub fn id(self) -> Option<Id> {
        self.entry.name
    }

    /// The field's name as received. Names are equal whatever their case: compare them with [`Self::is`].
    #[inline]
    #[must_use]
    pub fn name(self) -> &'f [u8] {
        match (self.entry.name_len, self.entry.name) {
            (0, Some(id)) => id.spelling().as_bytes(),
            (len, _) => self.fields.text(self.entry.name_at, len.into()),
        }
    }

    /// The field's value.
    #[inline]
    #[must_use]
    pub fn value(self) -> &'f [u8] {
        let Entry {
            value_at,
            value_len,
            ..
        } = *self.entry;
        self.fields.text(value_at, value_len)
    }

    /// The traits of the field's name.
    #[inline]
    #[must_use]
    pub fn traits(self) -> Traits {
        self.entry.traits()
    }

    /// Whether the field has this name, in any case.
    #[inline]
    #[must_use]
    pub fn is<'n>(self, name: impl Into<NameRef<'n>>) -> bool {
        match (name.into(), self.entry.name) {
            (NameRef::Known(sought), its) => its == Some(sought),
            (NameRef::Other(sought), None) => self.name().eq_ignore_ascii_case(sought),
            (NameRef::Other(_), Some(_)) => false,
        }
    }

    /// The field's name, for looking up fields.
    #[inline]
    #[must_use]
    pub fn name_ref(self) -> NameRef<'f> {
        match self.entry.name {
            Some(id) => NameRef::Known(id),
            None => NameRef::Other(self.name()),
        }
    }

    /// The field's name in lower case.
    #[must_use]
    pub fn lower_name(self) -> String {
        String::from_utf8_lossy(self.name()).to_ascii_lowercase()
    }

    /// The field's name as a type of the `http` crate; `None` if that does not accept it.
    #[must_use]
    pub fn header_name(self) -> Option<HeaderName> {
        match self.entry.name {
            Some(id) => Some(id.header_name().clone()),
            None => HeaderName::from_bytes(self.name()).ok(),
        }
    }
}

impl Fields {
    /// A list without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            received: Bytes::new(),
            added: Vec::new(),
            entries: Vec::new(),
            names: 0,
            traits: Traits::NONE,
        }
    }

    /// Removes all fields. Keeps the memory for the next head, unless it is large.
    pub fn clear(&mut self) {
        self.received = Bytes::new();
        self.names = 0;
        self.traits = Traits::NONE;
        match self.entries.capacity() {
            0..=KEPT_FIELDS_MAX => self.entries.clear(),
            _ => self.entries = Vec::new(),
        }
        match self.added.capacity() {
            0..=KEPT_BYTES_MAX => self.added.clear(),
            _ => self.added = Vec::new(),
        }
    }

    /// The number of field lines.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no fields.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for `count` more fields.
    pub fn reserve(&mut self, count: usize) {
        self.entries.reserve(count);
    }

    /// Adds a field of the head that is being received, by the positions of its name and value. `is_line`: they
    /// stand exactly as [`Self::write_lines`] writes them. [`Self::keep`] must follow, with the bytes.
    #[inline]
    pub fn push(&mut self, id: Option<Id>, name: Range<usize>, value: Range<usize>, is_line: bool) {
        self.enter(Entry {
            name_at: offset(name.start),
            value_at: offset(value.start),
            value_len: offset(value.len()),
            name_len: u16::try_from(name.len()).unwrap_or(u16::MAX),
            name: id,
            flags: if is_line { IS_LINE } else { 0 },
        });
    }

    /// Sets the bytes of the head whose fields were [pushed](Self::push). Must come before any other field is added.
    #[inline]
    pub fn keep(&mut self, head: Bytes) {
        debug_assert!(self.added.is_empty() && self.received.is_empty());
        self.received = head;
    }

    #[inline]
    fn enter(&mut self, entry: Entry) {
        if let Some(id) = entry.name {
            self.names |= id.bit();
        }
        self.traits = self.traits.with(entry.traits());
        self.entries.push(entry);
    }

    #[inline]
    fn text(&self, at: u32, len: u32) -> &[u8] {
        let (at, len) = (at as usize, len as usize);
        let (bytes, at) = match at.checked_sub(self.received.len()) {
            None => (&self.received[..], at),
            Some(at) => (&self.added[..], at),
        };
        bytes.get(at..at + len).unwrap_or_default()
    }

    /// The fields, in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> + ExactSizeIterator {
        let entries = self.entries.iter();
        entries.map(move |entry| Field {
            fields: self,
            entry,
        })
    }

    /// Whether any field may have one of these traits; also `true` if only a field that was removed had it.
    #[inline]
    #[must_use]
    pub fn may_have(&self, traits: Traits) -> bool {
        self.traits.has_any(traits)
    }

    /// Whether a field of this name may be there: a quick test that may be wrong only when it is `true`.
    #[inline]
    fn may_name(&self, name: NameRef<'_>) -> bool {
        match name {
            NameRef::Known(id) => self.names & id.bit() != 0,
            NameRef::Other(_) => self.traits.has_any(Traits::UNKNOWN),
        }
    }

    /// The fields of this name.
    #[inline]
    fn named<'n>(
        &self,
        name: NameRef<'n>,
    ) -> impl DoubleEndedIterator<Item = Field<'_>> + Clone + use<'_, 'n> {
        let entries = if self.may_name(name) {
            &self.entries[..]
        } else {
            &[]
        };
        let fields = entries.iter().map(move |entry| Field {
            fields: self,
            entry,
        });
        fields.filter(move |field| field.is(name))
    }

    /// The value of the first field of this name.
    #[inline]
    #[must_use]
    pub fn get<'n>(&self, name: impl Into<NameRef<'n>>) -> Option<&[u8]> {
        self.named(name.into()).next().map(Field::value)
    }

    /// The value of the first field of this name as text; `None` also if it is not all ASCII.
    #[must_use]
    pub fn text_of<'n>(&self, name: impl Into<NameRef<'n>>) -> Option<&str> {
        let value = self.get(name).filter(|value| value.is_ascii())?;
        std::str::from_utf8(value).ok()
    }

    /// The values of all fields of this name.
    #[inline]
    pub fn get_all<'n, N: Into<NameRef<'n>>>(
        &self,
        name: N,
    ) -> impl DoubleEndedIterator<Item = &[u8]> + Clone + use<'_, 'n, N> {
        self.named(name.into()).map(Field::value)
    }

    /// Whether there is a field of this name.
    #[inline]
    #[must_use]
    pub fn contains<'n>(&self, name: impl Into<NameRef<'n>>) -> bool {
        self.named(name.into()).next().is_some()
    }

    /// Adds a field after the others.
    pub fn append<'n>(&mut self, name: impl Into<NameRef<'n>>, value: impl AsRef<[u8]>) {
        let entry = self.write(name.into(), value.as_ref());
        self.enter(entry);
    }

    /// Makes this the only field of its name: in the place of the first one, or after all others.
    pub fn insert<'n>(&mut self, name: impl Into<NameRef<'n>>, value: impl AsRef<[u8]>) {
        let name = name.into();
        let entry = self.write(name, value.as_ref());
        let Some(first) = self.position(name) else {
            return self.enter(entry);
        };
        self.entries[first] = entry;
        self.remove_behind(first, name);
    }

    /// Removes all fields of this name; returns whether there were any.
    pub fn remove<'n>(&mut self, name: impl Into<NameRef<'n>>) -> bool {
        let name = name.into();
        let Some(first) = self.position(name) else {
            return false;
        };
        self.remove_behind(first, name);
        self.entries.remove(first);
        true
    }

    /// Keeps only the fields for which `is_kept` is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Field<'_>) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| {
            is_kept(Field {
                fields: self,
                entry,
            })
        });
        self.entries = entries;
    }

    /// Removes the fields that have one of these traits.
    #[inline]
    pub fn remove_all(&mut self, traits: Traits) {
        if self.may_have(traits) {
            self.retain(|field| !field.traits().has_any(traits));
        }
    }

    /// Marks the fields that `Connection` names (RFC 9110, section 7.6.1), except those in `except`, as
    /// [`Traits::NOMINATED`].
    pub fn mark_nominated(&mut self, except: &[Id]) {
        if !self.contains(name::CONNECTION) {
            return;
        }
        let options = self
            .get_all(name::CONNECTION)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii);
        // A peer may name thousands: each field is sought among them, and not each of them among the fields.
        let named: HashSet<Vec<u8>> = options
            .filter(|option| !option.is_empty() && !option.eq_ignore_ascii_case(b"close"))
            .filter(|option| self.may_name(NameRef::read(option)))
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        if named.is_empty() {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &mut entries {
            let field = Field {
                fields: self,
                entry: &*entry,
            };
            let is_named = named.contains(field.lower_name().as_bytes());
            if is_named && !field.id().is_some_and(|id| except.contains(&id)) {
                entry.flags |= IS_NOMINATED;
                self.traits = self.traits.with(Traits::NOMINATED);
            }
        }
        self.entries = entries;
    }

    /// Replaces each value of a name by the result of `change`; `None` leaves it as it is.
    pub fn change<'n>(
        &mut self,
        name: impl Into<NameRef<'n>>,
        mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    ) {
        let name = name.into();
        if !self.may_name(name) {
            return;
        }
        for index in 0..self.entries.len() {
            let field = Field {
                fields: self,
                entry: &self.entries[index],
            };
            if field.is(name)
                && let Some(value) = change(field.value())
            {
                self.entries[index] = self.write(name, &value);
            }
        }
    }

    /// Joins all fields of a name to one, with `separator` between their values, and `last` after them. Returns
    /// `false` if there is none.
    pub fn join<'n>(
        &mut self,
        name: impl Into<NameRef<'n>>,
        separator: &[u8],
        last: Option<&[u8]>,
    ) -> bool {
        let name = name.into();
        if !self.contains(name) {
            return false;
        }
        let values: Vec<&[u8]> = self.named(name).map(Field::value).collect();
        let joined = [&values[..], last.as_slice()].concat().join(separator);
        self.insert(name, joined);
        true
    }

    /// Joins several `Cookie` fields to one, as servlet containers expect (RFC 6265, section 5.4). Returns `true` if
    /// there were several.
    pub fn join_cookies(&mut self) -> bool {
        let has_several = self.get_all(name::COOKIE).nth(1).is_some();
        has_several && self.join(name::COOKIE, b"; ", None)
    }

    /// Writes the fields as lines of HTTP/1.1, except those with one of the traits `without`.
    pub fn write_lines(&self, without: Traits, out: &mut BytesMut) {
        let skips = self.may_have(without);
        let mut run = 0..0;
        for entry in &self.entries {
            if skips && entry.traits().has_any(without) {
                continue;
            }
            if entry.is_line() {
                // Lines that stand side by side are copied at once.
                if entry.name_at != run.end || entry.name_at as usize == self.received.len() {
                    out.extend_from_slice(self.text(run.start, run.end - run.start));
                    run.start = entry.name_at;
                }
                run.end = entry.line_end();
                continue;
            }
            out.extend_from_slice(self.text(run.start, run.end - run.start));
            run = 0..0;
            let field = Field {
                fields: self,
                entry,
            };
            out.extend_from_slice(field.name());
            out.extend_from_slice(b": ");
            out.extend_from_slice(field.value());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(self.text(run.start, run.end - run.start));
    }

    /// A copy of these fields that takes as little memory as possible, with the pieces of `rest` after them in the
    /// same memory.
    #[must_use]
    pub fn packed<T: AsRef<[u8]>>(&self, rest: &[T]) -> Self {
        let lines: usize = self
            .iter()
            .map(|field| field.name().len() + field.value().len() + 4)
            .sum();
        let following: usize = rest.iter().map(|piece| piece.as_ref().len()).sum();
        let mut packed = Self {
            added: Vec::with_capacity(lines + following),
            entries: Vec::with_capacity(self.entries.len()),
            ..Self::new()
        };
        for field in self.iter() {
            let entry = packed.write_line(field.entry.name, field.name(), field.value());
            packed.enter(entry);
        }
        let mut bytes = std::mem::take(&mut packed.added);
        for piece in rest {
            bytes.extend_from_slice(piece.as_ref());
        }
        packed.received = bytes.into();
        packed
    }

    /// The bytes after the fields, if they were [packed](Self::packed) with such.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        let end = self.entries.last().map_or(0, |last| last.line_end());
        self.received
            .slice((end as usize).min(self.received.len())..)
    }

    /// The bytes of memory that the list takes besides itself, including the rest after the fields.
    #[must_use]
    pub fn weight(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry>();
        self.received.len() + self.added.capacity() + entries
    }

    /// A list with the same memory but its own reference count. Threads that share one count wait for each other to
    /// change it; with this, each thread can have its own.
    #[must_use]
    pub fn counted_anew(&self) -> Self {
        Self {
            received: Bytes::from_owner(self.received.clone()),
            ..self.clone()
        }
    }

    /// Whether `other` is a copy of these fields that shares their memory.
    #[must_use]
    pub fn shares_memory(&self, other: &Self) -> bool {
        !self.received.is_empty() && self.received.as_ptr() == other.received.as_ptr()
    }

    /// A value as bytes, which share the memory of the head if the value is part of it.
    #[must_use]
    pub fn share(&self, value: &[u8]) -> Bytes {
        let received = self.received.as_ptr_range();
        if value.is_empty() || !received.contains(&value.as_ptr()) {
            Bytes::copy_from_slice(value)
        } else {
            self.received.slice_ref(value)
        }
    }

    /// Converts to a map of the `http` crate, with room for one more field.
    #[must_use]
    pub fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.len() + 1);
        for field in self.iter() {
            let value = HeaderValue::from_maybe_shared(self.share(field.value()));
            if let (Some(name), Ok(value)) = (field.header_name(), value) {
                // A map that is full is one that no codec would have made.
                map.try_append(name, value).ok();
            }
        }
        map
    }

    fn position(&self, name: NameRef<'_>) -> Option<usize> {
        if self.may_name(name) {
            self.iter().position(|field| field.is(name))
        } else {
            None
        }
    }

    fn remove_behind(&mut self, first: usize, name: NameRef<'_>) {
        let mut index = 0;
        self.retain(|field| {
            index += 1;
            index <= first + 1 || !field.is(name)
        });
    }

    /// Writes a line of a field that is ours.
    #[inline]
    fn write(&mut self, name: NameRef<'_>, value: &[u8]) -> Entry {
        match name {
            NameRef::Known(id) => self.write_line(Some(id), id.spelling().as_bytes(), value),
            NameRef::Other(text) => self.write_line(None, text, value),
        }
    }

    fn write_line(&mut self, id: Option<Id>, name: &[u8], value: &[u8]) -> Entry {
        // What is no name at all is one that nobody has.
        let name = match name {
            [] => b"_",
            name => &name[..name.len().min(usize::from(u16::MAX))],
        };
        self.added.reserve(name.len() + value.len() + 4);
        let name_at = self.received.len() + self.added.len();
        let at = self.added.len();
        self.added.extend_from_slice(name);
        if id.is_none() && !is_token_text(name) {
            mend(&mut self.added[at..], is_token, b'_');
        }
        self.added.extend_from_slice(b": ");
        let at = self.added.len();
        self.added.extend_from_slice(value);
        if !is_value_text(value) {
            mend(&mut self.added[at..], is_value, b' ');
        }
        self.added.extend_from_slice(b"\r\n");
        Entry {
            name_at: offset(name_at),
            value_at: offset(name_at + name.len() + 2),
            value_len: offset(value.len()),
            name_len: u16::try_from(name.len()).unwrap_or(u16::MAX),
            name: id,
            flags: IS_LINE,
        }
    }
}

impl Clone for Fields {
    fn clone(&self) -> Self {
        let mut clone = Self::new();
        clone.clone_from(self);
        clone
    }

    fn clone_from(&mut self, source: &Self) {
        self.received = source.received.clone();
        self.added.clone_from(&source.added);
        self.entries.clone_from(&source.entries);
        self.names = source.names;
        self.traits = source.traits;
    }
}

impl PartialEq for Fields {
    /// Whether both lists have the same names and values in the same order.
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, other): (Field<'_>, Field<'_>)| {
            one.is(other.name_ref()) && one.value() == other.value()
        };
        self.len() == other.len() && self.iter().zip(other.iter()).all(is_same)
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = self.iter();
        f.debug_map()
            .entries(fields.map(|field| (text(field.name()), text(field.value()))))
            .finish()
    }
}

impl From<&HeaderMap> for Fields {
    /// Converts a map of the `http` crate, with room for the fields that a front adds.
    fn from(map: &HeaderMap) -> Self {
        let mut fields = Self {
            added: Vec::with_capacity(ADDED_BYTES),
            entries: Vec::with_capacity(map.len() + ADDED_FIELDS),
            ..Self::new()
        };
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        for (name, value) in map {
            let lower = name.as_str().as_bytes();
            let id = name::find(lower);
            let name = id.map_or(lower, |id| id.spelling().as_bytes());
            let at = bytes.len();
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(b": ");
            let value_at = bytes.len();
            bytes.extend_from_slice(value.as_bytes());
            let end = bytes.len();
            bytes.extend_from_slice(b"\r\n");
            fields.push(id, at..at + name.len(), value_at..end, true);
        }
        fields.keep(bytes.into());
        fields
    }
}

impl<'n, N: Into<NameRef<'n>>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(fields: T) -> Self {
        let mut list = Self::new();
        list.extend(fields);
        list
    }
}

impl<'n, N: Into<NameRef<'n>>, V: AsRef<[u8]>> Extend<(N, V)> for Fields {
    fn extend<T: IntoIterator<Item = (N, V)>>(&mut self, fields: T) {
        for (name, value) in fields {
            self.append(name, value);
        }
    }
}

fn mend(text: &mut [u8], is_allowed: fn(u8) -> bool, instead: u8) {
    for byte in text.iter_mut().filter(|byte| !is_allowed(**byte)) {
        *byte = instead;
    }
}

/// An offset in a head. One that does not fit is cut, but no limit allows such a head.
#[inline]
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Flag: name, colon, space, value and CR LF follow one another in the bytes of the head.
const IS_LINE: u8 = 1;
/// Flag: `Connection` names the field.
const IS_NOMINATED: u8 = 2;

/// The bytes of room for a head; most are no longer.
const USUAL_BYTES: usize = 1024;

/// The number of fields that a front adds to most heads, such as the client's address.
const ADDED_FIELDS: usize = 8;

/// The number of bytes for the fields that a front adds.
const ADDED_BYTES: usize = 256;

/// The most fields for which [`Fields::clear`] keeps the memory; most heads have fewer.
const KEPT_FIELDS_MAX: usize = 48;

/// The most bytes of added lines for which [`Fields::clear`] keeps the memory.
const KEPT_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
