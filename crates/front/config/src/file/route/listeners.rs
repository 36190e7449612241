//! `listen` of `[[route]]`: the listeners that a route is for.
//!
//! Routes may come before the listeners in the file, so the names are looked up when the whole file has been read.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::{ListenAddress, ListenerConfig};

use super::Route;
use crate::file::PlacedValue;
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};
use crate::table::Table;
use crate::value::address::{ListenError, parse_listen_address};
use crate::value::text::{TextError, parse_name};

/// A listener as a route names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListenerRef {
    Address(ListenAddress),
    Name(String),
}

/// The listeners that a route names in `listen`, and the place of that key.
#[derive(Debug)]
pub(crate) struct ListenerRefs {
    refs: Vec<ListenerRef>,
    pub(crate) place: Range<usize>,
}

impl ListenerRefs {
    /// The listeners that `listen` names; an empty list is a fault.
    pub(super) fn new(mut refs: Vec<ListenerRef>, table: &mut Table<'_>, base: &Path) -> Self {
        let place = table.place_of("listen");
        for named in &mut refs {
            if let ListenerRef::Address(ListenAddress::Unix(path)) = named {
                *path = base.join(&*path);
            }
        }
        if refs.is_empty() {
            let message = "`listen` is an empty list, so that no listener would have this route";
            let hint = "name a listener, or leave `listen` out for all of them";
            table.push(Finding::fault(message, place.clone()).hint(hint));
        }
        Self { refs, place }
    }
}

/// Why a text names no listener.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListenerRefError {
    /// The text is neither a name nor an address.
    #[error(transparent)]
    Address(#[from] ListenError),
    /// The text is not a valid name.
    #[error(transparent)]
    Name(#[from] TextError),
}

/// Finds the listeners that routes name. With `is_complete`, each listener of the file is among `listeners`,
/// so that one which is missing is a fault.
pub(crate) fn resolve(
    routes: &mut [Route],
    listeners: &[PlacedValue<ListenerConfig>],
    is_complete: bool,
    report: &mut Report,
) {
    let mut indices_by_ref: HashMap<ListenerRef, Vec<usize>> = HashMap::new();
    for (index, listener) in listeners.iter().enumerate() {
        let name = listener.value.name.clone().map(ListenerRef::Name);
        let address = ListenerRef::Address(listener.value.address.clone());
        for reference in name.into_iter().chain([address]) {
            indices_by_ref.entry(reference).or_default().push(index);
        }
    }
    for route in routes {
        let Some(listen) = &route.listen else {
            continue;
        };
        let mut indices: Vec<usize> = Vec::new();
        for reference in &listen.refs {
            match indices_by_ref.get(reference) {
                Some(same_name) => indices.extend(same_name),
                None => {
                    route.matching = false;
                    if is_complete {
                        report.push(unknown(reference, &listen.place, listeners));
                    }
                }
            }
        }
        indices.sort_unstable();
        indices.dedup();
        for value in &mut route.values {
            value.listen.clone_from(&indices);
        }
    }
}

/// The fault of a name or address in `listen` that no listener has.
fn unknown(
    reference: &ListenerRef,
    place: &Range<usize>,
    listeners: &[PlacedValue<ListenerConfig>],
) -> Finding {
    let (verb, text) = match reference {
        ListenerRef::Address(address) => ("listens on", address.to_string()),
        ListenerRef::Name(name) => ("has the name", name.clone()),
    };
    let names = listeners
        .iter()
        .filter_map(|listener| listener.value.name.clone());
    let addresses = listeners
        .iter()
        .map(|listener| listener.value.address.to_string());
    let references: Vec<String> = names.chain(addresses).collect();
    let similar = nearest(&text, references.iter().map(String::as_str));
    let hint = meant_or(similar, || {
        "write the `name` or the `address` of a [[listen]], as it stands there".to_owned()
    });
    let message = format!("no [[listen]] {verb} `{text}`");
    Finding::fault(message, place.clone()).hint(hint)
}

/// Parses the address or the name of a listener.
pub(super) fn parse_listener(text: &str) -> Result<ListenerRef, ListenerRefError> {
    // A name has neither a colon nor a slash.
    if text.contains([':', '/']) {
        Ok(ListenerRef::Address(parse_listen_address(text)?))
    } else {
        Ok(ListenerRef::Name(parse_name(text)?))
    }
}
