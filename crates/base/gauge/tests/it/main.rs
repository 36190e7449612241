//! Figures held against independent sources, on real processes.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod bytes;
mod cpu;
mod group;
mod jvm;
mod syscalls;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use catamaran_gauge::{Group, probe};

/// A group for the test `name`. It needs root.
fn group(name: &str) -> Group {
    Group::create(&format!("catamaran-gauge-{}-{name}", std::process::id())).unwrap()
}

/// A process that is told by lines to go on, and says what it does.
struct Talker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talker {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let output = BufReader::new(output);
        Self {
            child,
            input,
            output,
        }
    }

    fn tell(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).unwrap();
        self.input.write_all(b"\n").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fails unless `found` is `expected` ± 1 %.
fn within_a_percent(found: f64, expected: f64) {
    let off = (found - expected).abs() / expected;
    assert!(
        off <= 0.01,
        "{found} is {:.2} % off {expected}",
        off * 100.0
    );
}

#[test]
fn root_has_the_best_way_for_each_figure() {
    let name = format!("catamaran-gauge-{}-probe", std::process::id());
    for way in probe::ways(&name) {
        assert!(!way.is_short(), "{way:?}");
    }
}
