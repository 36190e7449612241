//! A request for a file: looks it up, and serves it, answers, or leaves the request to the upstream.
//!
//! What the kernel has in memory is had on the event loop. Everything else waits on a thread, while the
//! front notices if the client leaves.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use catamaran_coding::AcceptedCodings;
use catamaran_files::{
    Access, Directory, FileBody, FileBodyError, FileName, FileQuery, FileResponse, FileSending,
    FindError, Found, FoundFile, NameFault, OpenError,
};
use catamaran_message::RequestHead;
use catamaran_upstream::Culprit;
use http::header::{ACCEPT, ALLOW};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

use crate::counters::{FileResult, Reason};
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::{Failure, Stopped};
use crate::exchange::source::file::FileSource;
use crate::exchange::source::{Answer, Source, SourceError};
use crate::exchange::verdict::{FilesOrigin, FilesRequest, OwnAnswer, OwnContent};
use crate::exchange::{After, Exchange, unless_left};

/// A file that is to be sent.
struct Opened {
    file: FoundFile,
    sending: FileSending,
    /// `None` for a HEAD.
    body: Option<FileBody>,
}

/// What a request for a file comes to.
enum FileEnd {
    Send(Box<Opened>),
    /// The client has it.
    NotModified(HeaderMap),
    /// A page of this status with these fields, and the reason for the log.
    Page(StatusCode, HeaderMap, &'static str),
    /// The client is to ask with a slash at the end.
    Slash,
    /// Somebody else may have it. Alone it is this failure.
    Missing(Failure),
    /// It cannot be had, whoever else there is.
    Failed(Failure),
}

impl<'a> Exchange<'a> {
    /// Serves a file, or does what is done without it.
    pub(super) async fn serve_files(
        &mut self,
        down: &mut Downstream<'_>,
        request: FilesRequest<'a>,
    ) -> After {
        let version = request.head().version;
        let reason = |token| Reason::new(Culprit::Client, token);
        match self.find_file(down, &request).await {
            FileEnd::Send(opened) => self.send_file(down, version, *opened).await,
            FileEnd::NotModified(fields) => {
                self.send(down, version, Answer::not_modified(fields)).await
            }
            FileEnd::Page(status, fields, token) => {
                self.scene.worker.count(reason(token));
                self.reason = Some(reason(token));
                let answer = self.page(status).with(fields);
                self.send(down, version, answer).await
            }
            FileEnd::Slash => {
                let content = match location(&request) {
                    Some(location) => {
                        OwnContent::Redirect(StatusCode::PERMANENT_REDIRECT, location)
                    }
                    None => OwnContent::Page(StatusCode::NOT_FOUND),
                };
                let own = OwnAnswer {
                    version,
                    content,
                    reason: reason("file-directory"),
                    guard: None,
                };
                self.answer_itself(down, own).await
            }
            FileEnd::Failed(failure) => {
                self.scene.worker.counters().file(FileResult::Failed);
                self.fail_file(down, version, failure).await
            }
            FileEnd::Missing(failure) => {
                self.scene.worker.counters().file(FileResult::Missing);
                match request.origin {
                    FilesOrigin::Alone(..) => self.fail_file(down, version, failure).await,
                    FilesOrigin::Before(forward) => {
                        let (upstream, outgoing) = self.forward(forward);
                        match Box::pin(self.run(down, upstream, outgoing)).await {
                            Ok(after) => after,
                            Err(Stopped::Failed(failure)) => self.fail(down, failure).await,
                            // Only what decides says so, and it has decided.
                            Err(Stopped::Answered(_) | Stopped::Files(_)) => After::Cut,
                        }
                    }
                }
            }
        }
    }

    /// Answers a request whose file cannot be had, and keeps its connection.
    async fn fail_file(
        &mut self,
        down: &mut Downstream<'_>,
        version: Version,
        failure: Failure,
    ) -> After {
        if failure.client_gone {
            return self.fail(down, failure).await;
        }
        let own = OwnAnswer {
            version,
            content: OwnContent::Page(failure.status),
            reason: failure.reason,
            guard: None,
        };
        self.answer_itself(down, own).await
    }

