use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Whether the process has ended; a zombie has, whose parent has not asked yet.
fn gone(id: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return true;
    };
    // The name before the state is in parentheses and may hold any character.
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    matches!(state, None | Some("Z" | "X"))
}

#[test]
fn captures_output_and_status() {
    let mut process = Process::spawn(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(
        (process.stdout().as_str(), process.stderr().as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn finds_a_line_while_the_child_runs() {
    let process = Process::spawn(&mut shell("echo port 17; cat /dev/zero >/dev/null")).unwrap();
    let port = process.wait_for_line("a port", |line| {
        line.strip_prefix("port ")?.parse::<u16>().ok()
    });
    assert_eq!(port.unwrap(), 17);
}

#[test]
fn a_missing_line_is_an_error_with_the_output() {
    let process = Process::spawn(&mut shell("echo something else")).unwrap();
    let error = process.wait_for_line("a port", |_| None::<()>).unwrap_err();
    assert!(format!("{error:?}").contains("something else"), "{error:?}");
}

#[test]
fn signals_reach_the_process() {
    let script = "trap 'kill $!; exit 7' TERM; tail -f /dev/null & echo ready; wait";
    let mut process = Process::spawn(&mut shell(script)).unwrap();
    process
        .wait_for_line("ready", |line| (line == "ready").then_some(()))
        .unwrap();
    process.signal(Signal::Terminate).unwrap();
    assert_eq!(process.wait(Deadline::default()).unwrap().code(), Some(7));
}

#[test]
fn dropping_kills_the_group_and_removes_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let script = "tail -f /dev/null & echo child $!; wait";
    let process = Process::spawn_in(&mut shell(script), directory).unwrap();
    let grandchild: String = process
        .wait_for_line("a child", |line| {
            Some(line.strip_prefix("child ")?.to_owned())
        })
        .unwrap();
    assert!(!gone(&grandchild));
    drop(process);
    assert!(!path.exists());
    Deadline::default()
        .poll("the grandchild's end", || gone(&grandchild).then_some(()))
        .unwrap();
}

#[test]
fn the_guard_acts_when_its_pipe_closes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let mut process = Process::spawn_in(&mut shell("tail -f /dev/null"), directory).unwrap();
    // What the end of the test binary does.
    drop(process.guard.stdin.take());
    let status = process.wait(Deadline::default()).unwrap();
    assert!(!status.success());
    Deadline::default()
        .poll("the directory's removal", || (!path.exists()).then_some(()))
        .unwrap();
}

#[test]
fn a_missing_program_is_named() {
    let error = Process::spawn(&mut Command::new("no-such-program")).unwrap_err();
    assert!(error.to_string().contains("no-such-program"));
}
