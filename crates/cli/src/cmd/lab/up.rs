//! `lab up`: starts one cell of an experiment so that it can be looked at.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use catamaran_lab::builtin;
use catamaran_lab::experiment::{Eras, Form};

use super::needs;
use crate::cmd::look::{self, LookSubject};
use crate::failure::Failure;

/// Start the servers of one cell, and print their addresses and how to look at them, until ctrl-C
#[derive(clap::Args)]
pub(super) struct LabUpArgs {
    /// An experiment of `lab list`, or a file
    #[arg(value_name = "NAME|FILE")]
    experiment: String,

    /// A cell of its published form, with today's software or, at `era=then`, with the test's own
    #[arg(long)]
    published: bool,

    /// Its levels, such as front=mod_jk,clients=100; factors that are not named have the control's
    #[arg(
        long,
        value_name = "FACTOR=LEVEL,…",
        default_value = "",
        hide_default_value = true
    )]
    cell: String,

    /// Drive the experiment's load
    #[arg(long)]
    load: bool,

    /// A module of a server that is in no package, such as nginx_ajp=FILE.so: there are its levels, too
    #[arg(long, value_name = "NAME=FILE", value_parser = needs::module)]
    module: Vec<(String, PathBuf)>,

    /// The JDK for servers of published tests: a folder with bin/java [default: Debian's]
    #[arg(long, value_name = "DIR", value_parser = needs::jdk)]
    jdk: Option<PathBuf>,

    /// Install missing packages, and fetch containers with Maven
    #[arg(long)]
    install: bool,

    /// End after so long, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = catamaran_units::parse_duration)]
    time: Option<Duration>,
}

pub(super) fn run(args: &LabUpArgs) -> Result<ExitCode, Failure> {
    let form = Form {
        is_published: args.published,
        modules: needs::names(&args.module),
        eras: Eras::Both,
        ..Form::default()
    };
    let whole = builtin::experiment(&args.experiment, form)
        .map_err(|report| Failure::of_report(&report))?;
    let cell = whole
        .choose(&args.cell)
        .map_err(|fault| Failure::Usage(format!("--cell: {fault}")))?;
    let experiment = whole.only(cell);
    let given = needs::with_jdk(&args.module, args.jdk.as_ref());
    needs::check(&experiment, &given, args.install)?;
    look::show(LookSubject {
        experiment: &experiment,
        programs: needs::programs(&given)?,
        is_shared: false,
        is_driven: args.load,
        time: args.time,
    })
}
