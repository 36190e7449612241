//! The operator's program that puts records of challenges dns-01 into the DNS, and takes them out (RFC 8555, section 8.4).

use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::time::{Instant, sleep};

use super::store::{ChallengeRecord, RecordFile, StoreLock};

/// A record in the DNS, which is taken out when this is dropped, unless answers are left to the process that orders next.
#[derive(Debug)]
pub(super) struct PresentedRecord<'a> {
    hook: &'a [String],
    /// `None`: it is being taken out.
    stored: Option<RecordFile>,
    stays: Arc<AtomicBool>,
}

impl<'a> PresentedRecord<'a> {
    /// Has the program put a TXT record into the DNS. When it ends well, everybody must see the record. `stays`: whether
    /// answers are left.
    ///
    /// # Errors
    /// The program cannot be run, says no, or has not ended within [`HOOK_MAX`].
    pub(super) async fn present(
        hook: &'a [String],
        stored: RecordFile,
        stays: Arc<AtomicBool>,
    ) -> io::Result<PresentedRecord<'a>> {
        let started = HookRun::start(hook, "present", &stored.record, HOOK_MAX);
        // A program that was not run has put nothing into the DNS.
        let mut run = started.inspect_err(|_| stored.forget())?;
        // Whatever comes of it, what it has begun is taken back.
        let presented = Self {
            hook,
            stored: Some(stored),
            stays,
        };
        loop {
            if run.has_ended()? {
                return Ok(presented);
            }
            sleep(LOOK).await;
        }
    }
}

impl Drop for PresentedRecord<'_> {
    fn drop(&mut self) {
        if !self.stays.load(Ordering::Relaxed) {
            take_out(self.hook, self.stored.take().into_iter().collect(), None);
        }
    }
}

/// Has the program take records out of the DNS, one after the other, on a thread for that alone: neither a drain nor
/// another name waits for it. A record that stays is stored for the next start. `lock`: the one of their name, which is
/// given back at the end; `None`: this process has it anyway.
pub(crate) fn take_out(hook: &[String], records: Vec<RecordFile>, lock: Option<StoreLock>) {
    let hook = hook.to_vec();
    let clean = move || {
        let _lock = lock;
        for stored in records {
            match clean_up(&hook, &stored.record) {
                Ok(()) => stored.forget(),
                Err(error) => say_it_stays(&error),
            }
        }
    };
    let builder = thread::Builder::new().name("dns-hook".to_owned());
    if let Err(error) = builder.spawn(clean) {
        say_it_stays(&error);
    }
}

fn say_it_stays(error: &io::Error) {
    tracing::error!(%error, "a record of a challenge stays in the DNS until the next start");
}

fn clean_up(hook: &[String], record: &ChallengeRecord) -> io::Result<()> {
    let mut run = HookRun::start(hook, "cleanup", record, HOOK_MAX)?;
    while !run.has_ended()? {
        thread::park_timeout(LOOK);
    }
    Ok(())
}

/// The program while it runs. It is killed, with what it has started, if it is dropped before its end.
#[derive(Debug)]
struct HookRun {
    /// `None`: it has ended, or is left to a thread that waits for its end.
    child: Option<Child>,
    /// What the program prints.
    output: PipeReader,
    /// The beginning of that.
    said: Vec<u8>,
    end: Instant,
    limit: Duration,
}

impl HookRun {
    /// Starts the program without a shell and without an environment.
    fn start(
        hook: &[String],
        verb: &str,
        record: &ChallengeRecord,
        limit: Duration,
    ) -> io::Result<Self> {
        let Some((program, first)) = hook.split_first() else {
            return Err(io::Error::other("no `dns_hook` is configured"));
        };
        let (output, input) = io::pipe()?;
        fcntl_setfl(&output, OFlags::NONBLOCK)?;
        let child = Command::new(program)
            .args(first)
            .args([verb, &record.name, &record.value])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input)
            .process_group(0)
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
        Ok(Self {
            child: Some(child),
            output,
            said: Vec::new(),
            end: Instant::now() + limit,
            limit,
        })
    }

    /// Whether the program has ended, and well. What it has left in the background is killed then.
    ///
    /// # Errors
    /// It ended with another code than 0, or has run for too long.
    fn has_ended(&mut self) -> io::Result<bool> {
        let Some(child) = &mut self.child else {
            return Ok(true);
        };
        let status = if has_ended(child)? {
            // Until it is waited for, its group is no other's. What another user runs cannot be killed.
            kill_group(child).ok();
            Some(child.wait()?)
        } else {
            None
        };
        self.read_output();
        match status {
            Some(status) => {
                self.child = None;
                self.outcome(status).map(|()| true)
            }
            None if Instant::now() >= self.end => {
                let text = format!("`dns_hook` has not ended within {:?}", self.limit);
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            None => Ok(false),
        }
    }

    /// Reads what the program has printed, and keeps the beginning. One that prints without end waits for the next look.
    fn read_output(&mut self) {
        let mut piece = [0; 4096];
        for _ in 0..READS_MAX {
            let Ok(count @ 1..) = self.output.read(&mut piece) else {
                return;
            };
            let room = SAID_MAX.saturating_sub(self.said.len());
            self.said.extend_from_slice(&piece[..count.min(room)]);
        }
    }

    fn outcome(&self, status: ExitStatus) -> io::Result<()> {
        if status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&self.said);
        let text = format!(
            "`dns_hook` ended with {status}: {}",
            said.trim().escape_debug()
        );
        Err(io::Error::other(text))
    }
}

