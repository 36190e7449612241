//! Doors that are planted, one of each kind: what finds none of them proves nothing.
//!
//! The source serves a configuration, and the front the import of another one, from which a guard was taken.

use anyhow::ensure;

use crate::ask::Ask;
use crate::duel::{Duel, Tally};
use crate::judge::Door;
use crate::stage::{Addresses, Kind};
use crate::tree::{Conf, MAIN};

struct Planted {
    kind: Kind,
    door: Door,
    source: &'static str,
    imported: &'static str,
    target: &'static str,
    field: Option<(&'static str, &'static str)>,
}

/// Checks that each is found.
pub(crate) fn check(kinds: &[Kind], addresses: &Addresses) -> anyhow::Result<()> {
    for it in PLANTED.iter().filter(|it| kinds.contains(&it.kind)) {
        let conf = |text: &str| Conf(vec![(MAIN.to_owned(), text.to_owned())]);
        let mut ask = Ask::get(it.target, "a.org");
        let field = it
            .field
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        ask.fields.extend(field);
        let duel = Duel {
            kind: it.kind,
            addresses,
        };
        let (source, imported) = (conf(it.source), conf(it.imported));
        let asks = [ask];
        let found = duel.compare(&source, &imported, &asks, &mut Tally::default())?;
        let is_found = found.iter().any(|found| found.door == it.door);
        ensure!(
            is_found,
            "a planted door was not found: {:?} of {:?}, but {found:?}",
            it.door,
            it.kind
        );
        let honest = duel.compare(&source, &source, &asks, &mut Tally::default())?;
        ensure!(
            honest.is_empty(),
            "a door was found where none was planted: {honest:?}"
        );
    }
    Ok(())
}

const PLANTED: &[Planted] = &[
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } location /admin { deny all; } }\n",
        imported: "server { listen {a}; location / { proxy_pass http://{one}; } }\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Absent,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } location /admin { return 404; } }\n",
        imported: "server { listen {a}; location / { proxy_pass http://{one}; } }\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Elsewhere,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } }\n",
        imported: "server { listen {a}; location / { proxy_pass http://{two}; } }\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Forged,
        source: "server { listen {a}; location / { proxy_pass http://{one}; proxy_set_header X-Role \"\"; } }\n",
        imported: "server { listen {a}; location / { proxy_pass http://{one}; } }\n",
        target: "/admin",
        field: Some(("X-Role", "forged")),
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Wider,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } }\n",
        imported: "server { listen 0.0.0.0:{port_a}; location / { proxy_pass http://{one}; } }\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Refused,
        source: "Listen {a}\nProxyPass / http://{one}/\n<Location /admin>\nRequire all denied\n</Location>\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Field,
        source: "Listen {a}\nProxyPass / http://{one}/\nRequestHeader set X-Role guest\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\nRequestHeader set X-Role admin\n",
        target: "/admin",
        field: None,
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Loosened,
        source: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n\
                 Header set X-Frame-Options DENY\n",
        imported: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n",
        target: "/up/x.html",
        field: None,
    },
];
