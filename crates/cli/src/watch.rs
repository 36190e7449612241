//! Watches the files of the configuration, so that the front reloads when they change.
//!
//! The files are looked at by `stat` once in a period, which also sees a change behind symbolic links: a ConfigMap of
//! Kubernetes is replaced by another link. A change is told when the files have stayed the same for one more period, or
//! at the latest after [`SETTLE_MAX`].
//!
//! A reload that failed is tried again after pauses that grow, because its cause may be none of these files: a
//! certificate that is not there yet, an address that another process still has.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catamaran_config::FileVersions;

/// The watched files, and what became of them. The thread that watches and the one that reloads share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedFiles(Arc<Mutex<WatchState>>);

#[derive(Debug, Default)]
struct WatchState {
    /// The files that were read last, with the versions from just before.
    read: Arc<FileVersions>,
    /// The reloads that failed since the last one that did not; `None`: there is none.
    failed: Option<FailedReloads>,
    /// Whether an event was sent of which nothing was heard yet. Until then no other is sent.
    is_told: bool,
}

#[derive(Clone, Copy, Debug)]
struct FailedReloads {
    count: u32,
    /// When the last one ended.
    last: Instant,
}

/// Why the configuration is to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// Files have changed.
    Changed,
    /// The last reload failed, and nothing has changed since.
    TryAgain,
}

impl WatchedFiles {
    /// Notes which files were read for a start or a reload, and whether that failed. They are watched from now on.
    pub(crate) fn note_read(&self, versions: FileVersions, has_failed: bool) {
        let mut state = self.lock();
        let failures = state.failed.map_or(0, |failed| failed.count);
        state.read = Arc::new(versions);
        state.failed = has_failed.then(|| FailedReloads {
            count: failures.saturating_add(1),
            last: now(),
        });
        state.is_told = false;
    }

    /// Notes that an event was dropped.
    pub(crate) fn note_dropped(&self) {
        self.lock().is_told = false;
    }

    /// Starts a thread that sends events until nobody receives them.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start<E>(&self, events: SyncSender<E>) -> io::Result<()>
    where
        E: From<WatchEvent> + Send + 'static,
    {
        let files = self.clone();
        let thread = std::thread::Builder::new().name("config-watch".to_owned());
        thread.spawn(move || {
            let mut watch = ChangeWatch::default();
            let mut pause = PERIOD;
            loop {
                std::thread::park_timeout(pause);
                let began = now();
                if let Some(event) = files.look(&mut watch) {
                    match events.try_send(event.into()) {
                        Ok(()) => {}
                        // It is found again.
                        Err(TrySendError::Full(_)) => files.note_dropped(),
                        Err(TrySendError::Disconnected(_)) => return,
                    }
                }
                // So that a look at very many files, or at slow ones, does not occupy a core.
                pause = PERIOD.max(began.elapsed() * PAUSE_SHARE);
            }
        })?;
        Ok(())
    }

