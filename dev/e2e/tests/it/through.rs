//! Running a test through the front over every connector of Tomcat.

use catamaran_e2e::{Connector, Front, Tomcat};

/// Runs `test` with a front for each of Tomcat's connectors.
pub(crate) fn every_connector(test: impl Fn(&Front, Connector)) {
    connectors(&Connector::ALL, test);
}

/// Runs `test` with a front for each of `connectors`.
pub(crate) fn connectors(connectors: &[Connector], test: impl Fn(&Front, Connector)) {
    for connector in connectors {
        // Shown only when the test fails.
        println!("through {connector:?}");
        test(&front(*connector), *connector);
    }
}

/// A front to one connector of the shared Tomcat.
pub(crate) fn front(connector: Connector) -> Front {
    let tomcat = Tomcat::shared().unwrap();
    Front::to_app(&tomcat.backend_table("app", connector)).unwrap()
}

/// The value of `name=` in a text of `name=value` lines.
#[track_caller]
pub(crate) fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Whether a text of `name=value` lines has a line for `name`.
pub(crate) fn has(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.split('=').next() == Some(name))
}
