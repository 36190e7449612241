//! The project's own commands: `cargo xtask ci | needs | test | tidy | names | lines | deny | advisories | figures |
//! planted | published | fuzz | package | installed | libraries | payara | wildfly-members | bad-day | nginx-tests |
//! import-duel | instructions`.
//!
//! CI runs `cargo xtask ci` and nothing else, so what passes by hand passes there. Each step is a module: [`needs`]
//! installs what the tests need, [`mod@test`] runs them, [`tidy`] checks rules that neither rustc nor clippy can
//! check, [`lines`] counts lines of code, [`deny`] checks what may be linked, [`advisories`] updates the list of
//! known vulnerabilities, [`figures`] writes the figures of pages from results, [`planted`] adds runs to one of them,
//! [`fuzz`] runs the fuzz targets, [`package`] makes packages, [`installed`] and [`libraries`] try them,
//! [`instructions`] counts the instructions of a request. Speed is not measured here but by `catamaran lab`.

mod advisories;
mod bad_day;
mod deny;
mod figures;
mod fuzz;
mod graph;
mod import_duel;
mod installed;
mod instructions;
mod libraries;
mod lines;
mod needs;
mod nginx_tests;
mod package;
mod payara;
mod planted;
mod published;
mod step;
mod test;
mod tidy;
mod tools;
mod wildfly;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::instructions::Options;
use crate::step::{Steps, cargo};

#[expect(clippy::print_stderr, reason = "a command-line tool reports on stderr")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["ci"] => ci(),
        ["needs"] => run(|steps, _| test::install(steps)),
        ["test", words @ ..] => test::command(words),
        ["tidy"] => run(|steps, root| steps.run("tidy", || tidy::run(root))),
        ["names"] => run(|_, root| tidy::names::run(root)),
        ["lines"] => run(|_, root| lines::run(root, None)),
        ["lines", "--against", commit] => run(|_, root| lines::run(root, Some(commit))),
        ["deny"] => run(|steps, root| steps.run("deny", || deny::run(root))),
        ["figures"] => run(|steps, root| steps.run("figures", || figures::write(root))),
        ["planted", directories @ ..] => run(|_, root| planted::add(root, directories)),
        ["published", "--check"] => run(|_, root| published::check(root)),
        ["fuzz"] => {
            let seconds = 60;
            run(|steps, root| fuzz::run_all(steps, root, seconds))
        }
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => run(|steps, root| fuzz::run_all(steps, root, seconds)),
            Err(_) => usage(),
        },
        ["advisories", "--update", checkout] => {
            run(|_, root| advisories::update(root, Path::new(checkout)))
        }
        ["package", options @ ..] => match package::Options::parse(options) {
            Some(options) => run(|steps, root| package::run(steps, root, &options)),
            None => usage(),
        },
        ["installed"] => {
            run(|steps, root| installed::run(steps, root, &installed::default_binary(root)?))
        }
        ["installed", "--binary", binary] => {
            run(|steps, root| installed::run(steps, root, Path::new(binary)))
        }
        ["libraries"] => run(libraries::run),
        ["payara"] => run(payara::run),
        ["nginx-tests", suite] => {
            run(|steps, root| nginx_tests::run(steps, root, Path::new(suite)))
        }
        ["bad-day"] => run(bad_day::run),
        ["import-duel", options @ ..] => run(|steps, root| import_duel::run(steps, root, options)),
        ["wildfly-members"] => run(wildfly::run),
        ["instructions", options @ ..] => match Options::parse(options) {
            Some(options) => run(|steps, root| instructions::run(steps, root, &options)),
            None => usage(),
        },
        _ => usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// All checks that a change must pass, the fastest first.
fn ci() -> anyhow::Result<()> {
    run(|steps, root| {
        steps.run("fmt", || cargo(root, &["fmt", "--all", "--check"]).finish())?;
        steps.run("clippy", || {
            let all = ["clippy", "--workspace", "--all-targets", "--quiet"];
            cargo(root, &all)
                .args(&["--", "--deny", "warnings"])
                .finish()
        })?;
        // A user of the connector as a library may leave out drivers.
        for features in ["", "threads", "uring"] {
            let name = format!("connector with features {features:?}");
            steps.run(&name, || {
                let connector = ["clippy", "--package", "catamaran-connector", "--quiet"];
                cargo(root, &connector)
                    .args(&["--no-default-features", "--features", features])
                    .args(&["--", "--deny", "warnings"])
                    .finish()
            })?;
        }
        steps.run("doc", || {
            let doc = [
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
                "--quiet",
            ];
            cargo(root, &doc)
                .env("RUSTDOCFLAGS", "--deny warnings")
                .finish()
        })?;
        steps.run("tidy", || tidy::run(root))?;
        steps.run("deny", || deny::run(root))?;
        fuzz::check(steps, root)?;
        test::run(steps, root, test::Selection::All)?;
        // The package has the binary that was tested.
        let binary = installed::default_binary(root)?;
        import_duel::of_binary(steps, root, &binary, &["--files", "40", "--seed", "1"])?;
        package::of_binary(steps, root, &binary, None)?;
        Ok(())
    })
}

