//! The kinds of values that a key can have: a duration, a size, a count, one of several words, a
//! parsed text.
//!
//! Each kind reads a value, says what is wrong with one that it refuses, and describes its range for
//! the reference page, so the page and the parser agree. Messages are predicates ("has no unit"),
//! because the name of the key or flag is put before them.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use catamaran_units::{parse_duration, parse_size, show_duration, show_size};
use toml::Spanned;
use toml::de::DeValue;

/// What is wrong with a value, and where in the file.
#[derive(Debug)]
pub struct Complaint {
    /// The fault, as a predicate such as "has no unit".
    pub message: String,
    /// The place of what is wrong.
    pub span: Range<usize>,
}

/// A kind of value, and how it is read.
pub trait Values: Sync {
    /// The type of a value that was read.
    type Read;

    /// Reads a value, or returns everything that is wrong with it.
    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>>;

    /// The kind and its range in words, for the reference page.
    fn describe(&self) -> String;
}

/// A duration such as `"200ms"` within this range.
pub struct Durations(pub RangeInclusive<Duration>);

impl Values for Durations {
    type Read = Duration;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        let duration = match value.get_ref() {
            DeValue::String(text) => {
                parse_duration(text).map_err(|error| complaint(error, value))?
            }
            DeValue::Integer(number) => {
                let number = number.as_str();
                let message = format!("has no unit; write \"{number}s\" or \"{number}ms\"");
                return Err(complaint(message, value));
            }
            _ => return Err(wrong_type("a duration such as \"10s\"", value)),
        };
        if self.0.contains(&duration) {
            return Ok(duration);
        }
        let (min, max) = (show_duration(*self.0.start()), show_duration(*self.0.end()));
        Err(complaint(
            format!("must be from \"{min}\" to \"{max}\""),
            value,
        ))
    }

    fn describe(&self) -> String {
        format!(
            "duration, {} to {}",
            show_duration(*self.0.start()),
            show_duration(*self.0.end())
        )
    }
}

/// A number of bytes within this range, such as `"64KiB"` or `65536`.
pub struct Sizes<T>(pub RangeInclusive<T>);

impl<T: Copy + PartialOrd + TryFrom<u64> + TryInto<u64> + Sync> Values for Sizes<T> {
    type Read = T;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<T, Vec<Complaint>> {
        let bytes = match value.get_ref() {
            DeValue::String(text) => parse_size(text).map_err(|error| complaint(error, value))?,
            DeValue::Integer(_) => match integer(value.get_ref()) {
                Some(bytes) => bytes,
                None => return Err(complaint(self.range(), value)),
            },
            _ => return Err(wrong_type("a size such as \"64KiB\"", value)),
        };
        within(bytes, &self.0).ok_or_else(|| complaint(self.range(), value))
    }

    fn describe(&self) -> String {
        format!("size, {} to {}", size(*self.0.start()), size(*self.0.end()))
    }
}

impl<T: Copy + TryInto<u64>> Sizes<T> {
    fn range(&self) -> String {
        format!(
            "must be from {} to {}",
            size(*self.0.start()),
            size(*self.0.end())
        )
    }
}

/// A percentage, from `"0%"` to `"100%"`, read as a number from 0 to 100.
pub struct Percents;

impl Values for Percents {
    type Read = u8;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<u8, Vec<Complaint>> {
        const WHAT: &str = "a whole percentage such as \"50%\"";
        let Some(text) = value.get_ref().as_str() else {
            return Err(wrong_type(WHAT, value));
        };
        let digits = text.strip_suffix('%').unwrap_or_default();
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(percent) if is_number && percent <= 100 => Ok(percent),
            _ => Err(complaint(
                format!("must be {WHAT}, from \"0%\" to \"100%\""),
                value,
            )),
        }
    }

    fn describe(&self) -> String {
        "percentage, 0% to 100%".to_owned()
    }
}

/// A number from 0 to 1.
pub struct Fractions;

impl Values for Fractions {
    type Read = f64;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<f64, Vec<Complaint>> {
        const WHAT: &str = "a number from 0 to 1, such as 0.01";
        let number = match (integer(value.get_ref()), value.get_ref().as_float()) {
            (Some(0), _) => Some(0.0),
            (Some(1), _) => Some(1.0),
            (Some(_), _) => None,
            (None, Some(float)) => float.as_str().parse().ok(),
            (None, None) => return Err(wrong_type(WHAT, value)),
        };
        match number {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(number),
            _ => Err(complaint(format!("must be {WHAT}"), value)),
        }
    }

    fn describe(&self) -> String {
        "number, 0 to 1".to_owned()
    }
}

/// A whole number within this range.
pub struct Counts<T>(pub RangeInclusive<T>);

impl<T: Copy + PartialOrd + TryFrom<u64> + Display + Sync> Values for Counts<T> {
    type Read = T;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<T, Vec<Complaint>> {
        if !value.get_ref().is_integer() {
            return Err(wrong_type("a whole number without quotes", value));
        }
        let number = integer(value.get_ref()).and_then(|n| within(n, &self.0));
        let (min, max) = (self.0.start(), self.0.end());
        number.ok_or_else(|| complaint(format!("must be from {min} to {max}"), value))
    }

    fn describe(&self) -> String {
        format!("number, {} to {}", self.0.start(), self.0.end())
    }
}

/// `true` or `false`.
pub struct Switch;

impl Values for Switch {
    type Read = bool;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<bool, Vec<Complaint>> {
        let wrong = || wrong_type("true or false, without quotes", value);
        value.get_ref().as_bool().ok_or_else(wrong)
    }

    fn describe(&self) -> String {
        "true or false".to_owned()
    }
}

