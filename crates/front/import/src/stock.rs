//! Directives known not to restrict access, listed in `stock.txt`.
//!
//! A directive that is not listed may be a guard, of a module that the importer does not know. Requests that
//! it concerns are closed or left to the old server.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether a directive of `server` (`httpd`, `nginx`) may restrict access; `name` is in lower case.
pub(crate) fn may_guard(server: &str, name: &str) -> bool {
    let known = if server == "nginx" {
        &TABLE.nginx
    } else {
        &TABLE.httpd
    };
    !known.names.contains(name) && !known.starts.iter().any(|it| name.starts_with(it))
}

#[derive(Default)]
struct StockNames {
    names: HashSet<&'static str>,
    starts: Vec<&'static str>,
}

#[derive(Default)]
struct Table {
    httpd: StockNames,
    nginx: StockNames,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    let mut of_nginx = false;
    for line in TEXT.lines().filter(|it| !it.starts_with('#')) {
        if line.starts_with('[') {
            of_nginx = line == "[nginx]";
            continue;
        }
        let names = if of_nginx {
            &mut table.nginx
        } else {
            &mut table.httpd
        };
        for name in line.split_whitespace() {
            match name.strip_suffix('*') {
                Some(start) => names.starts.push(start),
                None => drop(names.names.insert(name)),
            }
        }
    }
    table
});

static TEXT: &str = include_str!("stock.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_and_strangers_are_not_listed() {
        for (server, name) in [
            ("httpd", "require"),
            ("httpd", "secruleengine"),
            ("httpd", "sslrequiressl"),
            ("httpd", "luahookaccesschecker"),
            ("nginx", "auth_ldap"),
            ("nginx", "access_by_lua_block"),
            ("nginx", "deny"),
            ("nginx", "proxypass"),
        ] {
            assert!(may_guard(server, name), "{name}");
        }
        for (server, name) in [
            ("httpd", "header"),
            ("httpd", "jkmount"),
            ("nginx", "gzip_types"),
            ("nginx", "proxy_pass"),
        ] {
            assert!(!may_guard(server, name), "{name}");
        }
    }
}
