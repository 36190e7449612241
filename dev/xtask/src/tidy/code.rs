//! What code must not contain: `unsafe` outside of its places, sleeps, ignored tests, and libraries that read the
//! environment, the command line or files. The checks look at tokens.

use super::Problem;
use super::arrows::LEAVES;
use super::source::Source;

/// Finds what the code of a file must not contain.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |lines: Vec<usize>, message: &str| {
        for line in lines {
            problems.push(Problem::new(format!("{}:{line}", source.path), message));
        }
    };
    report(
        unsafe_lines(source),
        "unsafe is allowed in no file but those listed in tidy/code.rs",
    );
    report(
        sleep_lines(source),
        "tests wait for an event with a deadline, they never sleep",
    );
    report(
        ignore_lines(source),
        "no test is ignored: assert what is, or remove it",
    );
    report(
        world_lines(source),
        "a library reads no environment, arguments or files: pass values",
    );
    problems
}

/// Leaves whose `lib.rs` lacks `#![forbid(unsafe_code)]`.
pub(super) fn check_forbidden_unsafe(sources: &[Source]) -> Vec<Problem> {
    let roots = sources
        .iter()
        .filter(|source| source.path.ends_with("/src/lib.rs") && LEAVES.contains(&source.folder()));
    let attribute = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    roots
        .filter(|source| source.find(&attribute).next().is_none())
        .map(|source| Problem::new(&source.path, "a leaf must say #![forbid(unsafe_code)]"))
        .collect()
}

/// The lines with `unsafe`; none in a file, or below a folder, that may have it.
fn unsafe_lines(source: &Source) -> Vec<usize> {
    let is_allowed = MAY_BE_UNSAFE.iter().any(|place| {
        source.path == *place || (place.ends_with('/') && source.path.starts_with(place))
    });
    if is_allowed {
        return Vec::new();
    }
    source.find(&["unsafe"]).collect()
}

/// The lines that call a function to sleep. In `testkit` and `e2e` all code counts as test code; in other
/// crates only the lines of tests do, so that the programs of `nights` may keep a pace.
fn sleep_lines(source: &Source) -> Vec<usize> {
    let all = ["testkit", "e2e"].contains(&source.folder());
    let sleeps = ["sleep", "sleep_until", "sleep_ms"];
    let calls = sleeps
        .iter()
        .flat_map(|name| source.find(&[name, "("]).collect::<Vec<_>>());
    calls
        .filter(|line| all || source.is_test_line(*line))
        .collect()
}

fn ignore_lines(source: &Source) -> Vec<usize> {
    source.find(&["#", "[", "ignore"]).collect()
}

/// The lines of a library that read the environment, arguments or files, except those of tests.
fn world_lines(source: &Source) -> Vec<usize> {
    let own = READS_ITS_OWN.contains(&&*source.path);
    if own || READS_THE_WORLD.contains(&source.folder()) {
        return Vec::new();
    }
    let patterns: [&[&str]; 9] = [
        &["env", ":", ":", "var"],
        &["env", ":", ":", "var_os"],
        &["env", ":", ":", "vars"],
        &["env", ":", ":", "vars_os"],
        &["env", ":", ":", "args"],
        &["env", ":", ":", "args_os"],
        &["fs", ":", ":", "read"],
        &["fs", ":", ":", "read_to_string"],
        &["File", ":", ":", "open"],
    ];
    let found = patterns
        .iter()
        .flat_map(|pattern| source.find(pattern).collect::<Vec<_>>());
    found.filter(|line| !source.is_test_line(*line)).collect()
}

/// Files, or folders ending in `/`, that may contain `unsafe`. ARCHITECTURE.md names each with the reason.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/connector/src/io/uring.rs",
    "crates/connector/src/io/uring/",
    "crates/base/gauge/src/bpf.rs",
];

/// Crates that may read the environment, the command line and files, as ARCHITECTURE.md lists them with what
/// they read.
const READS_THE_WORLD: &[&str] = &[
    "config", "cli", "bench", "discover", "xtask", "testkit", "e2e", "nights", "files", "gauge",
    "tier", "lab", "fuzz",
];

/// Files of other crates that may read files: those that the program wrote itself, and certificates and users, which are
/// renewed while the front serves.
const READS_ITS_OWN: &[&str] = &[
    "crates/front/proxy/src/control/state_file.rs",
    "crates/front/proxy/src/local_file.rs",
    "crates/front/proxy/src/tls/acme/disk.rs",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let source = Source::parse(path, text).unwrap();
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_fails_outside_its_place() {
        let text = "//! A.\nfn a() { unsafe { b() } }";
        assert!(
            problems("crates/front/proxy/src/a.rs", text)[0]
                .starts_with("crates/front/proxy/src/a.rs:2: unsafe")
        );
        assert_eq!(
            problems("crates/connector/src/io/uring/ring.rs", text),
            Vec::<String>::new()
        );
        assert_eq!(problems("crates/connector/src/io/epoll.rs", text).len(), 1);
        assert_eq!(
            problems("crates/front/proxy/src/a.rs", "#![deny(unsafe_code)]"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_sleep_fails_in_tests_only() {
        let call = "fn a() { tokio::time::sleep(d); }";
        assert_eq!(
            problems("crates/front/proxy/src/a.rs", call),
            Vec::<String>::new()
        );
        for path in [
            "crates/front/proxy/src/a/tests.rs",
            "crates/front/proxy/tests/it/a.rs",
            "dev/e2e/src/a.rs",
        ] {
            assert_eq!(problems(path, call).len(), 1, "{path}");
        }
        let inner = format!("#[cfg(test)]\nmod tests {{ {call} }}");
        assert_eq!(problems("crates/front/proxy/src/a.rs", &inner).len(), 1);
    }

    #[test]
    fn an_ignored_test_fails() {
        for attribute in ["#[ignore]", "#[ignore = \"flaky\"]"] {
            let text = format!("{attribute} #[test] fn a() {{}}");
            assert_eq!(
                problems("crates/a/tests/it/b.rs", &text).len(),
                1,
                "{attribute}"
            );
        }
    }

    #[test]
    fn a_library_that_reads_the_world_fails() {
        for read in [
            "std::env::var(\"A\")",
            "env::args()",
            "fs::read_to_string(p)",
            "File::open(p)",
        ] {
            let text = format!("fn a() {{ {read}; }}");
            assert_eq!(
                problems("crates/front/upstream/src/a.rs", &text).len(),
                1,
                "{read}"
            );
            assert_eq!(
                problems("crates/cli/src/a.rs", &text),
                Vec::<String>::new(),
                "{read}"
            );
            assert_eq!(
                problems("crates/front/upstream/tests/it/a.rs", &text),
                Vec::<String>::new()
            );
        }
    }

    #[test]
    fn a_leaf_must_forbid_unsafe() {
        let leaf = |text| vec![Source::parse("crates/wire/ajp/src/lib.rs", text).unwrap()];
        assert_eq!(check_forbidden_unsafe(&leaf("//! A.\n")).len(), 1);
        assert_eq!(check_forbidden_unsafe(&leaf("#![forbid(unsafe_code)]")), []);
    }
}
