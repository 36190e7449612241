//! Flags for operations on memcached.

use std::num::{NonZeroU32, NonZeroU64};

use catamaran_load::Dialect;
use catamaran_load::plan::Operation;

use super::ValueKind::Needed;
use super::{Flag, switch_on};
use crate::number;

/// The settings of operations on memcached: mix, keys and values.
#[derive(Debug, Default)]
pub(crate) struct MemcachedSettings {
    /// The operations with their weights (`get=9,set=1`); `None`: the default mix.
    pub(crate) mix: Option<Vec<(Operation, NonZeroU32)>>,
    pub(crate) keys: Option<NonZeroU64>,
    pub(crate) zipf: Option<f64>,
    pub(crate) value_bytes: Option<usize>,
    pub(crate) prefill: bool,
    pub(crate) dialect: Option<Dialect>,
}

pub(crate) static FLAGS: &[Flag] = &[
    Flag {
        long: "mix",
        value: Needed("LIST"),
        help: "Operations and their weights, of get and set [default: get=9,set=1]",
        apply: |settings, given| {
            let mix = number::mix(given.text());
            let expected = "operations and their weights such as get=9,set=1";
            settings.memcached.mix = Some(mix.ok_or_else(|| given.bad(expected))?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "keys",
        value: Needed("N"),
        help: "Keys that operations are about, by chance [default: 10000]",
        apply: |settings, given| {
            let keys = NonZeroU64::new(given.number("a number of keys")?);
            settings.memcached.keys = Some(keys.ok_or_else(|| given.bad("one key or more"))?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "zipf",
        value: Needed("EXPONENT"),
        help: "The key of rank k so often as 1/k^EXPONENT, such as 0.99 [default: each alike]",
        apply: |settings, given| {
            settings.memcached.zipf = Some(given.amount("an exponent above 0")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "value",
        value: Needed("SIZE"),
        help: "Size of a value, such as 100, 10k or 64KiB; it carries its key and a checksum, and a wrong one is a \
               failure [default: 100]",
        apply: |settings, given| {
            let Some(bytes) = number::size(given.text()) else {
                return Err(given.bad("a size such as 100 or 64KiB"));
            };
            settings.memcached.value_bytes = Some(bytes);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "prefill",
        help: "Store a value under every key before the run; no figure includes these sets",
        apply: |settings, _| switch_on(&mut settings.memcached.prefill),
        ..Flag::OURS
    },
    Flag {
        long: "protocol",
        value: Needed("meta|text"),
        help: "The commands that are spoken: those of memcached 1.6, or those of all versions [default: meta]",
        apply: |settings, given| {
            let dialect = Dialect::named(given.text());
            settings.memcached.dialect = Some(dialect.ok_or_else(|| given.bad("meta or text"))?);
            Ok(())
        },
        ..Flag::OURS
    },
];
