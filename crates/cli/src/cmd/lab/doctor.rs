//! `lab doctor`: says what this machine lacks for an experiment.

use catamaran_lab::experiment::{Eras, Form};
use catamaran_lab::{builtin, doctor};

use crate::cmd;
use crate::failure::Failure;
use crate::profile;

/// Say what this machine lacks for an experiment, and what to do; changes nothing
#[derive(clap::Args)]
pub(super) struct LabDoctorArgs {
    /// An experiment of `lab list`, or a file
    #[arg(value_name = "NAME|FILE")]
    experiment: String,

    /// Its published form
    #[arg(long)]
    published: bool,
}

pub(super) fn run(args: &LabDoctorArgs) -> Result<(), Failure> {
    let form = Form {
        is_published: args.published,
        eras: Eras::Both,
        ..Form::default()
    };
    let experiment = builtin::experiment(&args.experiment, form)
        .map_err(|report| Failure::of_report(&report))?;
    let catamaran = super::own_path()?;
    let space = format!("catamaran-lab.{}", std::process::id());
    let programs = doctor::programs(&catamaran, &[]);
    let checks = doctor::examine(&experiment, &programs, &space, profile::NAME)
        .map_err(|report| Failure::of_report(&report))?;
    cmd::doctor::print(&checks)?;
    cmd::doctor::judge(&checks)
}