/// One of several words, each of which stands for a value.
pub struct Choices<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Clone + Sync> Values for Choices<T> {
    type Read = T;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<T, Vec<Complaint>> {
        let word = value.get_ref().as_str();
        let chosen = self.0.iter().find(|(name, _)| Some(*name) == word);
        let wrong = || complaint(format!("must be {}", self.describe()), value);
        chosen.map(|(_, choice)| choice.clone()).ok_or_else(wrong)
    }

    fn describe(&self) -> String {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        words.join(" or ")
    }
}

/// A text with a syntax of its own, read by a function.
pub struct Syntax<T, E> {
    /// What the text must be, in words, such as "an address such as ...".
    pub what: &'static str,
    /// Reads the text. The error becomes the message.
    pub parse: fn(&str) -> Result<T, E>,
}

impl<T, E: Display> Values for Syntax<T, E> {
    type Read = T;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<T, Vec<Complaint>> {
        let wrong = || wrong_type(self.what, value);
        let text = value.get_ref().as_str().ok_or_else(wrong)?;
        (self.parse)(text).map_err(|error| complaint(error, value))
    }

    fn describe(&self) -> String {
        self.what.to_owned()
    }
}

/// A value of the kind `V`, or `"off"`, which reads as `None`.
pub struct OrOff<V>(pub V);

impl<V: Values> Values for OrOff<V> {
    type Read = Option<V::Read>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        if value.get_ref().as_str() == Some("off") {
            return Ok(None);
        }
        self.0.read(value).map(Some)
    }

    fn describe(&self) -> String {
        format!("{}, or \"off\"", self.0.describe())
    }
}

/// A value of the kind `V`, or `true` for the usual value, or `false`, which reads as `None`.
pub struct OrSwitch<V: Values> {
    /// The kind of value that is allowed beside `true` and `false`.
    pub values: V,
    /// The value that `true` stands for.
    pub on: V::Read,
}

impl<V: Values<Read: Copy + Sync>> Values for OrSwitch<V> {
    type Read = Option<V::Read>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        match value.get_ref().as_bool() {
            Some(on) => Ok(on.then_some(self.on)),
            None => self.values.read(value).map(Some),
        }
    }

    fn describe(&self) -> String {
        format!("true or false, or {}", self.values.describe())
    }
}

/// One value of the kind `V`, or a list of such values.
pub struct OneOrMore<V>(pub V);

impl<V: Values> Values for OneOrMore<V> {
    type Read = Vec<V::Read>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        let Some(items) = value.get_ref().as_array() else {
            return self.0.read(value).map(|single| vec![single]);
        };
        let (mut results, mut complaints) = (Vec::new(), Vec::new());
        for item in items.iter() {
            match self.0.read(item) {
                Ok(result) => results.push(result),
                Err(further) => complaints.extend(further),
            }
        }
        if complaints.is_empty() {
            Ok(results)
        } else {
            Err(complaints)
        }
    }

    fn describe(&self) -> String {
        format!("{}; or a list", self.0.describe())
    }
}

/// A value of the kind `V`, read as `Some`, for a field that may be left empty.
pub struct Optional<V>(pub V);

impl<V: Values> Values for Optional<V> {
    type Read = Option<V::Read>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        self.0.read(value).map(Some)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

/// A value of the kind `V`, converted by a function after it was read.
pub struct Map<V: Values, T>(pub V, pub fn(V::Read) -> T);

impl<V: Values, T> Values for Map<V, T> {
    type Read = T;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<T, Vec<Complaint>> {
        self.0.read(value).map(self.1)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

/// A table of names with values of one kind, such as `{ a = 1, b = 2 }`.
pub struct NamedValues<V> {
    /// What the table contains, in words, such as "backends with ...".
    pub what: &'static str,
    /// The kind of each value.
    pub of: V,
}

impl<V: Values> Values for NamedValues<V> {
    type Read = Vec<(String, V::Read)>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        let Some(entries) = value.get_ref().as_table() else {
            return Err(wrong_type(self.what, value));
        };
        let (mut results, mut complaints) = (Vec::new(), Vec::new());
        for (name, entry) in entries {
            let name = name.get_ref();
            match self.of.read(entry) {
                Ok(result) => results.push((name.to_string(), result)),
                Err(further) => {
                    for mut complaint in further {
                        complaint.message = format!("for `{name}` {}", complaint.message);
                        complaints.push(complaint);
                    }
                }
            }
        }
        if complaints.is_empty() {
            Ok(results)
        } else {
            Err(complaints)
        }
    }

    fn describe(&self) -> String {
        format!("table of {}; each {}", self.what, self.of.describe())
    }
}

/// A complaint about a whole value, as the error of [`Values::read`].
pub fn complaint(message: impl Display, value: &Spanned<DeValue<'_>>) -> Vec<Complaint> {
    vec![Complaint {
        message: message.to_string(),
        span: value.span(),
    }]
}

fn wrong_type(what: &str, value: &Spanned<DeValue<'_>>) -> Vec<Complaint> {
    let kind = match value.get_ref().type_str() {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a number",
        "float" => "a number with a fraction or exponent",
        "string" => "a text",
        "table" => "a table",
        _ => "a date",
    };
    complaint(format!("must be {what}, not {kind}"), value)
}

/// The value of a TOML integer in any notation (decimal, hexadecimal and so on); `None` if it is
/// negative or no integer.
fn integer(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn within<T: PartialOrd + TryFrom<u64>>(number: u64, range: &RangeInclusive<T>) -> Option<T> {
    T::try_from(number).ok().filter(|it| range.contains(it))
}

fn size<T: TryInto<u64>>(bytes: T) -> String {
    show_size(bytes.try_into().unwrap_or(u64::MAX))
}
