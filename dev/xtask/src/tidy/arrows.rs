//! Who may depend on whom: the drawing in ARCHITECTURE.md as a table.
//!
//! Leaves decide without I/O: they use no runtime and no socket, not even through a third crate. They depend on no
//! crate of this repository, except that the codecs and `cache` use `message`, and `toml-file` uses `units`. The
//! tools that measure (`load`, `bench`, `lab`) share no code with what they measure, because both would have the same
//! faults.

use super::Problem;
use crate::graph::{Graph, Package};

/// A crate, and the crates of this repository that it may depend on.
struct Row {
    folder: &'static str,
    may_use: &'static [&'static str],
}

/// Finds dependencies that the table of arrows does not allow, and leaves that are built with a runtime or sockets.
pub(super) fn check(graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (folder, id, package) in graph.members() {
        problems.extend(check_arrows(graph, folder, package));
        if LEAVES.contains(&folder) {
            problems.extend(check_leaf(graph, folder, id));
        }
    }
    problems
}

/// Checks the dependencies of one crate. Its tests may also use leaves and crates for tests.
fn check_arrows(graph: &Graph, folder: &str, package: &Package) -> Vec<Problem> {
    let Some(row) = ARROWS.iter().find(|row| row.folder == folder) else {
        let what = "is not in the table of arrows (xtask, tidy/arrows.rs): add it there and to \
                    ARCHITECTURE.md";
        return vec![Problem::new(folder, what)];
    };
    let folder_of = |id: &String| graph.packages.get(id)?.folder.as_deref();
    let mut problems = Vec::new();
    for dependency in package.normal.iter().filter_map(folder_of) {
        if !row.may_use.contains(&dependency) {
            let message =
                format!("must not depend on {dependency}: see the drawing in ARCHITECTURE.md");
            problems.push(Problem::new(folder, message));
        }
    }
    let tests_may_use = [row.may_use, &LEAVES, &TESTS_ONLY].concat();
    for dependency in package.dev.iter().filter_map(folder_of) {
        if !tests_may_use.contains(&dependency) {
            let message = format!("its tests must not depend on {dependency}: test it through e2e");
            problems.push(Problem::new(folder, message));
        }
    }
    problems
}

/// Finds the crates of [`WORLD`] that a leaf is built with, also through other crates.
fn check_leaf(graph: &Graph, folder: &str, id: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for dependency in graph.closure(id, &QUIET) {
        let Some(package) = graph.packages.get(dependency) else {
            continue;
        };
        let name = package.name.as_str();
        if WORLD.contains(&name) {
            let message = format!("is built with {name}: a leaf has no runtime, socket or clock");
            problems.push(Problem::new(folder, message));
        }
    }
    problems
}

/// The crates without I/O and clock, by folder.
pub(super) const LEAVES: [&str; 15] = [
    "message",
    "ajp",
    "http1",
    "http2",
    "memcache",
    "admin-api",
    "balance",
    "cache",
    "coding",
    "credentials",
    "limit",
    "stats",
    "chart",
    "toml-file",
    "units",
];

/// Packages with sockets, timers or threads, on which leaves must not depend.
const WORLD: [&str; 8] = [
    "tokio", "mio", "socket2", "polling", "rustix", "nix", "libc", "h2",
];

/// Packages whose own dependencies do no I/O in them: `cpufeatures` asks libc for the instructions of some processors.
const QUIET: [&str; 1] = ["cpufeatures"];

/// Crates on which only tests may depend.
const TESTS_ONLY: [&str; 1] = ["testkit"];

