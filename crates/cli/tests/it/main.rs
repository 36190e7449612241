//! Tests of the built binary: what it prints, its exit codes, and what it does with signals.

mod addresses;
mod check;
mod failover;
mod help;
mod lab;
mod notify;
mod running;
mod usage;

use std::process::{Command, Output, Stdio};

/// The binary with arguments, without input and without colour.
fn catamaran(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catamaran"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("COLUMNS");
    command
}

/// Runs to the end; the exit code, standard output and standard error.
fn outcome(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = catamaran(arguments)
        .output()
        .expect("the built binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}
