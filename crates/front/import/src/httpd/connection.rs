//! What `Require` asks of a client's connection: TLS, and a certificate that was verified.

use crate::directive::Directive;
use crate::httpd::files::Site;
use crate::plan::{Access, Rule};
use crate::toml_text::quoted;

/// What the connections of a server's clients may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connections {
    /// Whether certificates of clients are verified, at least for some paths.
    verifies_clients: bool,
}

impl Connections {
    pub(super) fn of(site: Site<'_>) -> Self {
        Self {
            verifies_clients: site.all().any(verifies_clients),
        }
    }

    /// Takes the tests of the client's connection out of the access of a rule: its route asks for the certificate. Returns
    /// whether clients must have come over TLS.
    pub(super) fn take_tests(self, rule: &mut Rule) -> bool {
        let Access::Clients(tests) = &rule.settings.access else {
            return false;
        };
        // Settings that rules share are copied only if they change.
        if !tests.tls && !tests.certificate {
            return false;
        }
        let mut others = tests.clone();
        let tls = std::mem::take(&mut others.tls);
        let certificate = std::mem::take(&mut others.certificate);
        let access = if certificate && !self.verifies_clients {
            // Then no client has shown one.
            Access::Nobody
        } else if certificate && rule.settings.redirects_late {
            // A redirect of the front is for all clients.
            Access::Unsaid
        } else {
            Access::from(others)
        };
        if certificate {
            let keys = &mut rule.settings.keys;
            keys.insert("client_certificate".to_owned(), quoted("required"));
        }
        rule.settings.access = access;
        tls
    }
}

/// Whether a directive, or one inside of it, has certificates of clients verified.
fn verifies_clients(directive: &Directive) -> bool {
    let is_own =
        directive.name == "sslverifyclient" && !directive.word(0).eq_ignore_ascii_case("none");
    is_own || directive.inside().iter().any(verifies_clients)
}