    /// Looks the file up, and decides what is sent of it.
    async fn find_file(
        &mut self,
        down: &mut Downstream<'_>,
        request: &FilesRequest<'a>,
    ) -> FileEnd {
        let query = match query(request) {
            Ok(query) => query,
            Err(fault) => {
                let token = match fault {
                    NameFault::Separator | NameFault::TooLong => "file-name",
                    NameFault::Hidden => "file-hidden",
                };
                return FileEnd::Missing(Failure::client(StatusCode::NOT_FOUND, token));
            }
        };
        let mut attempts_left = CHANGES_MAX;
        loop {
            let mut file = match self.look_up(down, request.directory, &query).await {
                Ok(Found::File(file)) => file,
                Ok(Found::Directory) => return FileEnd::Slash,
                Err(end) => return end,
            };
            self.note_sibling(request, &file);
            let passage = self.decided.passage.as_deref();
            let offer = passage.and_then(|passage| passage.compression.as_ref());
            if offer.is_some_and(|offer| offer.covers(file.media_type())) {
                file.may_be_coded();
            }
            let (head, config) = (request.head(), request.directory.config());
            let sending = match FileResponse::new(&head.method, &head.headers, &file, config) {
                FileResponse::Send(sending) => sending,
                FileResponse::NotModified(fields) => return FileEnd::NotModified(fields),
                FileResponse::Failed(fields) => {
                    let status = StatusCode::PRECONDITION_FAILED;
                    return FileEnd::Page(status, fields, "file-precondition");
                }
                FileResponse::Unsatisfiable(fields) => {
                    let status = StatusCode::RANGE_NOT_SATISFIABLE;
                    return FileEnd::Page(status, fields, "file-range");
                }
            };
            let mut opened = Box::new(Opened {
                file,
                sending,
                body: None,
            });
            if head.method == Method::HEAD {
                return FileEnd::Send(opened);
            }
            let threads = &self.scene.worker.files().threads;
            let mut body = FileBody::new(&opened.file, &mut opened.sending, threads);
            if body.is_small() {
                let loading = Box::pin(body.load());
                match unless_left(loading, self.scene, down).await {
                    Err(error) => return FileEnd::Failed(Failure::from_client(&error)),
                    Ok(Err(FileBodyError::Changed)) if attempts_left > 0 => {
                        attempts_left -= 1;
                        continue;
                    }
                    Ok(Err(error)) => return FileEnd::Failed(from_source(error)),
                    Ok(Ok(())) => {}
                }
            }
            opened.body = Some(body);
            return FileEnd::Send(opened);
        }
    }

    /// Opens the file, on a thread if the disk has to be waited for.
    async fn look_up(
        &mut self,
        down: &mut Downstream<'_>,
        directory: &Arc<Directory>,
        query: &FileQuery,
    ) -> Result<Found, FileEnd> {
        let mut how = FileResult::Open;
        let found = match directory.find(query, Access::Cached) {
            Err(FindError::Open(OpenError::WouldBlock)) => {
                how = FileResult::Thread;
                let (directory, query) = (Arc::clone(directory), query.clone());
                let threads = &self.scene.worker.files().threads;
                let opening = threads.run(move || directory.find(&query, Access::Blocking));
                match unless_left(Box::pin(opening), self.scene, down).await {
                    Err(error) => return Err(FileEnd::Failed(Failure::from_client(&error))),
                    Ok(Err(busy)) => return Err(FileEnd::Failed(from_source(busy.into()))),
                    Ok(Ok(found)) => found,
                }
            }
            found => found,
        };
        let found = found.map_err(|error| self.not_found(directory, query, &error))?;
        self.scene.worker.counters().file(how);
        if let Some(logged) = &mut self.logged {
            logged.file = Some(how.name());
        }
        Ok(found)
    }

