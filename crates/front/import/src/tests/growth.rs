//! Tests that the work of a conversion grows only linearly with the configuration.

use super::*;
use crate::matcher::tests::COMPARISONS;
use crate::routes::tests::GROUPS;

#[test]
fn twice_the_directives_are_twice_the_work() {
    for (kind, make) in KINDS {
        let work = |count: usize| {
            COMPARISONS.set(0);
            GROUPS.set(0);
            let import = make(count);
            assert!(import.sums.total() >= count, "{kind}: {:?}", import.sums);
            assert_eq!(import.sums.decided, 0, "{kind}: {:?}", import.remarks);
            assert_eq!(GROUPS.get(), 1, "{kind}: the routes are computed once");
            COMPARISONS.get()
        };
        let (small, large) = (work(600), work(1_200));
        assert!(
            large <= 2 * small + 200,
            "{kind}: {small} comparisons of 600 directives, {large} of 1,200"
        );
        assert!(
            large <= 40 * 1_200,
            "{kind}: {large} comparisons of 1,200 directives"
        );
    }
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn mounts(count: usize) -> Import {
    let map = lines(count, |it| format!("/app{it}|/*=one\n"));
    converted(&[("w.properties", WORKERS), ("u.properties", &map)], None)
}

fn passes(count: usize) -> Import {
    let passes = lines(count, |it| {
        format!("ProxyPass /app{it} ajp://t:8009/app{it}\n")
    });
    converted(&[("/httpd.conf", &format!("Listen 80\n{passes}"))], None)
}

fn sections(count: usize) -> Import {
    let pass =
        |it: usize| format!("<Location /app{it}>\nProxyPass ajp://t:8009/app{it}\n</Location>\n");
    let sections = lines(count / 2, pass);
    converted(&[("/httpd.conf", &format!("Listen 80\n{sections}"))], None)
}

fn virtual_hosts(count: usize) -> Import {
    let host = |it: usize| {
        format!(
            "<VirtualHost *:80>\nServerName h{it}.org\nProxyPass / ajp://t:8009/\n</VirtualHost>\n"
        )
    };
    let hosts = lines(count / 3, host);
    converted(
        &[("/httpd.conf", &format!("Listen 80\nListen 81\n{hosts}"))],
        None,
    )
}

fn locations(count: usize) -> Import {
    nginx(count, |it| format!("/app{it}/"))
}

/// Locations without a closing slash. They become patterns, since nginx matches `/apple`
/// with `/app`.
fn bare_locations(count: usize) -> Import {
    nginx(count, |it| format!("/app{it}"))
}

fn nginx(count: usize, path: impl Fn(usize) -> String) -> Import {
    let location = |it: usize| format!("location {} {{ proxy_pass http://t:80; }}\n", path(it));
    let locations = lines(count / 2, location);
    let conf = format!(
        "server {{\nlisten 80;\nproxy_set_header Host $host;\nlocation ~ \\.php$ {{ deny all; }}\n{locations}}}\n"
    );
    converted(&[("/nginx.conf", &conf)], None)
}

/// Makes a configuration with this many directives and converts it.
type Make = fn(usize) -> Import;

const KINDS: [(&str, Make); 6] = [
    ("uriworkermap", mounts),
    ("ProxyPass", passes),
    ("Location", sections),
    ("VirtualHost", virtual_hosts),
    ("location", locations),
    ("location without a slash", bare_locations),
];
