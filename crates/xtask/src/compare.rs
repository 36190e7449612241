//! `cargo xtask compare`: what our front costs beside nginx, HAProxy and Apache's three ways, and our
//! connector beside Tomcat and nginx.
//!
//! All fronts run with one worker on one core, before the same application of our own; load and
//! application have the other core. Small on purpose: a first figure before there is a laboratory
//! with designed experiments. It must never favour ours: [`conf`] has every front's configuration.

pub(crate) mod bare;
mod bulk;
mod client;
mod conf;
mod connector;
mod contender;
mod idle;
pub(crate) mod options;
mod page;
mod series;
mod server;
mod table;
mod wrk;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use cargo_metadata::MetadataCommand;
use catamaran_gauge::system;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::contender::{Asking, Contender, Front, LOAD_CORE, Programs, Setting};
use self::options::{Mode, Options};
use crate::needs;
use crate::step::{Steps, cargo, program, say};

/// Installs, builds, starts everything, measures, and stops everything.
pub(crate) fn run(steps: &mut Steps, root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    steps.run("install what is compared", || {
        needs::install(&needs::of_comparisons())
    })?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => steps.run("build the binary", || build(root, "catamaran"))?,
    };
    let bare = match options.measures_bare() {
        true => steps.run("build what is bare", || build(root, "xtask"))?,
        false => PathBuf::new(),
    };
    let programs = Programs {
        ours: &binary,
        bare: &bare,
    };
    steps.run("compare", || compare(&options, programs))
}

fn build(root: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let release = ["build", "--release", "--quiet", "--package", package];
    cargo(root, &release).finish()?;
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    let target = metadata.context("cargo metadata")?.target_directory;
    Ok(target.join("release").join(package).into_std_path_buf())
}

fn compare(options: &Options, programs: Programs<'_>) -> anyhow::Result<()> {
    ensure!(
        system::cores()?.len() > LOAD_CORE,
        "this needs two cores: one for the front, one for load and backend"
    );
    raise_limit();
    // Whatever is started inherits the core; fronts are moved to theirs.
    let own = std::process::id().to_string();
    let core = LOAD_CORE.to_string();
    ensure!(
        program("taskset", &["--cpu-list", "--pid", &core, &own]).succeeds(),
        "taskset (package util-linux) cannot pin this process to core {core}"
    );
    for mode in &options.modes {
        match mode {
            Mode::Page | Mode::Idle => compare_fronts(*mode, Asking::Ahead, options, programs)?,
            Mode::Bulk => {
                for asking in [Asking::Ahead, Asking::OneByOne] {
                    compare_fronts(*mode, asking, options, programs)?;
                }
            }
            Mode::Connector => connector::run(options, programs)?,
            Mode::Crowd => connector::run_crowd(options, programs)?,
        }
    }
    Ok(())
}

/// Fresh processes, so that no measurement inherits the memory of another.
fn compare_fronts(
    mode: Mode,
    asking: Asking,
    options: &Options,
    programs: Programs<'_>,
) -> anyhow::Result<()> {
    let (_backend, backend) = contender::start_backend(programs.ours, asking)?;
    let setting = Setting {
        programs,
        access_log: options.access_log,
        connections: options.idle_connections,
        scale: options.scale,
    };
    let start = |contender: &Contender| contender.start(setting, backend);
    // What moves pages only says nothing of the rest.
    let contenders = options.contenders.iter();
    let contenders = contenders.filter(|it| mode == Mode::Page || **it != Contender::Bare);
    let contenders = contenders.filter(|it| asking == Asking::Ahead || it.is_asked());
    let fronts: Vec<Front> = contenders.map(start).collect::<Result<_, _>>()?;
    match mode {
        Mode::Page => page::run(&fronts, options.page_rounds, options.page_seconds),
        Mode::Idle => idle::run(&fronts, options.idle_connections, options.idle_seconds),
        _ => bulk::run(&fronts, asking, options.bulk_rounds, options.bulk_bytes),
    }
}

/// Thousands of idle connections are as many open files, here and in every front, which inherits
/// the limit.
fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        say(&format!("cannot raise the limit of open files: {error}"));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "polls processes that send no event"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
