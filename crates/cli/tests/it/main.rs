//! Tests of the built binary: what it prints, its exit codes, and what it does with signals.

mod addresses;
mod check;
mod doctor;
mod failover;
mod generate;
mod help;
mod lab;
mod notify;
mod running;
mod usage;

use std::io::Write as _;
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

/// The same with this text on standard input.
fn outcome_with(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut process = catamaran(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built binary starts");
    let mut stdin = process.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}
