//! SIGUSR2: a new process takes the listeners over, or the old one goes on.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use catamaran_e2e::{Front, binary};
use catamaran_testkit::{Address, Deadline, Process, Signal, signal_process, write_script};
use rustix::process::{Pid, getpgid};

use crate::reload::{application, ask_until, file, nth_line};

/// Has the process `id` upgraded; gives the id of the one that took over.
pub(crate) fn upgrade(process: &Process, id: u32, nth: usize) -> u32 {
    signal_process(id, Signal::User2).unwrap();
    let said = nth_line(process, "another process has taken over", nth);
    let (_, id) = said.rsplit_once("process=").unwrap();
    id.parse().unwrap()
}

#[test]
fn three_upgrades_under_load_fail_no_request() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    let first = front.process().id();
    let address = Address::from(front.address());
    let stopped = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        for keep_alive in [true, true, false] {
            let (stopped, address) = (&stopped, &address);
            scope.spawn(move || ask_until(stopped, address, keep_alive));
        }
        let last = (1..=3).fold(first, |id, nth| upgrade(front.process(), id, nth));
        stopped.store(true, Ordering::Relaxed);
        last
    });
    assert_ne!(last, first);
    // A terminal reaches it, as it did the first.
    let group = |id: u32| getpgid(Pid::from_raw(id.cast_signed())).ok();
    let of_first = Pid::from_raw(first.cast_signed());
    Deadline::default()
        .poll("the last one to be of the group of the first", || {
            (group(last) == of_first).then_some(())
        })
        .unwrap();
    let ended = || front.process().try_wait().unwrap();
    let status = Deadline::default().poll("the first to end", ended).unwrap();
    assert_eq!(status.code(), Some(0), "{}", front.process().stderr());
    // The last one has the listeners to itself, and is the one to stop.
    assert_eq!(front.get("/").unwrap().status, 200);
    signal_process(last, Signal::Terminate).unwrap();
    Deadline::default()
        .poll("connections to be refused", || {
            front.connect().is_err().then_some(())
        })
        .unwrap();
}

/// What the new version is started by may have started more than hangs.
#[test]
fn a_new_process_that_hangs_is_ended_with_its_children() {
    let (_application, url) = application();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (program, children) = (at("catamaran"), at("children"));
    symlink(binary().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--upstream", &url]);
    let mut front = Process::spawn_in(&mut command, tempfile::tempdir().unwrap()).unwrap();
    nth_line(&front, "listening on", 1);
    // The second ends before its child, which holds what it got.
    for (nth, last) in [(1, "wait"), (2, "exit 0")] {
        let script = format!(
            "exec 3<&0\nsleep 1000 <&3 &\necho $! >> {}\n{last}\n",
            children.display()
        );
        write_script(&at("script"), &script).unwrap();
        fs::rename(at("script"), &program).unwrap();
        front.signal(Signal::User2).unwrap();
        let said = nth_line(
            &front,
            "cannot upgrade: the new process was not ready within",
            nth,
        );
        assert!(said.contains("this process goes on"), "{said}");
        let children = fs::read_to_string(&children).unwrap();
        let child = children.lines().last().unwrap();
        // A killed process ends when it gets a turn. Of one that is dead and not yet buried the line is empty.
        let is_gone = || {
            let line = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            line.is_empty().then_some(())
        };
        Deadline::default()
            .poll("its child to end", is_gone)
            .unwrap();
    }
    front.signal(Signal::Terminate).unwrap();
    assert_eq!(front.wait(Deadline::default()).unwrap().code(), Some(0));
}

#[test]
fn when_the_new_process_fails_the_old_one_goes_on() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    let path = front.directory().join("catamaran.toml");
    fs::write(path, "nonsense").unwrap();
    for nth in 1..=2 {
        front.process().signal(Signal::User2).unwrap();
        let said = nth_line(
            front.process(),
            "cannot upgrade: the new process ended",
            nth,
        );
        assert!(said.contains("exit status: 1"), "{said}");
        for _ in 0..20 {
            assert_eq!(front.get("/").unwrap().status, 200);
        }
    }
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0));
}
