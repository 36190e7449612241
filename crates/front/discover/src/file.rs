//! Discovers members from a file that lists them, which is checked once a second.
//!
//! This module does not know the file's format: a function that is passed in reads it. Changes are noticed
//! by device, inode, size and time of modification, so a tool may replace the file by a rename or write it
//! in place.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::member::FoundMember;
use crate::merge::Answer;

/// Reads a file of members; `Err`: what is wrong with it, one fault a line.
pub type ReadMembers = fn(&Path) -> Result<Vec<FoundMember>, String>;

/// A file that lists members, and the function that reads it.
#[derive(Clone, Debug)]
pub struct FileSource {
    /// The path of the file.
    pub path: PathBuf,
    /// The function that reads the file.
    pub read: ReadMembers,
}

impl PartialEq for FileSource {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for FileSource {}

/// Identifies the version of a file by `stat`: device, inode, size, time of modification. `None`: there is
/// no file.
type Stamp = Option<(u64, u64, u64, (i64, i64))>;

impl FileSource {
    /// Checks the file once a second, and sends an answer if it changed; see [`crate::MemberSource::run`].
    pub(crate) async fn run(self, answers: mpsc::Sender<Answer>, ask_again: Arc<Notify>) {
        // `None`: the next check sends an answer in any case.
        let mut known: Option<Stamp> = None;
        loop {
            let (source, before) = (self.clone(), known);
            // A file system may be remote: the event loop must not wait for it.
            let checked = tokio::task::spawn_blocking(move || source.read_if_changed(before)).await;
            // Fails only if the event loop ends.
            let Ok((stamp, answer)) = checked else { return };
            known = Some(stamp);
            if let Some(answer) = answer
                && answers.send(answer).await.is_err()
            {
                return;
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                () = ask_again.notified() => known = None,
                () = answers.closed() => return,
            }
        }
    }

    /// Returns the file's stamp, and an answer if the stamp differs from `before`.
    fn read_if_changed(&self, before: Option<Stamp>) -> (Stamp, Option<Answer>) {
        let stamp = stamp(&self.path);
        if before == Some(stamp) {
            return (stamp, None);
        }
        (stamp, Some(self.ask()))
    }

    /// Reads the file once; a failure is an answer, too.
    pub(crate) fn ask(&self) -> Answer {
        match (self.read)(&self.path) {
            Ok(found) => Answer::members(found),
            Err(faults) => Answer::Failed(faults),
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    let modified = (file.mtime(), file.mtime_nsec());
    Some((file.dev(), file.ino(), file.size(), modified))
}

/// How often the file is checked.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::member::{Place, Speech};

    /// Reads a file in which each line is the name of a member.
    fn read(path: &Path) -> Result<Vec<FoundMember>, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let member = |name: &str| {
            let place = Place::Unix(PathBuf::from(name));
            FoundMember::new(name, place, Speech::Ajp)
        };
        Ok(text.lines().map(member).collect())
    }

    #[test]
    fn a_file_is_read_when_it_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("members");
        let source = FileSource {
            path: path.clone(),
            read,
        };
        let (missing, answer) = source.read_if_changed(None);
        assert!(missing.is_none() && matches!(answer, Some(Answer::Failed(_))));
        assert_eq!(
            source.read_if_changed(Some(missing)).1,
            None,
            "it is said once"
        );
        fs::write(&path, "a\nb\n").unwrap();
        let (stamp, answer) = source.read_if_changed(Some(missing));
        assert_eq!(answer, Some(Answer::members(read(&path).unwrap())));
        assert_eq!(source.read_if_changed(Some(stamp)).1, None);
        // Another file in its place, of the same size.
        fs::write(directory.path().join("next"), "a\nc\n").unwrap();
        fs::rename(directory.path().join("next"), &path).unwrap();
        let (_, answer) = source.read_if_changed(Some(stamp));
        assert_eq!(answer, Some(Answer::members(read(&path).unwrap())));
        assert!(
            source.read_if_changed(None).1.is_some(),
            "asked again, it is read again"
        );
    }

    #[tokio::test]
    async fn answers_come_at_the_start_after_a_change_and_when_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("members");
        fs::write(&path, "a\n").unwrap();
        let source = FileSource {
            path: path.clone(),
            read,
        };
        let (send, mut answers) = mpsc::channel(1);
        let ask_again = Arc::new(Notify::new());
        let running = tokio::spawn(source.run(send, Arc::clone(&ask_again)));
        let names = |answer: Option<Answer>| match answer {
            Some(Answer::Members { found, .. }) => {
                found.into_iter().map(|it| it.name).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(names(answers.recv().await), ["a"]);
        // All of it at once: a file that is written in place is empty at first.
        fs::write(directory.path().join("next"), "a\nbb\n").unwrap();
        fs::rename(directory.path().join("next"), &path).unwrap();
        assert_eq!(names(answers.recv().await), ["a", "bb"]);
        ask_again.notify_one();
        assert_eq!(names(answers.recv().await), ["a", "bb"]);
        drop(answers);
        running.await.unwrap();
    }
}
