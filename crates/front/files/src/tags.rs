//! Entity tags of the content of files: digests that a thread makes, once for each version.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::HeaderValue;
use rustix::io::{Errno, pread};
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use crate::directory::Directory;
use crate::found::{FileContent, FileFacts, FoundFile, content_tag};
use crate::threads::{FileThreads, Waiter};

/// The tags of a directory's files, by version; `None` while a thread reads the file.
#[derive(Debug, Default)]
pub(crate) struct ContentTags(Mutex<HashMap<FileFacts, Option<HeaderValue>>>);

impl ContentTags {
    fn lock(&self) -> MutexGuard<'_, HashMap<FileFacts, Option<HeaderValue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of a version; `Err`: there is none yet, and whether the caller must make it.
    fn begin(&self, facts: FileFacts) -> Result<HeaderValue, IsMine> {
        let mut tags = self.lock();
        match tags.get(&facts) {
            Some(Some(tag)) => return Ok(tag.clone()),
            Some(None) => return Err(IsMine(false)),
            None => {}
        }
        if tags.len() >= TAGS_MAX {
            // Only those that are being made stay.
            tags.retain(|_, tag| tag.is_none());
        }
        tags.insert(facts, None);
        Err(IsMine(true))
    }

    /// Stores the tag that the caller of [`Self::begin`] made. `None`: it made none, and the next request may try again.
    fn end(&self, facts: &FileFacts, tag: Option<HeaderValue>) {
        let mut tags = self.lock();
        match tag {
            Some(tag) => drop(tags.insert(*facts, Some(tag))),
            None => drop(tags.remove(facts)),
        }
    }
}

struct IsMine(bool);

/// The task to make the tag of a file; dropping it ends the task.
#[derive(Debug)]
pub struct TagWork {
    directory: Arc<Directory>,
    facts: FileFacts,
    content: FileContent,
    tag: Option<HeaderValue>,
    /// The permit to read a large file, held until the task ends.
    _permit: Option<OwnedSemaphorePermit>,
}

impl TagWork {
    /// The task to do before a file is sent whose tag is that of its content; `None` if the tag exists, or the
    /// file needs none, or is too large. `None` also if another request is making it, or too many large files are
    /// being read: then the file is sent without a tag.
    #[must_use]
    pub fn of(directory: &Arc<Directory>, file: &FoundFile, threads: &FileThreads) -> Option<Self> {
        let (version, size) = (file.version(), file.facts().size);
        let is_wanted = version.facts.is_tagged_by_content(directory.config());
        if !is_wanted || size > TAGGED_MAX || version.content_tag.get().is_some() {
            return None;
        }
        match directory.tags.begin(version.facts) {
            Ok(tag) => {
                version.content_tag.set(tag).ok();
                None
            }
            Err(IsMine(false)) => None,
            Err(IsMine(true)) => {
                let mut work = Self {
                    directory: Arc::clone(directory),
                    facts: version.facts,
                    content: file.content.clone(),
                    tag: None,
                    _permit: None,
                };
                if size > SHORT_MAX {
                    // Without a permit the work is dropped, which lets another request make the tag.
                    work._permit = Some(threads.begin_long()?);
                }
                Some(work)
            }
        }
    }

    /// Reads the file and makes the tag, as long as the waiter waits for it. A file that is being changed gets no
    /// tag.
    pub fn run_blocking(mut self, waiter: &Waiter) {
        self.tag = match &self.content {
            FileContent::Memory(body) => content_tag(&Sha256::digest(&body.bytes)),
            FileContent::Open(fd) => {
                let digest = digest(fd, self.facts.size, waiter);
                // Checked afterwards, so that all bytes are known to be of one version.
                let is_one_version =
                    self.facts.hold(fd) && self.facts.is_settled(SystemTime::now());
                match digest {
                    Some(digest) if is_one_version => content_tag(&digest),
                    _ => None,
                }
            }
        };
    }
}

impl Drop for TagWork {
    fn drop(&mut self) {
        self.directory.tags.end(&self.facts, self.tag.take());
    }
}

