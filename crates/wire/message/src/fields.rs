//! The header fields of a message: one list, in the order received.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::field::{is_token, is_token_text, is_value, is_value_text, list};
use crate::name::{self, Id, NameRef, Traits};

/// The fields of a head in the order received, repeated ones included.
///
/// Names and values are ranges of the head's own bytes, so that a field takes no memory of its own; fields that are
/// added or changed are written after them. A name in the table ([`name`]) is stored as its number. Values have no
/// control characters but tabs: in an added value each becomes a space (RFC 9110, section 5.5), and in an added name
/// a byte that is not allowed becomes `_`.
#[derive(Clone, Default)]
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
    /// The number of the name in the table; `None` for other names.
    name: Option<Id>,
    /// Whether name, colon, space, value and CR LF follow one another in the bytes.
    is_line: bool,
    /// Whether `Connection` names the field.
    is_nominated: bool,
}

impl Entry {
    #[inline]
    fn traits(self) -> Traits {
        let own = self.name.map_or(Traits::UNKNOWN, Id::traits);
        if self.is_nominated {
            own.with(Traits::NOMINATED)
        } else {
            own
        }
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
        let entry = self.entry;
        match entry.name {
            // The name is written nowhere.
            Some(id) if entry.name_len == 0 => id.spelling().as_bytes(),
            _ => self.fields.text(entry.name_at, entry.name_len.into()),
        }
    }

    /// The field's value.
    #[inline]
    #[must_use]
    pub fn value(self) -> &'f [u8] {
        self.fields.text(self.entry.value_at, self.entry.value_len)
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
            (NameRef::Known(sought), own) => own == Some(sought),
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

    /// Removes all fields. Keeps memory for the next head, but not much.
    pub fn clear(&mut self) {
        self.received = Bytes::new();
        self.names = 0;
        self.traits = Traits::NONE;
        self.entries.clear();
        self.entries.shrink_to(KEPT_FIELDS_MAX);
        self.added.clear();
        self.added.shrink_to(KEPT_BYTES_MAX);
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

    /// Makes room for fields that are added, whose lines have so many bytes together.
    pub fn reserve_lines(&mut self, count: usize, bytes: usize) {
        self.entries.reserve(count);
        self.added.reserve(bytes);
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
            is_line,
            is_nominated: false,
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

    /// The bytes at an offset of the received head, or, beyond its end, of the added lines.
    #[inline]
    fn text(&self, at: u32, len: u32) -> &[u8] {
        let (at, len) = (at as usize, len as usize);
        let (bytes, start) = match at.checked_sub(self.received.len()) {
            None => (&self.received[..], at),
            Some(in_added) => (&self.added[..], in_added),
        };
        bytes.get(start..start + len).unwrap_or_default()
    }

    /// The fields, in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> + ExactSizeIterator {
        self.entries.iter().map(move |entry| self.field(entry))
    }

    /// The fields that have none of these traits, in order.
    #[inline]
    pub fn without(&self, traits: Traits) -> impl Iterator<Item = Field<'_>> {
        let skips = self.may_have(traits);
        self.iter()
            .filter(move |field| !(skips && field.traits().has_any(traits)))
    }

    #[inline]
    fn field<'f>(&'f self, entry: &'f Entry) -> Field<'f> {
        let fields = self;
        Field { fields, entry }
    }

    /// Whether any field may have one of these traits; also `true` if only a field that was removed had it.
    #[inline]
    #[must_use]
    pub fn may_have(&self, traits: Traits) -> bool {
        self.traits.has_any(traits)
    }

    /// Whether any field has one of these traits.
    #[inline]
    #[must_use]
    pub fn has(&self, traits: Traits) -> bool {
        self.may_have(traits) && self.iter().any(|field| field.traits().has_any(traits))
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
        let fields = entries.iter().map(move |entry| self.field(entry));
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

    /// The elements of the comma-separated lists in all fields of this name, trimmed; empty ones are included.
    #[inline]
    pub fn elements<'n, N: Into<NameRef<'n>>>(
        &self,
        name: N,
    ) -> impl DoubleEndedIterator<Item = &[u8]> + use<'_, 'n, N> {
        self.get_all(name).flat_map(list)
    }

    /// The value of the field of this name; `None` if it is missing or repeated.
    #[inline]
    #[must_use]
    pub fn only<'n>(&self, name: impl Into<NameRef<'n>>) -> Option<&[u8]> {
        match name.into() {
            NameRef::Known(id) if self.names & id.bit() == 0 => None,
            // Comparing numbers alone: this is asked of every request that a route tests.
            NameRef::Known(id) => {
                let entry = sole(self.entries.iter().filter(|entry| entry.name == Some(id)))?;
                Some(self.field(entry).value())
            }
            other @ NameRef::Other(_) => self.only_other(other),
        }
    }

