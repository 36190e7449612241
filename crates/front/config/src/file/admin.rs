//! `[admin]`: where administrators are answered, and who may do what.

use std::ops::Range;
use std::path::PathBuf;

use catamaran_proxy::config::{AdminConfig, ListenAddress, Secret};
use toml::Spanned;
use toml::de::DeValue;

use super::{Surroundings, auth, long_enough};
use crate::check::exposed_admin;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::address::{listen_from, parse_listen_address};
use crate::value::text::{file_path, parse_admin_host, parse_mode, parse_name};
use crate::value::{OneOrMore, Optional, Switch, Syntax};

/// The settings of `[admin]`; their place is that of the address.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) value: AdminConfig,
    pub(crate) place: Range<usize>,
    /// Where `auth` is in the file; without it, the table's header.
    pub(crate) auth_place: Range<usize>,
    /// Where `state_file` is in the file; without it, the table's header.
    pub(crate) state_place: Range<usize>,
    /// Where `ready` is in the file; without it, the table's header.
    pub(crate) ready_place: Range<usize>,
}

/// The values of the keys of `[admin]`, before they are checked against each other.
struct RawAdmin {
    admin: AdminConfig,
    token_file: Option<PathBuf>,
}

/// Reads `[admin]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Admin> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawAdmin {
        admin: AdminConfig::new(Vec::new()),
        token_file: None,
    };
    table.read(KEYS, &mut written);
    let RawAdmin {
        mut admin,
        token_file,
    } = written;
    for address in &mut admin.addresses {
        if let Err(error) = listen_from(surroundings.base, address) {
            let message = format!("`address` {error}");
            table.push(Finding::fault(message, table.place_of("address")));
        }
    }
    if table.is_empty_list("address") {
        let message = "`address` is an empty list";
        let hint = "name an address such as \"127.0.0.1:9090\", or remove [admin]";
        table.push(Finding::fault(message, table.place_of("address")).hint(hint));
    }
    if let Some(state_file) = &mut admin.state_file {
        *state_file = surroundings.base.join(&*state_file);
    }
    if let Some(path) = token_file {
        let check = |token| long_enough(token, TOKEN_MIN);
        let token = surroundings.secret("token_file", &path, check, &mut table);
        admin.token = token.map(Secret::new);
    }
    for address in &admin.addresses {
        let has_secret = admin.token.is_some() || admin.auth.is_some();
        if let Some(message) = exposed_admin(address, has_secret) {
            table.push(Finding::warning(message, table.place_of("address")));
        }
    }
    let (place, state_place) = (table.place_of("address"), table.place_of("state_file"));
    let (ready_place, auth_place) = (table.place_of("ready"), table.place_of("auth"));
    let is_tcp = |address: &ListenAddress| matches!(address, ListenAddress::Tcp(_));
    if admin.auth.is_some() && !admin.addresses.iter().any(is_tcp) {
        let message =
            "`auth` has no effect: the Unix socket is open to those who may open its file";
        table.push(Finding::warning(message, table.place_of("auth")).hint("remove it"));
    }
    table.finish(report);
    // Without a valid address, nothing listens: the fault is reported already.
    if admin.addresses.is_empty() {
        return None;
    }
    Some(Admin {
        value: admin,
        place,
        auth_place,
        state_place,
        ready_place,
    })
}

