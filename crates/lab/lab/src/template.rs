//! Templates in an experiment's file: what they may name, and how they say what is wrong.
//!
//! `factor.NAME` is a cell's level, `server.NAME.PORT` the URL of a server that is named before.
//! `lookup(map, key, default)` picks from a map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Object, Value};
use minijinja::{Environment, Error, UndefinedBehavior};

use crate::experiment::Level;

/// URLs of ports by the names of servers and ports.
pub type Addresses = BTreeMap<String, BTreeMap<String, String>>;

/// What a template may name.
#[derive(Debug)]
pub(crate) struct TemplateNames<'a> {
    pub(crate) factor: &'a BTreeMap<String, Level>,
    pub(crate) server: &'a Addresses,
}

/// A port of a server, by their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortName {
    pub(crate) server: String,
    pub(crate) port: String,
}

impl TemplateNames<'_> {
    fn values(&self) -> BTreeMap<&'static str, Value> {
        let server = self.server.iter();
        let server: BTreeMap<String, Value> = server
            .map(|(name, ports)| (name.clone(), Value::from(ports.clone())))
            .collect();
        BTreeMap::from([("factor", self.factors()), ("server", Value::from(server))])
    }

    /// The same, of which each address that is read is kept in `read`.
    fn values_with(&self, read: &Arc<Mutex<BTreeSet<PortName>>>) -> BTreeMap<&'static str, Value> {
        let server = self.server.iter().map(|(name, ports)| {
            let of_server = PortReader {
                server: name.clone(),
                ports: ports.clone(),
                read: Arc::clone(read),
            };
            (name.clone(), Value::from_object(of_server))
        });
        let server: BTreeMap<String, Value> = server.collect();
        BTreeMap::from([("factor", self.factors()), ("server", Value::from(server))])
    }

    fn factors(&self) -> Value {
        let factor = self.factor.iter();
        let factor: BTreeMap<String, Value> = factor
            .map(|(name, level)| (name.clone(), value(level)))
            .collect();
        Value::from(factor)
    }
}

/// The addresses of a server, which keeps in mind which of them a template reads.
#[derive(Debug)]
struct PortReader {
    server: String,
    ports: BTreeMap<String, String>,
    read: Arc<Mutex<BTreeSet<PortName>>>,
}

impl Object for PortReader {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let port = key.as_str()?;
        let urls = self.ports.get(port)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(PortName {
            server: self.server.clone(),
            port: port.to_owned(),
        });
        Some(Value::from(urls.as_str()))
    }
}

fn value(level: &Level) -> Value {
    match level {
        Level::Text(text) => Value::from(text.as_str()),
        Level::Count(count) => Value::from(*count),
        Level::Flag(flag) => Value::from(*flag),
    }
}

/// Renders `text`, or says in words what is wrong with it.
pub(crate) fn render(text: &str, names: &TemplateNames<'_>) -> Result<String, String> {
    render_with(text, names.values())
}

/// The ports whose addresses `text` reads: a branch that is not taken reads nothing.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn ports_read(
    text: &str,
    names: &TemplateNames<'_>,
) -> Result<BTreeSet<PortName>, String> {
    let read = Arc::default();
    render_with(text, names.values_with(&read))?;
    let read = read.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(read.clone())
}

fn render_with(text: &str, values: BTreeMap<&'static str, Value>) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_function("lookup", lookup);
    environment.render_str(text, values).map_err(|error| {
        let what = error
            .detail()
            .map_or_else(|| error.kind().to_string(), str::to_owned);
        format!("{what}, in {text}")
    })
}

/// What `map` has for `key`, else `default`.
fn lookup(map: &Value, key: &Value, default: Value) -> Result<Value, Error> {
    let found = map.get_item(key)?;
    Ok(if found.is_undefined() { default } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let factor = BTreeMap::from([
            ("front".to_owned(), Level::Text("ours".to_owned())),
            ("clients".to_owned(), Level::Count(1200)),
        ]);
        let ports = BTreeMap::from([("http".to_owned(), "http://127.0.0.1:8001".to_owned())]);
        let server = Addresses::from([("app".to_owned(), ports)]);
        let names = TemplateNames {
            factor: &factor,
            server: &server,
        };
        match (render(text, &names), expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected),
            (Err(what), Err(part)) => assert!(what.contains(part), "{what}"),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn names_lookups_and_numbers() {
        check("{{ server.app.http }}/x", Ok("http://127.0.0.1:8001/x"));
        check(
            "{{ lookup({'nginx': 'nginx'}, factor.front, 'front') }}",
            Ok("front"),
        );
        check("{{ [factor.clients, 1000]|min }}", Ok("1000"));
        check("{{ factor.front[:2] }}", Ok("ou"));
    }

    #[test]
    fn an_address_is_read_where_a_branch_is_taken() {
        let factor = BTreeMap::from([("protocol".to_owned(), Level::Text("ajp".to_owned()))]);
        let url = |port: &str| (port.to_owned(), format!("{port}://127.0.0.1:1"));
        let ports = BTreeMap::from(["http", "ajp"].map(url));
        let server = Addresses::from([("app".to_owned(), ports)]);
        let names = TemplateNames {
            factor: &factor,
            server: &server,
        };
        for (text, read) in [
            (
                "{{ server.app.ajp if factor.protocol == 'ajp' else server.app.http }}",
                "ajp",
            ),
            ("{{ server.app[factor.protocol] }}", "ajp"),
            ("{{ (server.app.http ~ ' ') * 2 }}", "http"),
        ] {
            let expected = PortName {
                server: "app".to_owned(),
                port: read.to_owned(),
            };
            let found = ports_read(text, &names).unwrap();
            assert_eq!(found, BTreeSet::from([expected]), "{text}");
        }
        assert_eq!(ports_read("127.0.0.1:1", &names), Ok(BTreeSet::new()));
        assert!(ports_read("{{ server.app.memcached }}", &names).is_err());
    }

    #[test]
    fn unknown_names_and_bad_syntax() {
        check("{{ factor.mpm }}", Err("undefined"));
        check("{{ server.tomcat.ajp }}", Err("undefined"));
        check("{{ factor.front", Err("in {{ factor.front"));
    }
}