/// Does `work` in the root of the workspace, then prints how long each step took.
fn run(work: impl FnOnce(&mut Steps, &Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    // The directory is read when the program runs, not when it is built, because checkouts may share a target
    // directory.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&manifest)
        .ancestors()
        .nth(2)
        .context("xtask is not in dev/xtask of the workspace")?;
    let mut steps = Steps::default();
    let result = work(&mut steps, root);
    steps.summarise();
    result
}

fn usage() -> anyhow::Result<()> {
    bail!("unknown command\n{USAGE}")
}

const USAGE: &str = "usage: cargo xtask COMMAND

  ci              everything CI checks: formatting, lints, docs, tidiness, licences, advisories, tests,
                  the Debian package
  needs           install the servers that the tests run against
  test [--fast | NAME…]
                  run every test, with the servers that tests need; with --fast those that need neither servers nor
                  root; else those whose names contain a NAME. `test --help` says more
  tidy            check the invariants of the code base
  names           count types that are participles, types that share a name, functions that take tuples
  lines [--against COMMIT]
                  count lines of source and of tests in each crate, words of documents, files; with --against beside
                  those of that commit
  deny            check licences, versions, sources and advisories of what is linked
  figures         write the figures of README.md, docs/measured.md and the pages of published tests, with their
                  pictures, from docs/lab/*/result.json
  planted [DIR…]  add results of docs/lab/planted.toml to docs/lab/planted-runs.csv, and write their tables into
                  docs/lab/method.md: how often planted differences are shown, and others
  published --check
                  count the sentences of published tests and their verdicts, compare the pages with docs/measured.md,
                  and check that both languages have the same figures
  advisories --update CLONE
                  replace the advisories in security/advisories by those of a clone of
                  https://github.com/rustsec/advisory-db
  package [--twice] [--profile dist|release|dev] [--only deb|static]
                  build and pack into target/package: a Debian package, a static tar, an OCI image, the list of
                  crates, symbols; with --twice build again elsewhere and compare the bytes
  package --binary FILE [--version VERSION]
                  pack a Debian package of that binary alone
  installed [--binary FILE]
                  pack target/release/catamaran, or FILE, and try the package in a clean Debian with systemd, by the
                  commands of docs/install.md and docs/tls.md; then the image of target/package
  libraries       pack the crates below the connector as they would be published, and build the application of
                  docs/connector.md from what was packed
  payara          send 2,000 requests to Payara and check each response; fetches Payara
  wildfly-members have two nodes of WildFly join a front by multicast, over AJP and over HTTP, suspend, leave and
                  return, and check that no session and no request is lost; fetches WildFly
  bad-day         an operator's bad day before real Tomcats, beside nginx and HAProxy: the name server dies, a
                  Tomcat hangs, dies, changes its secret, the disk is full; what failed, and what status said
  nginx-tests DIR run nginx's own tests, of which DIR is a clone, with nginx and with the front and nginx's file
                  imported; what the front fails, and whether dev/xtask/src/nginx_tests/reasons.txt says why
  import-duel [--files N] [--seed S] [--server httpd|nginx] [--out DIR] [--jobs N] [--shrink N]
                  serve N random configurations a server, from seed S on, by their own server and, imported, by the
                  front; what the source refuses must not be served. Doors are shrunk and written into DIR
  instructions [--against COMMIT] [--profile release|dist] [--only TEXT]
                  count the instructions of a request of the front under callgrind, by protocol, number of header
                  fields and what is configured; with --against beside those of that commit, and fail if one is
                  more than 1 % up; with --only the rows alone whose name contains TEXT
  fuzz [SECONDS]  run each fuzz target for SECONDS (default 60); needs cargo-fuzz and nightly
";