    /// What follows if there is no file; what an operator has to know is logged.
    fn not_found(&self, directory: &Directory, query: &FileQuery, error: &FindError) -> FileEnd {
        let files = self.scene.worker.files();
        let name = String::from_utf8_lossy(query.name.relative());
        let (root, request) = (directory.config().root.display(), self.id);
        let (status, token) = match error {
            FindError::Open(OpenError::Missing) => {
                let failure = Failure::client(StatusCode::NOT_FOUND, "file-missing");
                return FileEnd::Missing(failure);
            }
            FindError::Open(OpenError::Outside) => {
                if files.outside.allows(self.scene.deadline.instant()) {
                    tracing::warn!(
                        %request,
                        reason = "front:files-outside",
                        "{name:?} in {root} is a link that leads outside, so it is not served; make it \
                         relative, or name its directory in `links`"
                    );
                }
                let status = StatusCode::NOT_FOUND;
                return FileEnd::Missing(Failure::new(Culprit::Front, status, "files-outside"));
            }
            FindError::Open(OpenError::Denied) => (StatusCode::FORBIDDEN, "files-denied"),
            FindError::Open(OpenError::Descriptors) => {
                (StatusCode::SERVICE_UNAVAILABLE, "files-descriptors")
            }
            FindError::Root(_) => (StatusCode::SERVICE_UNAVAILABLE, "files-root"),
            FindError::Open(OpenError::WouldBlock | OpenError::Failed(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "files-failed")
            }
        };
        if files.failures.allows(self.scene.deadline.instant()) {
            tracing::warn!(%request, reason = %Reason::new(Culprit::Front, token), "{name:?} in {root}: {error}");
        }
        let failure = Failure::new(Culprit::Front, status, token);
        match error {
            // Between two releases an upstream still serves.
            FindError::Root(_) => FileEnd::Missing(failure),
            _ => FileEnd::Failed(failure),
        }
    }

    /// Says that a compressed file was left behind.
    fn note_sibling(&self, request: &FilesRequest<'_>, file: &FoundFile) {
        let Some(coding) = file.old_sibling() else {
            return;
        };
        let worker = self.scene.worker;
        worker.count(Reason::new(Culprit::Front, "sibling-older"));
        if worker
            .files()
            .siblings
            .allows(self.scene.deadline.instant())
        {
            let path = String::from_utf8_lossy(request.path());
            tracing::warn!(
                request = %self.id,
                reason = "front:sibling-older",
                "the {} file of {path} is older than the plain one by more than a minute, so it is not \
                 used; compress it again",
                coding.suffix()
            );
        }
    }

    /// Sends what was opened.
    async fn send_file(
        &mut self,
        down: &mut Downstream<'_>,
        version: Version,
        opened: Opened,
    ) -> After {
        let counters = self.scene.worker.counters();
        let _open = counters.count_file();
        let Opened {
            file,
            sending,
            body,
        } = opened;
        // The body has it.
        drop(file);
        let source = FileSource::new(sending, body, down.takes_files(), counters);
        let served = self.serve_own(down, version, Source::File(Box::new(source)));
        match served.await {
            Ok(()) => After::Done,
            Err(failure) => {
                if !failure.reason.is_client() {
                    tracing::warn!(request = %self.id, reason = %failure.reason, "a file was cut");
                }
                self.fail(down, failure).await
            }
        }
    }
}

/// What is looked for.
fn query(request: &FilesRequest<'_>) -> Result<FileQuery, NameFault> {
    let config = request.directory.config();
    let head = request.head();
    let is_alone = matches!(request.origin, FilesOrigin::Alone(..));
    Ok(FileQuery {
        name: FileName::new(request.path(), config)?,
        codings: AcceptedCodings::of(&head.headers, &config.precompressed),
        ends_in_slash: request.sent.ends_with(b"/"),
        wants_page: is_alone && wants_page(head),
    })
}

/// Whether a browser asks for a page, not for a part of one.
fn wants_page(head: &RequestHead) -> bool {
    let mut lines = head.headers.get_all(ACCEPT).iter();
    lines.any(|line| {
        let mut elements = line.as_bytes().split(|&byte| byte == b',');
        elements.any(|element| {
            let mut parts = element.split(|&byte| byte == b';');
            let name = parts.next().unwrap_or_default().trim_ascii();
            name.eq_ignore_ascii_case(b"text/html")
        })
    })
}

/// Where a directory is: at the path that the client sent, with a slash behind it. It begins with one
/// slash, so it is on this host.
fn location(request: &FilesRequest<'_>) -> Option<HeaderValue> {
    let mut location = BytesMut::with_capacity(request.sent.len() + 1);
    location.put_slice(&request.sent);
    location.put_u8(b'/');
    if let Some(query) = &request.head().target.query {
        location.put_u8(b'?');
        location.put_slice(query);
    }
    HeaderValue::from_maybe_shared(location.freeze()).ok()
}

fn from_source(error: FileBodyError) -> Failure {
    let error = SourceError::File(error);
    Failure::new(error.culprit(), error.status(), error.token())
}

/// The methods that files have, as a field.
pub(super) fn methods() -> HeaderMap {
    let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
    HeaderMap::from_iter([(ALLOW, methods)])
}

/// How often a file is opened anew that is changed while it is read.
const CHANGES_MAX: usize = 3;