    /// Does the work of [`Self::only`] for a name that is not in the table. Not inlined, because most names are.
    #[inline(never)]
    fn only_other(&self, name: NameRef<'_>) -> Option<&[u8]> {
        sole(self.get_all(name))
    }

    /// Whether a field with one value stands several times ([`Traits::SINGLETON`]).
    #[inline]
    #[must_use]
    pub fn repeats_singleton(&self) -> bool {
        self.may_have(Traits::SINGLETON) && {
            let is_one = |field: &Field<'_>| field.traits().has_any(Traits::SINGLETON);
            let mut all = self.iter().filter(is_one);
            all.any(|field| self.only(field.name_ref()).is_none())
        }
    }

    /// Whether the client waits for 100 (Continue), by `Expect` (RFC 9110, section 10.1.1); `None`: it expects
    /// something else.
    #[must_use]
    pub fn expects_continue(&self) -> Option<bool> {
        if !self.contains(name::EXPECT) {
            return Some(false);
        }
        let mut expects_any = false;
        for expectation in self.elements(name::EXPECT) {
            if expectation.is_empty() {
                continue;
            }
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return None;
            }
            expects_any = true;
        }
        Some(expects_any)
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
        if !self.may_name(name) {
            return self.enter(entry);
        }
        let first = self.iter().position(|field| field.is(name));
        match first {
            Some(first) => self.entries[first] = entry,
            None => self.enter(entry),
        }
        self.keep_first(name);
    }

    /// Removes all fields of this name but the first.
    pub fn keep_first<'n>(&mut self, name: impl Into<NameRef<'n>>) {
        let name = name.into();
        if self.named(name).nth(1).is_some() {
            let mut has_first = false;
            self.retain(|field| {
                let is_repeated = has_first && field.is(name);
                has_first |= field.is(name);
                !is_repeated
            });
        }
    }

    /// Removes all fields of this name; returns whether there were any.
    pub fn remove<'n>(&mut self, name: impl Into<NameRef<'n>>) -> bool {
        let name = name.into();
        let len_before = self.len();
        if self.may_name(name) {
            self.retain(|field| !field.is(name));
        }
        self.len() < len_before
    }

    /// Keeps only the fields for which `is_kept` is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Field<'_>) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| is_kept(self.field(entry)));
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
        if !self.may_name(name::CONNECTION.into()) {
            return;
        }
        // A peer may name thousands of fields: the names are hashed once, instead of being compared with each field.
        let options: HashSet<Vec<u8>> = self
            .elements(name::CONNECTION)
            .filter(|option| !option.is_empty() && !option.eq_ignore_ascii_case(b"close"))
            .filter(|option| self.may_name(NameRef::read(option)))
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        if options.is_empty() {
            return;
        }
        for index in 0..self.entries.len() {
            let field = self.field(&self.entries[index]);
            let is_named = options.contains(field.lower_name().as_bytes());
            let is_excepted = field.id().is_some_and(|id| except.contains(&id));
            if is_named && !is_excepted {
                self.entries[index].is_nominated = true;
                self.traits = self.traits.with(Traits::NOMINATED);
            }
        }
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
            let field = self.field(&self.entries[index]);
            if field.is(name)
                && let Some(value) = change(field.value())
            {
                self.entries[index] = self.write(name, &value);
            }
        }
    }

    /// Adds an element to the comma-separated list of this name. Its lines become one.
    pub fn add_element<'n>(&mut self, name: impl Into<NameRef<'n>>, element: impl AsRef<[u8]>) {
        let name = name.into();
        if !self.contains(name) {
            return self.append(name, element);
        }
        let lines = self.get_all(name).chain([element.as_ref()]);
        let joined = lines.collect::<Vec<_>>().join(&b", "[..]);
        self.insert(name, joined);
    }

    /// Joins several `Cookie` fields to one, as servlet containers expect (RFC 6265, section 5.4). Returns `true` if
    /// there were several.
    pub fn join_cookies(&mut self) -> bool {
        self.join_lines(name::COOKIE, b"; ")
    }

    /// Joins several fields of this name to one. Returns `true` if there were several.
    pub fn join_lines<'n>(&mut self, name: impl Into<NameRef<'n>>, separator: &[u8]) -> bool {
        let name = name.into();
        if self.get_all(name).nth(1).is_none() {
            return false;
        }
        let joined = self.get_all(name).collect::<Vec<_>>().join(separator);
        self.insert(name, joined);
        true
    }

    /// Writes the fields as lines of HTTP/1.1, except those with one of the traits `without`.
    pub fn write_lines(&self, without: Traits, out: &mut BytesMut) {
        let write_run = |run: &Range<u32>, out: &mut BytesMut| {
            if !run.is_empty() {
                out.extend_from_slice(self.text(run.start, run.end - run.start));
            }
        };
        let mut run = 0..0;
        for field in self.without(without) {
            let entry = field.entry;
            // Lines that stand side by side are copied at once. The last received line and the first added one do not.
            let is_beside = entry.name_at == run.end && run.end as usize != self.received.len();
            if !(entry.is_line && is_beside) {
                write_run(&run, out);
                run = entry.name_at..entry.name_at;
            }
            if entry.is_line {
                run.end = entry.line_end();
                continue;
            }
            out.extend_from_slice(field.name());
            out.extend_from_slice(b": ");
            out.extend_from_slice(field.value());
            out.extend_from_slice(b"\r\n");
        }
        write_run(&run, out);
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

    /// A copy to which so many fields, with lines of so many bytes together, can be added without moving it.
    #[must_use]
    pub fn with_room(&self, fields: usize, bytes: usize) -> Self {
        let mut entries = Vec::with_capacity(self.entries.len() + fields);
        entries.extend_from_slice(&self.entries);
        let mut added = Vec::with_capacity(self.added.len() + bytes);
        added.extend_from_slice(&self.added);
        Self {
            received: self.received.clone(),
            added,
            entries,
            ..*self
        }
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

    /// Writes a line with an added field.
    #[inline]
    fn write(&mut self, name: NameRef<'_>, value: &[u8]) -> Entry {
        match name {
            NameRef::Known(id) => self.write_line(Some(id), id.spelling().as_bytes(), value),
            NameRef::Other(text) => self.write_line(None, text, value),
        }
    }

    /// Appends a line to the added ones. Bytes that are not allowed are replaced, and a name is cut at 65,535 bytes.
    fn write_line(&mut self, id: Option<Id>, name: &[u8], value: &[u8]) -> Entry {
        // A field must have a name. One for an empty name is made up, which no other field has.
        let name = match name {
            [] => b"_",
            name => &name[..name.len().min(usize::from(u16::MAX))],
        };
        self.added.reserve(name.len() + value.len() + 4);
        let name_start = self.added.len();
        let name_at = self.received.len() + name_start;
        self.added.extend_from_slice(name);
        if id.is_none() && !is_token_text(name) {
            mend(&mut self.added[name_start..], is_token, b'_');
        }
        self.added.extend_from_slice(b": ");
        let value_start = self.added.len();
        self.added.extend_from_slice(value);
        if !is_value_text(value) {
            mend(&mut self.added[value_start..], is_value, b' ');
        }
        self.added.extend_from_slice(b"\r\n");
        Entry {
            name_at: offset(name_at),
            value_at: offset(name_at + name.len() + 2),
            value_len: offset(value.len()),
            name_len: u16::try_from(name.len()).unwrap_or(u16::MAX),
            name: id,
            is_line: true,
            is_nominated: false,
        }
    }
}

impl PartialEq for Fields {
    /// Whether both lists have the same names and values in the same order.
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.iter().zip(other.iter());
        self.len() == other.len()
            && pairs.all(|(own, other)| own.is(other.name_ref()) && own.value() == other.value())
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        let fields = self.iter();
        let entries = fields.map(|field| (text(field.name()), text(field.value())));
        f.debug_map().entries(entries).finish()
    }
}

impl<'n, N: Into<NameRef<'n>>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(fields: T) -> Self {
        let mut list = Self::new();
        for (name, value) in fields {
            list.append(name, value);
        }
        list
    }
}

/// The only item; `None` if there is none, or another one.
#[inline]
fn sole<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Replaces the bytes that are not allowed.
fn mend(text: &mut [u8], is_allowed: fn(u8) -> bool, instead: u8) {
    for byte in text.iter_mut().filter(|byte| !is_allowed(**byte)) {
        *byte = instead;
    }
}

/// An offset in a head as 32 bits. The limits on heads keep offsets far below that.
#[inline]
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The most fields whose memory [`Fields::clear`] keeps; most heads have fewer.
const KEPT_FIELDS_MAX: usize = 48;

/// The most bytes of added lines whose memory [`Fields::clear`] keeps.
const KEPT_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