impl Drop for HookRun {
    /// A program of another user, such as one that sudo started, cannot be killed: so nothing waits for its end here.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // It may have left its group.
        let killed = kill_group(&child).or_else(|_| child.kill());
        if let Err(error) = killed {
            tracing::error!(process = child.id(), %error, "`dns_hook` cannot be killed, and runs on");
        }
        let reap = move || {
            child.wait().ok();
        };
        // Without the thread it stays a zombie until this process ends.
        thread::Builder::new()
            .name("dns-hook".to_owned())
            .spawn(reap)
            .ok();
    }
}

/// Whether a program has ended. It stays to be waited for.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid_of(child)?), options)?.is_some())
}

/// Kills a program that was not waited for yet, with all that it has started in its group.
fn kill_group(child: &Child) -> io::Result<()> {
    Ok(kill_process_group(pid_of(child)?, Signal::KILL)?)
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let raw = i32::try_from(child.id()).ok();
    let pid = raw.and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the process has no id"))
}

/// How long the program may run.
const HOOK_MAX: Duration = Duration::from_secs(120);

/// How often is looked whether the program has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The most bytes that are shown of what the program said.
const SAID_MAX: usize = 500;

/// The most pieces that are read of it at each look.
const READS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;

    use catamaran_testkit::Deadline;

    use super::*;
    use crate::tls::acme::owner::Rivals;
    use crate::tls::acme::store::Store;
    use crate::tls::acme::test_config;

    /// A hook of these lines of a shell, with a first argument. The shell reads the file: a file that was just written may
    /// be open for writing in a child of another test, and cannot be run then.
    fn hook(folder: &Path, lines: &str) -> Vec<String> {
        let path = folder.join("hook");
        fs::write(&path, format!("{lines}\n")).unwrap();
        ["/bin/sh", &path.display().to_string(), "first"]
            .map(str::to_owned)
            .to_vec()
    }

    async fn present(hook: &[String]) -> io::Result<()> {
        present_value(hook, "v", false).await
    }

    /// Presents a record, and drops it when answers are left or not.
    async fn present_value(hook: &[String], value: &str, stays: bool) -> io::Result<()> {
        let folder = tempfile::tempdir().unwrap();
        present_in(&store(folder.path()), hook, value, stays).await
    }

    async fn present_in(
        store: &Store,
        hook: &[String],
        value: &str,
        stays: bool,
    ) -> io::Result<()> {
        let stored = store.keep_record("a.test", record(value));
        let stays = Arc::new(AtomicBool::new(stays));
        let presented = PresentedRecord::present(hook, stored, stays);
        presented.await.map(drop)
    }

    fn store(folder: &Path) -> Store {
        Store::new(&test_config(folder), &Arc::default())
    }

    fn record(value: &str) -> ChallengeRecord {
        ChallengeRecord {
            name: "_acme-challenge.a.test".to_owned(),
            value: value.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_record_is_stored_until_it_is_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        drop(store.lock("a.test", &mut Rivals::default()).unwrap());
        let values = || {
            let records = store.records("a.test").unwrap();
            let mut values: Vec<_> = records.into_iter().map(|it| it.record.value).collect();
            values.sort();
            values
        };
        let good = hook(folder.path(), "exit 0");
        let away = vec!["/nonexistent/hook".to_owned()];
        for (value, stays) in [("left", true), ("taken", false)] {
            present_in(&store, &good, value, stays).await.unwrap();
        }
        let is_one = || (values() == ["left"]).then_some(());
        Deadline::default().poll("the cleanup", is_one).unwrap();
        // What cannot be taken out is there for the next start.
        take_out(&away, store.records("a.test").unwrap(), None);
        assert!(present_in(&store, &away, "other", false).await.is_err());
        assert_eq!(values(), ["left"]);
        let lock = store.lock("a.test", &mut Rivals::default()).unwrap();
        take_out(&good, store.records("a.test").unwrap(), lock);
        let are_none = || values().is_empty().then_some(());
        Deadline::default().poll("the cleanup", are_none).unwrap();
        let is_free = || store.lock("a.test", &mut Rivals::default()).unwrap();
        Deadline::default().poll("the lock", is_free).unwrap();
    }

    #[tokio::test]
    async fn a_record_stays_for_the_process_that_orders_next() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let hook = hook(
            folder.path(),
            &format!("echo \"$2 $4\" >> {}", said.display()),
        );
        present_value(&hook, "one", true).await.unwrap();
        present_value(&hook, "two", false).await.unwrap();
        let cleaned = || {
            let text = fs::read_to_string(&said).unwrap_or_default();
            text.ends_with("cleanup two\n").then_some(text)
        };
        let text = Deadline::default().poll("the cleanup", cleaned).unwrap();
        assert_eq!(text, "present one\npresent two\ncleanup two\n");
    }

    #[tokio::test]
    async fn the_program_gets_its_arguments_and_no_environment() {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let lines = format!(
            "echo \"$*\" >> {0}; env | grep -c CARGO >> {0}; exit 0",
            said.display()
        );
        present(&hook(folder.path(), &lines)).await.unwrap();
        let expected = ["present", "cleanup"]
            .map(|verb| format!("first {verb} _acme-challenge.a.test v\n0\n"));
        let is_whole = || {
            let text = fs::read_to_string(&said).unwrap_or_default();
            (text == expected.concat()).then_some(())
        };
        Deadline::default()
            .poll("present and cleanup", is_whole)
            .unwrap();
    }

    #[tokio::test]
    async fn what_the_program_says_of_its_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let failed = present(&hook(folder.path(), "echo no such zone >&2; exit 3")).await;
        let said = failed.unwrap_err().to_string();
        assert_eq!(said, "`dns_hook` ended with exit status: 3: no such zone");
        let missing = present(&["/nonexistent/hook".to_owned()])
            .await
            .unwrap_err();
        assert!(
            missing.to_string().starts_with("/nonexistent/hook: "),
            "{missing}"
        );
    }

    /// A program that runs, and holds a pipe open with all that it starts until they end.
    struct PipeHook {
        folder: tempfile::TempDir,
        pipe: fs::File,
        run: HookRun,
    }

    impl PipeHook {
        /// Runs the lines after the program holds the pipe open.
        fn start(lines: &str, limit: Duration) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let fifo = folder.path().join("fifo");
            let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
            assert!(made.success());
            let lines = format!("exec 3<>{}; echo up >&3; {lines}", fifo.display());
            let hook = hook(folder.path(), &lines);
            let mut options = fs::OpenOptions::new();
            let mut pipe = options.read(true).write(true).open(&fifo).unwrap();
            let run = HookRun::start(&hook, "present", &record("v"), limit).unwrap();
            let mut up = [0; 3];
            pipe.read_exact(&mut up).unwrap();
            Self { folder, pipe, run }
        }

        /// Waits until nobody has the pipe open.
        fn wait_for_all(self) {
            let fifo = self.folder.path().join("fifo");
            drop((self.run, self.pipe));
            // A writer that does not wait is refused then.
            let mut options = fs::OpenOptions::new();
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
            options.write(true).custom_flags(flags);
            let is_alone = || options.open(&fifo).is_err().then_some(());
            let alone = Deadline::default().poll("the end of all that it has started", is_alone);
            alone.unwrap();
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_has_started() {
        let mut hook = PipeHook::start("sleep 1000", Duration::ZERO);
        let error = hook.run.has_ended().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        hook.wait_for_all();
    }

    #[test]
    fn what_a_program_leaves_in_the_background_is_killed() {
        let mut hook = PipeHook::start("sleep 1000 & exit 0", HOOK_MAX);
        let has_ended = || hook.run.has_ended().unwrap().then_some(());
        Deadline::default()
            .poll("the end of the program", has_ended)
            .unwrap();
        hook.wait_for_all();
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended_by_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let hook = hook(folder.path(), "yes no end");
        let mut run = HookRun::start(&hook, "present", &record("v"), HOOK_MAX).unwrap();
        let is_full = || {
            assert!(!run.has_ended().unwrap(), "it prints without end");
            (run.said.len() == SAID_MAX).then_some(())
        };
        let full = Deadline::default().poll("the beginning of what it prints", is_full);
        full.unwrap();
        run.end = Instant::now();
        let error = run.has_ended().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(run.said.starts_with(b"no end\n") && run.said.len() == SAID_MAX);
    }
}
