//! Renders the templates of an experiment's file.
//!
//! In them, `factor.NAME` is a level of the cell, and `server.NAME.PORT` is the URL of a server that comes before in
//! the file. `lookup(map, key, default)` returns a value of a map.

use std::collections::BTreeMap;

use minijinja::value::Value;
use minijinja::{Environment, Error, UndefinedBehavior};

use super::Level;

/// The URLs of servers: by server name, then by port name.
pub type Addresses = BTreeMap<String, BTreeMap<String, String>>;

/// The names that a template may use.
#[derive(Debug)]
pub(crate) struct TemplateNames<'a> {
    pub(crate) factor: &'a BTreeMap<String, Level>,
    pub(crate) server: &'a Addresses,
}

impl TemplateNames<'_> {
    fn values(&self) -> BTreeMap<&'static str, Value> {
        let mut levels: BTreeMap<String, Value> = BTreeMap::new();
        for (name, level) in self.factor {
            levels.insert(name.clone(), value(level));
        }
        let mut urls: BTreeMap<String, Value> = BTreeMap::new();
        for (name, ports) in self.server {
            urls.insert(name.clone(), Value::from(ports.clone()));
        }
        BTreeMap::from([
            ("factor", Value::from(levels)),
            ("server", Value::from(urls)),
        ])
    }
}

fn value(level: &Level) -> Value {
    match level {
        Level::Text(text) => Value::from(text.as_str()),
        Level::Count(count) => Value::from(*count),
        Level::Flag(flag) => Value::from(*flag),
    }
}

/// Renders `text`; the error says in words what is wrong with it.
pub(crate) fn render(text: &str, names: &TemplateNames<'_>) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_function("lookup", lookup);
    environment
        .render_str(text, names.values())
        .map_err(|error| {
            let what = error
                .detail()
                .map_or_else(|| error.kind().to_string(), str::to_owned);
            format!("{what}, in {text}")
        })
}

/// The value of `key` in `map`, else `default`.
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
    fn unknown_names_and_bad_syntax() {
        check("{{ factor.mpm }}", Err("undefined"));
        check("{{ server.tomcat.ajp }}", Err("undefined"));
        check("{{ factor.front", Err("in {{ factor.front"));
    }
}