#[rustfmt::skip]
const ARROWS: &[Row] = &[
    Row { folder: "message", may_use: &[] },
    Row { folder: "ajp", may_use: &["message"] },
    Row { folder: "http1", may_use: &["message"] },
    Row { folder: "http2", may_use: &["message"] },
    Row { folder: "http-client", may_use: &["http1", "message", "tls"] },
    Row { folder: "memcache", may_use: &[] },
    Row { folder: "admin-api", may_use: &[] },
    Row { folder: "balance", may_use: &[] },
    Row { folder: "coding", may_use: &[] },
    Row { folder: "credentials", may_use: &[] },
    Row { folder: "limit", may_use: &[] },
    Row { folder: "stats", may_use: &[] },
    Row { folder: "chart", may_use: &[] },
    Row { folder: "units", may_use: &[] },
    Row { folder: "toml-file", may_use: &["units"] },
    Row { folder: "cache", may_use: &["message"] },
    Row { folder: "tls", may_use: &[] },
    Row { folder: "discover", may_use: &["http-client", "http1", "message", "tls"] },
    Row { folder: "transport", may_use: &["tls"] },
    Row { folder: "upstream", may_use: &["ajp", "http1", "balance", "message", "stats", "tls", "transport"] },
    Row { folder: "files", may_use: &["coding", "message"] },
    Row { folder: "proxy", may_use: &["admin-api", "gauge", "coding", "credentials", "discover", "files", "upstream", "http1", "http2", "http-client", "balance", "cache", "limit", "message", "tls", "transport", "units"] },
    Row { folder: "connector", may_use: &["ajp", "http1", "message", "transport"] },
    Row { folder: "load", may_use: &["ajp", "http1", "http2", "memcache", "message", "stats", "chart", "tls", "units"] },
    Row { folder: "bench", may_use: &["gauge", "load", "units"] },
    Row { folder: "gauge", may_use: &[] },
    Row { folder: "tier", may_use: &["gauge", "http-client", "toml-file", "units"] },
    Row { folder: "lab", may_use: &["chart", "gauge", "load", "stats", "tier", "toml-file", "units"] },
    Row { folder: "config", may_use: &["proxy", "toml-file"] },
    Row { folder: "import", may_use: &["config", "credentials", "proxy"] },
    Row { folder: "cli", may_use: &["admin-api", "config", "proxy", "connector", "http-client", "import", "bench", "lab", "units"] },
    Row { folder: "testkit", may_use: &["tls"] },
    Row { folder: "e2e", may_use: &["gauge", "testkit", "tier"] },
    Row { folder: "nights", may_use: &["ajp", "e2e", "gauge", "http2", "message", "stats", "testkit", "tier"] },
    Row { folder: "xtask", may_use: &["chart", "gauge", "http-client", "stats", "testkit", "tier", "units"] },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(rows: &[(&str, &[&str], &[&str])]) -> Vec<String> {
        let problems = check(&Graph::of(rows));
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_drawing_passes() {
        let found = problems(&[
            ("ajp", &["bytes"], &["proptest"]),
            ("upstream", &["ajp", "tokio"], &["testkit"]),
            ("proxy", &["upstream", "tokio"], &["ajp", "testkit"]),
            ("config", &["proxy"], &[]),
            ("cli", &["config"], &[]),
            ("testkit", &["socket2"], &[]),
            ("e2e", &["testkit"], &[]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_leaf_must_not_reach_the_world_through_others() {
        let found = problems(&[("balance", &["clever"], &[]), ("clever", &["tokio"], &[])]);
        assert!(
            found
                .iter()
                .any(|text| text.starts_with("balance: is built with tokio")),
            "{found:?}"
        );
    }

    #[test]
    fn a_leaf_may_ask_for_the_instructions_of_its_processor() {
        let sha2 = ("sha2", &["cpufeatures"][..], &[][..]);
        let cpufeatures = ("cpufeatures", &["libc"][..], &[][..]);
        let names_libc = |rows: &[_]| {
            let found = problems(rows);
            found
                .iter()
                .any(|text| text.starts_with("limit: is built with libc"))
        };
        assert!(!names_libc(&[("limit", &["sha2"], &[]), sha2, cpufeatures]));
        assert!(names_libc(&[
            ("limit", &["sha2", "libc"], &[]),
            sha2,
            cpufeatures
        ]));
    }

    #[test]
    fn tests_of_a_leaf_may_use_what_they_like() {
        assert_eq!(problems(&[("ajp", &[], &["tokio"])]), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_against_the_drawing_fails() {
        for (from, to) in [
            ("proxy", "config"),
            ("proxy", "cli"),
            ("connector", "upstream"),
            ("upstream", "proxy"),
            ("ajp", "http1"),
            ("message", "http1"),
            ("balance", "message"),
            ("load", "upstream"),
            ("load", "bench"),
            ("bench", "http1"),
            ("cli", "load"),
            ("lab", "proxy"),
            ("proxy", "testkit"),
        ] {
            let found = problems(&[(from, &[to], &[]), (to, &[], &[])]);
            let expected = format!("{from}: must not depend on {to}");
            assert!(
                found.iter().any(|text| text.starts_with(&expected)),
                "{from} {to} {found:?}"
            );
        }
    }

    #[test]
    fn tests_must_not_turn_the_drawing_around() {
        let found = problems(&[("upstream", &[], &["proxy"]), ("proxy", &[], &[])]);
        assert!(
            found[0].contains("its tests must not depend on proxy"),
            "{found:?}"
        );
    }

    #[test]
    fn an_unknown_crate_fails() {
        let found = problems(&[("utilities", &[], &[])]);
        assert!(found[0].contains("not in the table"), "{found:?}");
    }
}