pub(crate) static SECTION: Section = Section {
    header: "[admin]",
    intro: "Where operators watch and change a running front. `/healthz` is 200 as long as the \
            process lives, `/readyz` as long as each upstream of `ready` accepts new clients (503 from the \
            beginning of a drain, too), `/metrics` has the counters for \
            Prometheus, listed in [metrics.md](metrics.md). `/api/v1` and the commands `catamaran \
            status`, `drain`, `stop`, `activate`, `weight` and `reset` are explained in \
            [admin.md](admin.md). Without the table nothing is served. It has a thread of its own. \
            `address`, `socket_mode` and `state_file` take effect at a start, the others at a \
            reload, too.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

/// The least characters of a token: 128 bits as hexadecimal digits.
const TOKEN_MIN: usize = 32;

static KEYS: &[Key<RawAdmin>] = &[
    Key {
        name: "address",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an address and port such as \"127.0.0.1:9090\", or \"unix:/PATH\"",
                parse: parse_listen_address,
            }),
            RawAdmin.admin.addresses
        ),
        preset: Preset::Required,
        sample: "[\"unix:/run/catamaran/admin.sock\", \"127.0.0.1:9090\"]",
        effect: "Where the front answers administrators, without TLS. Everybody who may open the \
                 Unix socket may change everything. Over TCP nothing can be changed without \
                 `token_file`. On an address other than loopback the token is needed for all but \
                 `/healthz`, `/readyz` and `/metrics`. The commands look for \
                 `/run/catamaran/admin.sock` unless they get another address or the file.",
        extremes: "An address that others can reach shows them the load and the names of backends, \
                   and others on the way can read the token.",
        elsewhere: "nginx `stub_status`; httpd `mod_status`, `balancer-manager`; mod_jk \
                    `worker.NAME.type=status`; HAProxy `stats`, `stats socket`",
    },
    Key {
        name: "socket_mode",
        group: ALL,
        value: fill!(
            Syntax {
                what: "permissions such as \"0660\"",
                parse: parse_mode,
            },
            RawAdmin.admin.socket_mode
        ),
        preset: Preset::Value("\"0600\""),
        sample: "\"0660\"",
        effect: "The permissions of the Unix socket's file: who may steer the front.",
        extremes: "With `\"0666\"` every user of the machine may.",
        elsewhere: "HAProxy `stats socket … mode`",
    },
    Key {
        name: "token_file",
        group: ALL,
        value: fill!(
            Optional(file_path("the path of a file")),
            RawAdmin.token_file
        ),
        preset: Preset::Unset("over TCP nothing can be changed"),
        sample: "\"admin.token\"",
        effect: "A file whose first line, 32 characters or more, a client of TCP must send to change \
                 anything: `Authorization: Bearer TOKEN`. A relative path starts from the directory \
                 of the configuration file. `openssl rand -hex 32` makes one.",
        extremes: "Let only the user of the front and its operators read it.",
        elsewhere: "",
    },
    Key {
        name: "auth",
        group: ALL,
        value: fill!(Optional(auth::NAME), RawAdmin.admin.auth),
        preset: Preset::Unset("clients of TCP need the token alone"),
        sample: "\"NAME\"",
        effect: "The name of an [auth.NAME]. A client of TCP must then sign on, or send the token, \
                 for everything but `/healthz`, `/readyz` and `/metrics`, on a loopback address, too. A user may do what \
                 the token allows, and is named in the log of changes. The Unix socket needs neither. `sign_in` of that \
                 sign-on must be a whole URL. A client waits for its sign-on 5 s at most.",
        extremes: "The password or the cookie goes over the wire in cleartext, and a browser sends it with each request: \
                   use a loopback address and a tunnel.",
        elsewhere: "httpd `AuthType Basic` around `SetHandler server-status`; HAProxy `stats auth`",
    },
    Key {
        name: "hosts",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a host name such as \"front-1.example.org\"",
                parse: parse_admin_host,
            }),
            RawAdmin.admin.hosts
        ),
        preset: Preset::Value("[]"),
        sample: "[\"front-1.example.org\"]",
        effect: "Names by which clients of TCP may call this listener, besides `localhost` and its \
                 address. A request with another `Host` is answered 421, since a page in a browser \
                 may have been led here by its own DNS.",
        extremes: "`/healthz`, `/readyz` and `/metrics` are answered under any name.",
        elsewhere: "",
    },
    Key {
        name: "state_file",
        group: ALL,
        value: fill!(
            Optional(file_path("the path of a file")),
            RawAdmin.admin.state_file
        ),
        preset: Preset::Unset("a restart forgets them"),
        sample: "\"/var/lib/catamaran/state.json\"",
        effect: "Where what operators changed is kept for a restart; a reload and an upgrade keep it \
                 in any case. A setting that was changed in the configuration since is dropped: the \
                 file wins. One that cannot be understood is renamed to end in `.corrupt`, and \
                 `catamaran_state_file_fails` is 1 until a change is written. Only the front's user may \
                 read the file.",
        extremes: "The directory must be one that the front may write.",
        elsewhere: "HAProxy `server-state-file`; httpd `BalancerPersist`",
    },
    Key {
        name: "read_only",
        group: ALL,
        value: fill!(Switch, RawAdmin.admin.read_only),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Nobody can change anything by the admin listener, not even with the token or by \
                 the Unix socket.",
        extremes: "On, a backend can be taken out of use by the configuration only.",
        elsewhere: "",
    },
    Key {
        name: "ready",
        group: ALL,
        value: fill!(
            Optional(OneOrMore(Syntax {
                what: "the name of an upstream",
                parse: parse_name,
            })),
            RawAdmin.admin.ready
        ),
        preset: Preset::Unset("all upstreams"),
        sample: "[\"tomcat\"]",
        effect: "The upstreams that `/readyz` asks for: it is 503 while one of them accepts no new clients, \
                 because each of its backends is out, drained or stopped. It names every upstream that \
                 accepts none, in this list or not. `[]` asks for none: then it is 503 for a drain alone.",
        extremes: "All of them: one application that is dead takes the whole front, with all others, out of \
                   the balancer before it. [monitoring.md](monitoring.md) says what to choose.",
        elsewhere: "HAProxy `monitor fail if { nbsrv(tomcat) eq 0 }`",
    },
];