    /// Looks at the files. An event that is returned counts as told.
    fn look(&self, watch: &mut ChangeWatch) -> Option<WatchEvent> {
        let (read, failed) = {
            let state = self.lock();
            if state.is_told {
                return None;
            }
            (Arc::clone(&state.read), state.failed)
        };
        // Without the lock, since a file system may not answer.
        let present = read.now();
        let event = watch.event(&read, present, failed, now());
        self.lock().is_told |= event.is_some();
        event
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailedReloads {
    /// When to try again.
    fn next(self) -> Instant {
        let doublings = self.count.saturating_sub(1).min(DOUBLINGS_MAX);
        self.last + AGAIN_MAX.min(AGAIN_MIN * 2_u32.pow(doublings))
    }
}

/// What was seen of a change that was not told yet.
#[derive(Debug, Default)]
struct ChangeWatch {
    /// The versions at the last look if they differed from those that were read, and when a look first found that.
    changed: Option<(FileVersions, Instant)>,
}

impl ChangeWatch {
    /// What follows from a look: files that differ from what was read and have settled, or the next attempt to reload.
    fn event(
        &mut self,
        read: &FileVersions,
        present: FileVersions,
        failed: Option<FailedReloads>,
        now: Instant,
    ) -> Option<WatchEvent> {
        if present == *read {
            self.changed = None;
            return failed
                .is_some_and(|failed| failed.next() <= now)
                .then_some(WatchEvent::TryAgain);
        }
        let (is_same, since) = match self.changed.take() {
            Some((seen, since)) => (seen == present, since),
            None => (false, now),
        };
        if is_same || now.saturating_duration_since(since) >= SETTLE_MAX {
            return Some(WatchEvent::Changed);
        }
        self.changed = Some((present, since));
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "files change in real time")]
fn now() -> Instant {
    Instant::now()
}

/// The shortest time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// How many times as long as a look the pause after it is at least.
const PAUSE_SHARE: u32 = 20;

/// How long files that keep changing are waited for.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// The pause after a failed reload, which doubles with each further one.
const AGAIN_MIN: Duration = Duration::from_secs(2);

/// The longest pause.
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// Enough doublings for the longest pause.
const DOUBLINGS_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::sync_channel;

    use catamaran_config::{ReadFiles, load_recorded};
    use tempfile::TempDir;

    use super::*;

    /// A directory with a configuration, and the versions of its files.
    struct Watched {
        directory: TempDir,
        watch: ChangeWatch,
        began: Instant,
    }

    impl Watched {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(
                directory.path().join("main.toml"),
                "include = \"*.d/a.toml\"\n",
            )
            .unwrap();
            Self {
                directory,
                watch: ChangeWatch::default(),
                began: now(),
            }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        /// The versions after the file was written once more.
        fn written(&self, text: &str) -> FileVersions {
            fs::write(self.at("main.toml"), text).unwrap();
            self.versions()
        }

        fn versions(&self) -> FileVersions {
            let mut files = ReadFiles::default();
            // It has no listener.
            load_recorded(&self.at("main.toml"), &mut files).unwrap_err();
            files.versions().clone()
        }

        /// What a look finds that long after the begin.
        fn look(
            &mut self,
            second: u64,
            read: &FileVersions,
            present: &FileVersions,
        ) -> Option<WatchEvent> {
            let now = self.began + Duration::from_secs(second);
            self.watch.event(read, present.clone(), None, now)
        }
    }

    #[test]
    fn a_change_is_told_when_it_has_settled() {
        let mut it = Watched::new();
        let (read, next, last) = (it.written("a"), it.written("bb"), it.written("ccc"));
        assert_eq!(it.look(0, &read, &read), None);
        assert_eq!(it.look(1, &read, &next), None, "it may go on");
        assert_eq!(it.look(2, &read, &last), None);
        assert_eq!(it.look(3, &read, &last), Some(WatchEvent::Changed));
        assert_eq!(it.look(4, &last, &last), None, "it was read");
        assert_eq!(it.look(5, &last, &next), None);
        assert_eq!(it.look(6, &last, &last), None, "it was taken back");
        assert_eq!(it.look(7, &last, &next), None, "it may go on");
    }

    #[test]
    fn files_that_never_settle_are_read_every_ten_seconds() {
        let mut it = Watched::new();
        let (mut read, mut text) = (it.written("a"), "a".to_owned());
        let mut told = Vec::new();
        for second in 1..=35 {
            text.push('a');
            let present = it.written(&text);
            if it.look(second, &read, &present).is_some() {
                told.push(second);
                read = present;
            }
        }
        assert_eq!(told, [11, 22, 33]);
    }

    #[test]
    fn a_failed_reload_is_tried_again_after_pauses_that_grow() {
        let mut it = Watched::new();
        let read = it.written("a");
        let mut failed = FailedReloads {
            count: 1,
            last: it.began,
        };
        let mut tried = Vec::new();
        for second in 0..130 {
            let now = it.began + Duration::from_secs(second);
            let event = it.watch.event(&read, read.clone(), Some(failed), now);
            if event == Some(WatchEvent::TryAgain) {
                tried.push(second);
                failed.count += 1;
                failed.last = now;
            }
        }
        assert_eq!(tried, [2, 6, 14, 30, 60, 90, 120]);
        // Files that are being changed are waited for.
        let next = it.written("bb");
        let late = it.began + Duration::from_secs(200);
        assert_eq!(it.watch.event(&read, next, Some(failed), late), None);
        failed.count = u32::MAX;
        assert_eq!(failed.next(), failed.last + AGAIN_MAX);
    }

    #[test]
    fn one_event_is_under_way_at_a_time() {
        let it = Watched::new();
        let files = WatchedFiles::default();
        let mut watch = ChangeWatch::default();
        files.note_read(it.written("a"), false);
        it.written("bb");
        assert_eq!(files.look(&mut watch), None);
        assert_eq!(files.look(&mut watch), Some(WatchEvent::Changed));
        it.written("ccc");
        for _ in 0..3 {
            assert_eq!(files.look(&mut watch), None, "nobody has handled it");
        }
        files.note_dropped();
        assert_eq!(files.look(&mut watch), None);
        assert_eq!(files.look(&mut watch), Some(WatchEvent::Changed));
        files.note_read(it.versions(), false);
        assert_eq!(files.look(&mut watch), None);
        assert_eq!(files.look(&mut watch), None);
    }

    #[test]
    fn the_thread_ends_when_nobody_listens() {
        let it = Watched::new();
        let files = WatchedFiles::default();
        files.note_read(it.written("a"), false);
        let (events, arrivals) = sync_channel::<WatchEvent>(1);
        files.start(events).unwrap();
        it.written("bb");
        let event = arrivals.recv_timeout(DEADLINE);
        assert_eq!(event, Ok(WatchEvent::Changed));
        let weak = Arc::downgrade(&files.0);
        files.note_dropped();
        drop((arrivals, files));
        let limit = now() + DEADLINE;
        while weak.strong_count() > 0 && now() < limit {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert_eq!(weak.strong_count(), 0);
    }

    #[test]
    fn a_link_to_another_directory_is_a_change() {
        let it = Watched::new();
        fs::remove_file(it.at("main.toml")).unwrap();
        for version in ["one", "two"] {
            fs::create_dir(it.at(version)).unwrap();
            fs::write(it.at(version).join("main.toml"), version).unwrap();
        }
        symlink("one", it.at("..data")).unwrap();
        symlink("..data/main.toml", it.at("main.toml")).unwrap();
        let before = it.versions();
        assert_eq!(before.now(), before);
        let swap = |target: &Path| {
            symlink(target, it.at("next")).unwrap();
            fs::rename(it.at("next"), it.at("..data")).unwrap();
        };
        swap(Path::new("two"));
        assert_ne!(before.now(), before);
        swap(Path::new("one"));
        assert_eq!(before.now(), before, "the same files as before");
    }

    const DEADLINE: Duration = Duration::from_secs(60);
}