/// The digest of a file of `size` bytes; `None` if it cannot be read, or the waiter has left. If the file grows
/// meanwhile, less than [`PIECE`] bytes more are read.
fn digest(fd: &OwnedFd, size: u64, waiter: &Waiter) -> Option<Vec<u8>> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        if waiter.has_left() {
            return None;
        }
        match pread(fd, &mut piece[..], offset) {
            Ok(0) => break,
            Ok(read) => {
                digest.update(&piece[..read]);
                offset += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(digest.finalize().to_vec())
}

/// The most versions whose tags a directory keeps.
const TAGS_MAX: usize = 4096;

/// The number of bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// The largest file, in bytes, whose tag is made from its content. The first request for a file of this size
/// waits about a second.
const TAGGED_MAX: u64 = 256 << 20;

/// The largest file in bytes that is read without the permit for large files.
const SHORT_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use catamaran_coding::AcceptedCodings;
    use catamaran_message::Fields;
    use catamaran_message::name::{ETAG, LAST_MODIFIED};
    use http::Method;

    use super::*;
    use crate::config::{EtagRule, FilesConfig};
    use crate::directory::FileQuery;
    use crate::found::Found;
    use crate::name::FileName;
    use crate::open::Access;
    use crate::response::FileResponse;

    fn find(directory: &Directory, path: &str) -> FoundFile {
        let query = FileQuery {
            name: FileName::new(path.as_bytes(), directory.config()).unwrap(),
            codings: AcceptedCodings::default(),
            ends_in_slash: false,
            wants_page: false,
        };
        let finding = directory.search(&query, Access::Blocking).unwrap();
        match finding.choose(&query).unwrap() {
            Found::File(file) => file,
            Found::Directory => panic!("{path}"),
        }
    }

    fn work(directory: &Arc<Directory>, file: &FoundFile) -> Option<TagWork> {
        TagWork::of(directory, file, &FileThreads::default())
    }

    /// Does the task while a waiter waits for it.
    fn run(work: TagWork) {
        let waits = Arc::new(());
        work.run_blocking(&Waiter::new(&waits));
    }

    /// Makes a file of this many zero bytes, with the time 1970.
    fn vast(top: &std::path::Path, name: &str, size: u64) {
        let file = fs::File::create(top.join(name)).unwrap();
        file.set_len(size).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }

    /// The tag of a response, and whether it has a date, after all tasks for it were done.
    fn validators(directory: &Arc<Directory>, path: &str) -> (Option<String>, bool) {
        let file = find(directory, path);
        if let Some(work) = work(directory, &file) {
            run(work);
        }
        assert!(work(directory, &file).is_none(), "it is done once");
        let asked = Fields::new();
        match FileResponse::new(&Method::GET, &asked, &file, directory.config()) {
            FileResponse::Send(sending) => {
                let tag = sending.headers.text_of(ETAG).map(str::to_owned);
                (tag, sending.headers.contains(LAST_MODIFIED))
            }
            other => panic!("{other:?}"),
        }
    }

    fn write(path: &std::path::Path, text: &str, seconds: u64) {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn a_tag_of_content_tells_versions_of_one_time_apart() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("page.html");
        let mut config = FilesConfig::new(top.path());
        let by_time = Arc::new(Directory::new(config.clone()));
        config.etag = EtagRule::Content;
        let by_content = Arc::new(Directory::new(config));
        // What `sha256sum` prints of `one` begins so.
        let one = "\"7692c3ad3540bb803c020b3aee66cd88\"".to_owned();
        write(&path, "one", 1_700_000_000);
        assert_eq!(
            validators(&by_content, "/page.html"),
            (Some(one.clone()), true)
        );
        assert_ne!(validators(&by_time, "/page.html").0, Some(one.clone()));
        write(&path, "two", 1_700_000_000);
        let (two, _) = validators(&by_content, "/page.html");
        assert!(two.is_some() && two != Some(one.clone()), "{two:?}");
        // Of the beginning of 1970 in any case, and without the date.
        for seconds in [0, 1] {
            write(&path, "one", seconds);
            assert_eq!(
                validators(&by_time, "/page.html"),
                (Some(one.clone()), false)
            );
        }
    }

    #[test]
    fn one_request_has_the_tag_made_and_the_others_have_none() {
        let top = tempfile::tempdir().unwrap();
        write(&top.path().join("page.html"), "one", 0);
        let directory = Arc::new(Directory::new(FilesConfig::new(top.path())));
        let file = find(&directory, "/page.html");
        let first = work(&directory, &file).unwrap();
        assert!(work(&directory, &file).is_none());
        assert_eq!(file.entity_tag(directory.config()), None);
        // Given up: the next one does it.
        drop(first);
        run(work(&directory, &file).unwrap());
        assert!(work(&directory, &file).is_none());
        assert!(file.entity_tag(directory.config()).is_some());
    }

    #[test]
    fn a_tag_is_given_up_with_the_client_that_waits_for_it() {
        let top = tempfile::tempdir().unwrap();
        vast(top.path(), "vast", TAGGED_MAX);
        let directory = Arc::new(Directory::new(FilesConfig::new(top.path())));
        let file = find(&directory, "/vast");
        let left = Waiter::new(&Arc::new(()));
        work(&directory, &file).unwrap().run_blocking(&left);
        assert_eq!(file.entity_tag(directory.config()), None);
        assert!(work(&directory, &file).is_some(), "the next one does it");
    }

    #[test]
    fn large_files_are_read_one_at_a_time_and_huge_ones_never() {
        let top = tempfile::tempdir().unwrap();
        let sizes = [
            ("one", TAGGED_MAX),
            ("two", SHORT_MAX + 1),
            ("short", SHORT_MAX),
            ("huge", TAGGED_MAX + 1),
        ];
        for (name, size) in sizes {
            vast(top.path(), name, size);
        }
        let directory = Arc::new(Directory::new(FilesConfig::new(top.path())));
        let threads = FileThreads::default();
        let work = |path| TagWork::of(&directory, &find(&directory, path), &threads);
        let first = work("/one").unwrap();
        assert!(work("/two").is_none() && work("/short").is_some() && work("/huge").is_none());
        drop(first);
        run(work("/two").unwrap());
        let (_other, two) = (work("/one").unwrap(), find(&directory, "/two"));
        assert!(TagWork::of(&directory, &two, &threads).is_none());
        assert!(two.entity_tag(directory.config()).is_some(), "it is known");
    }

    #[test]
    fn a_file_that_was_just_written_has_no_tag_yet() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("page.html"), "one").unwrap();
        let mut config = FilesConfig::new(top.path());
        config.etag = EtagRule::Content;
        let directory = Arc::new(Directory::new(config));
        let file = find(&directory, "/page.html");
        run(work(&directory, &file).unwrap());
        assert!(work(&directory, &file).is_some(), "it is tried again");
    }

    #[test]
    fn few_tags_are_kept() {
        let top = tempfile::tempdir().unwrap();
        write(&top.path().join("page.html"), "one", 0);
        let directory = Arc::new(Directory::new(FilesConfig::new(top.path())));
        let facts = *find(&directory, "/page.html").facts();
        for at in 0..TAGS_MAX as u64 + 10 {
            let mut facts = facts;
            facts.size = at;
            assert!(directory.tags.begin(facts).is_err());
            directory.tags.end(&facts, content_tag(b"0123456789abcdef"));
        }
        assert!(directory.tags.lock().len() <= 10);
    }
}
