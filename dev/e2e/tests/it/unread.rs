//! Logs that nobody reads, that cannot be written, or whose reader has left: clients are served, the end
//! comes in time, and what is missing is counted.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::binary;
use catamaran_testkit::{Deadline, HttpClient, Peer, Process, Script, Signal};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

/// A front whose standard output and standard error go where the shell's words say, in a directory with
/// the FIFO `pipe`.
struct Unread {
    front: Process,
    /// The end that reads. It stays open.
    pipe: File,
    _backend: Peer,
}

impl Unread {
    fn start(redirections: &str) -> Self {
        let backend = Peer::start(Script::new().expect(1).send(b"GARBAGE").finish());
        let url = backend.tcp_address();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let config = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\npath = \"/good\"\nstatus = 204\n[[route]]\nupstream = \"app\"\n\
             [[upstream.app.backend]]\nurl = \"http://{url}\"\n\
             [admin]\naddress = \"unix:{}\"\n",
            at("admin").display()
        );
        std::fs::write(at("catamaran.toml"), config).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).unwrap();
        let pipe = open_fifo(&at("pipe"));
        let script = format!("exec \"$0\" serve --config catamaran.toml {redirections}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(binary().unwrap());
        command.current_dir(directory.path());
        let front = Process::spawn_in(&mut command, directory).unwrap();
        Self {
            front,
            pipe,
            _backend: backend,
        }
    }

    /// Where it listens, if that is said in the pipe.
    fn address(&mut self) -> SocketAddr {
        let line = self.read_line("listening on http://");
        line.rsplit_once("//").unwrap().1.parse().unwrap()
    }

    /// Reads from the pipe until there is a line with this.
    fn read_line(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        let line = || {
            let mut piece = [0; 4096];
            // An error means that the pipe is empty.
            let count = self.pipe.read(&mut piece).unwrap_or(0);
            read.extend_from_slice(&piece[..count]);
            let whole = &read[..read.iter().rposition(|&byte| byte == b'\n')?];
            let lines = String::from_utf8_lossy(whole);
            let line = lines.lines().find(|line| line.contains(text));
            line.map(str::to_owned)
        };
        Deadline::default().poll(text, line).unwrap()
    }

    /// A metric.
    fn metric(&self, name: &str) -> f64 {
        self.try_metric(name).unwrap()
    }

    /// A metric, over the admin socket; `None` as long as there is none.
    fn try_metric(&self, name: &str) -> Option<f64> {
        let socket = self.front.directory().join("admin");
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--unix-socket"])
            .arg(socket)
            .arg("http://localhost/metrics")
            .output()
            .unwrap();
        let page = String::from_utf8(output.stdout).unwrap();
        let mut values = page.lines().filter_map(|line| line.strip_prefix(name));
        values.next()?.trim().parse().ok()
    }

    fn wait_for(&self, name: &str) {
        let is = || self.try_metric(name).filter(|&value| value > 0.0);
        Deadline::default().poll(name, is).unwrap();
    }

    /// The end comes, and in order.
    fn ends(mut self) {
        self.front.signal(Signal::Terminate).unwrap();
        let status = self.front.wait(Deadline::default()).unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Opened for writing, too: that needs nobody at the other end (fifo(7)).
fn open_fifo(path: &Path) -> File {
    let flags = OFlags::NONBLOCK.bits().try_into().unwrap();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    options.open(path).unwrap()
}

/// The statuses of `count` requests on one connection.
fn ask(address: SocketAddr, path: &str, count: usize) -> Vec<u16> {
    let mut client = HttpClient::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut asked = || client.ask(&request).unwrap().status;
    (0..count).map(|_| asked()).collect()
}

fn good(address: SocketAddr) {
    assert_eq!(ask(address, "/good", 20), [204; 20]);
}

/// Has the front say more than a pipe and the queue hold, and then fail requests, each of which is told.
fn overflow(front: &mut Unread, address: SocketAddr) {
    let faulty = format!("{} = 1\n", "x".repeat(300_000));
    std::fs::write(front.front.directory().join("catamaran.toml"), faulty).unwrap();
    let refused = "catamaran_reloads_total{result=\"refused\"}";
    let mut reloads = 0.0;
    while front.metric("catamaran_own_log_lines_dropped_total") == 0.0 {
        front.front.signal(Signal::Hangup).unwrap();
        reloads += 1.0;
        assert!(reloads < 100.0, "the queue has a limit");
        let is_done = || (front.metric(refused) == reloads).then_some(());
        Deadline::default()
            .poll("a refused reload", is_done)
            .unwrap();
    }
    assert_eq!(ask(address, "/bad", 20), [502; 20]);
}

/// Alone, and in one pipe with the access log.
#[test]
fn an_unread_stderr_holds_up_neither_requests_nor_the_end() {
    for redirections in ["--access-log off 2>pipe", "--access-log - >pipe 2>&1"] {
        let mut front = Unread::start(redirections);
        let address = front.address();
        overflow(&mut front, address);
        good(address);
        front.ends();
    }
}

#[test]
fn what_was_dropped_is_told_once_lines_are_read_again() {
    let mut front = Unread::start("--access-log off 2>pipe");
    let address = front.address();
    overflow(&mut front, address);
    let told = front.read_line("lines of a log were dropped");
    assert!(told.contains("WARN"), "{told}");
    good(address);
    front.ends();
}

#[test]
fn an_unread_stdout_does_not_hold_up_the_end() {
    let front = Unread::start("--access-log - >pipe");
    let line = |line: &str| line.split_once("listening on http://")?.1.parse().ok();
    let address: SocketAddr = front.front.wait_for_line("an address", line).unwrap();
    let path = format!("/good/{}", "x".repeat(4000));
    // Three times as much as a pipe holds.
    assert_eq!(ask(address, &path, 50), [204; 50]);
    front.ends();
}

#[test]
fn a_reader_that_leaves_and_a_full_disk_stop_nothing_and_are_counted() {
    let lost = "catamaran_own_log_lines_lost_total";
    let mut front = Unread::start("--access-log off 2>pipe");
    let address = front.address();
    // The only reader leaves.
    front.pipe = File::open("/dev/null").unwrap();
    ask(address, "/bad", 3);
    front.wait_for(lost);
    good(address);
    front.ends();

    let front = Unread::start("--access-log off 2>/dev/full");
    front.wait_for(lost);
    front.ends();
}

#[test]
fn the_last_words_are_written_before_the_end() {
    let mut front = Unread::start("--access-log off 2>pipe");
    let address = front.address();
    ask(address, "/bad", 3);
    front.front.signal(Signal::Terminate).unwrap();
    let status = front.front.wait(Deadline::default()).unwrap();
    assert!(status.success(), "{status}");
    // What is not in the pipe when the process has ended never comes.
    front.read_line("draining");
}
