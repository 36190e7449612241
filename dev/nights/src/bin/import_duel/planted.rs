//! Plants a door of each kind and checks that it is found; otherwise finding nothing would prove nothing.
//!
//! The source's server gets a configuration, and the front the import of another one that lacks a rule of it.

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
    /// The lines of the request, as in a file of the corpus; without [`FROM`], unless it has a body.
    request: &'static str,
}

/// Checks that each planted door is found.
pub(crate) fn check(kinds: &[Kind], addresses: &Addresses) -> anyhow::Result<()> {
    for planted in PLANTED.iter().filter(|it| kinds.contains(&it.kind)) {
        let conf = |text: &str| Conf(vec![(MAIN.to_owned(), text.to_owned())]);
        let mut lines: Vec<&str> = planted.request.lines().collect();
        if !planted.request.starts_with(FROM) {
            lines.insert(0, FROM);
        }
        let asks = [Ask::parse(&lines)?];
        let duel = Duel {
            kind: planted.kind,
            addresses,
        };
        let (source, imported) = (conf(planted.source), conf(planted.imported));
        let found = duel.compare(&source, &imported, &asks, &mut Tally::default())?;
        ensure!(
            found.iter().any(|finding| finding.door == planted.door),
            "a planted door was not found: {:?} of {:?} by {}, but {found:?}",
            planted.door,
            planted.kind,
            planted.request
        );
        let honest = duel.compare(&source, &source, &asks, &mut Tally::default())?;
        ensure!(
            honest.is_empty(),
            "a door was found where none was planted: {honest:?}"
        );
    }
    Ok(())
}

/// Who sends the requests, and where: the first line of each.
const FROM: &str = "from 127.0.0.1 to a";

/// A server of nginx without a guard.
const OPEN: &str = "server { listen {a}; location / { proxy_pass http://{one}; } }\n";

const PLANTED: &[Planted] = &[
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } location /admin { deny all; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Absent,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } location /admin { return 404; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Elsewhere,
        source: OPEN,
        imported: "server { listen {a}; location / { proxy_pass http://{two}; } }\n",
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Forged,
        source: "server { listen {a}; location / { proxy_pass http://{one}; proxy_set_header X-Role \"\"; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nX-Role: forged",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Wider,
        source: OPEN,
        imported: "server { listen 0.0.0.0:{port_a}; location / { proxy_pass http://{one}; } }\n",
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Refused,
        source: "Listen {a}\nProxyPass / http://{one}/\n<Location /admin>\nRequire all denied\n</Location>\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\n",
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; auth_basic x; \
                 auth_basic_user_file {place}/htpasswd; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nAuthorization: Basic dXNlcjp3cm9uZw==",
    },
    // The front compares the password of `other`, who is a user of the file.
    Planted {
        kind: Kind::Httpd,
        door: Door::Refused,
        source: "Listen {a}\nProxyPass / http://{one}/\n<Location />\nAuthType Basic\nAuthName x\n\
                 AuthUserFile {place}/htpasswd\nRequire user user\n</Location>\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\n<Location />\nAuthType Basic\nAuthName x\n\
                 AuthUserFile {place}/htpasswd\nRequire valid-user\n</Location>\n",
        request: "GET /admin\nHost: a.org\nAuthorization: Basic b3RoZXI6cGFzc3dvcmQ=",
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Field,
        source: "Listen {a}\nProxyPass / http://{one}/\nRequestHeader set X-Role guest\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\nRequestHeader set X-Role admin\n",
        request: "GET /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Loosened,
        source: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n\
                 Header set X-Frame-Options DENY\n",
        imported: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n",
        request: "GET /up/x.html\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; return 403; } server { listen {a}; server_name a.org; location / { proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin HTTP/1.0\nConnection: close",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } } server { listen {a}; server_name a.org; return 403; }\n",
        imported: OPEN,
        request: "GET /admin\nHost: A.ORG.:443",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } } server { listen {a}; server_name a.org; return 403; }\n",
        imported: OPEN,
        request: "GET http://a.org/admin\nHost: b.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_range) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nRange: bytes=0-",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_if_none_match) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nIf-None-Match: *",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_upgrade ~ websocket) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nConnection: upgrade\nUpgrade: websocket",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_x_role ~ forged) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nConnection: close, x-role\nX-Role: forged",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_x_role = admin) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nX-Role: admin\nX-Role: forged",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($http_x_forwarded_port != 443) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin\nHost: a.org\nX-Forwarded-Port: 80",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($request_method = PROPFIND) { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "PROPFIND /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { if ($request_uri ~ \"%2[Ff]\") { return 403; } proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "GET /admin%2fx\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { proxy_pass http://{one}; } location ~ \";jsessionid\" { deny all; } }\n",
        imported: OPEN,
        request: "GET /admin;jsessionid=1.two\nHost: a.org",
    },
    Planted {
        kind: Kind::Nginx,
        door: Door::Refused,
        source: "server { listen {a}; location / { client_max_body_size 1k; proxy_pass http://{one}; } }\n",
        imported: OPEN,
        request: "from 127.0.0.1 to a with a body of 1025\nPOST /admin\nHost: a.org",
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Refused,
        // httpd does not limit the bodies of what it passes on.
        source: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n\
                 LimitRequestBody 1000\n",
        imported: "Listen {a}\nDocumentRoot {place}/site\n<Directory {place}/site>\nRequire all granted\n</Directory>\n",
        request: "from 127.0.0.1 to a with a body of 1025\nGET /up/x.html\nHost: a.org",
    },
    Planted {
        kind: Kind::Httpd,
        door: Door::Refused,
        source: "Listen {a}\nProxyPass / http://{one}/\nRewriteEngine on\nRewriteCond %{HTTP:Upgrade} websocket\n\
                 RewriteRule ^ - [F]\n",
        imported: "Listen {a}\nProxyPass / http://{one}/\n",
        request: "GET /admin\nHost: a.org\nConnection: upgrade\nUpgrade: websocket",
    },
];
