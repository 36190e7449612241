//! Serves a request for a file: looks the file up, then sends it, answers otherwise, or leaves the request to the
//! upstream.
//!
//! Data that the kernel has in memory is read on the event loop. Everything else is read on a thread, while the
//! front notices if the client leaves.

mod kept;
mod look_up;

use catamaran_files::{
    FileBody, FileBodyError, FileResponse, FileSending, Found, FoundFile, NameFault, TagWork,
};
use catamaran_message::Fields;
use catamaran_upstream::Culprit;
use http::{Method, StatusCode};

use crate::counters::{FileResult, Reason};
use crate::exchange::downstream::{After, Downstream};
use crate::exchange::failure::Failure;
use crate::exchange::leaving::unless_left;
use crate::exchange::own_response;
use crate::exchange::scene::Scene;
use crate::exchange::source::file::FileSource;
use crate::exchange::source::{Answer, Source};
use crate::exchange::source_error::SourceError;
use crate::exchange::state::Exchange;
use crate::exchange::verdict::{FilesRequest, Forward, OwnAnswer, OwnContent, WithoutFile};

/// A file that is to be sent, opened.
struct Opened {
    file: FoundFile,
    sending: FileSending,
    /// The body of the response; `None` for a HEAD.
    body: Option<FileBody>,
}

/// The outcome of a request for a file.
enum FileEnd {
    Send(Box<Opened>),
    /// A 304 with these fields: the client has a valid copy.
    NotModified(Fields),
    /// A page of this status with these fields, and the reason for the log.
    Page(StatusCode, Fields, &'static str),
    /// A directory: the client is redirected to the path with a slash at its end.
    Slash,
    /// There is no such file: the upstream is asked, or without one the client gets this failure.
    Missing(Failure),
    /// The file cannot be sent, because it cannot be read, keeps changing, or the client left. The client gets this
    /// failure, and no upstream is asked.
    Failed(Failure),
}

/// Serves a file, or answers without one. `Err` returns a request that must go to the upstream instead.
pub(crate) async fn serve<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    request: FilesRequest<'a>,
) -> Result<After, Forward<'a>> {
    Ok(match find_file(exchange, down, &request).await {
        FileEnd::Send(opened) => send_file(exchange, down, *opened).await,
        FileEnd::NotModified(fields) => {
            own_response::send(exchange, down, Answer::not_modified(fields)).await
        }
        FileEnd::Page(status, fields, token) => {
            exchange.note_reason(Reason::new(Culprit::Client, token));
            let answer = own_response::page(exchange, status).with(fields);
            own_response::send(exchange, down, answer).await
        }
        FileEnd::Slash => {
            let status = StatusCode::PERMANENT_REDIRECT;
            let location = request.directory_location();
            let own = OwnAnswer::redirect(status, location, "file-directory");
            own_response::answer(exchange, down, own).await
        }
        FileEnd::Failed(failure) => {
            exchange.scene.worker.counters().file(FileResult::Failed);
            fail_file(exchange, down, failure).await
        }
        FileEnd::Missing(failure) => {
            exchange.scene.worker.counters().file(FileResult::Missing);
            match request.without_file {
                WithoutFile::NotFound(_) => fail_file(exchange, down, failure).await,
                WithoutFile::Forward(forward) => return Err(forward),
            }
        }
    })
}

/// Answers a request whose file cannot be sent, and keeps the connection open.
async fn fail_file(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    failure: Failure,
) -> After {
    if failure.client_gone {
        return own_response::fail(exchange, down, failure).await;
    }
    let own = OwnAnswer {
        content: OwnContent::Page(failure.status),
        reason: failure.reason,
        guard: None,
        spent: None,
    };
    own_response::answer(exchange, down, own).await
}

/// Looks the file up, and decides what the response to the request is.
async fn find_file<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    request: &FilesRequest<'a>,
) -> FileEnd {
    let query = match &request.query {
        Ok(query) => query,
        Err(fault) => {
            let token = match fault {
                NameFault::Separator | NameFault::TooLong => "file-name",
                NameFault::Hidden => "file-hidden",
            };
            return FileEnd::Missing(Failure::client(StatusCode::NOT_FOUND, token));
        }
    };
    let mut is_changed = false;
    for _ in 0..=CHANGES_MAX {
        let found = look_up::look_up(exchange, down, request.directory, query, is_changed);
        let file = match found.await {
            Ok(Found::File(file)) => file,
            Ok(Found::Directory) => return FileEnd::Slash,
            Err(end) => return end,
        };
        match prepare(exchange, down, request, file).await {
            Some(end) => return end,
            None => is_changed = true,
        }
    }
    FileEnd::Failed(from_source(FileBodyError::Changed))
}

/// Decides what is sent of a file, and reads a small body into memory. `None`: the file has changed meanwhile; look
/// it up again.
async fn prepare<'a>(
    exchange: &mut Exchange<'a>,
    down: &mut Downstream<'_>,
    request: &FilesRequest<'a>,
    mut file: FoundFile,
) -> Option<FileEnd> {
    note_sibling(exchange, request, &file);
    let passage = exchange.decided.passage.as_deref();
    let offer = passage.and_then(|passage| passage.compression.as_ref());
    if !file.is_compressed()
        && offer.is_some_and(|offer| offer.covers(file.media_type().as_bytes()))
    {
        file.may_be_coded();
    }
    let threads = &exchange.scene.worker.files().threads;
    if let Some(work) = TagWork::of(request.directory, &file, threads) {
        let working = Box::pin(threads.run(move |waiter| work.run_blocking(&waiter)));
        if let Err(error) = unless_left(working, exchange.scene, down).await {
            return Some(FileEnd::Failed(Failure::from_client(&error)));
        }
        // Called again for its effect: the tag that was made becomes that of this file. If there was no thread to make
        // it, the file is sent without a tag.
        drop(TagWork::of(request.directory, &file, threads));
    }
    let (head, config) = (request.head(), request.directory.config());
    let response = FileResponse::new(&head.method, &head.headers, &file, config);
    let mut sending = match to_sending(response) {
        Ok(sending) => sending,
        Err(end) => return Some(end),
    };
    let coded = kept::kept_coding(exchange, &file, &mut sending);
    let body = if head.method == Method::HEAD {
        None
    } else if let Some(coded) = coded {
        Some(FileBody::of_bytes(&file, coded, threads))
    } else {
        match load(exchange.scene, down, &file, &mut sending).await {
            Ok(body) => Some(body?),
            Err(failure) => return Some(FileEnd::Failed(failure)),
        }
    };
    Some(FileEnd::Send(Box::new(Opened {
        file,
        sending,
        body,
    })))
}

/// Logs that a compressed file is older than the plain one, so that it is not used.
fn note_sibling(exchange: &Exchange<'_>, request: &FilesRequest<'_>, file: &FoundFile) {
    let Some(coding) = file.old_sibling() else {
        return;
    };
    let worker = exchange.scene.worker;
    worker.count(Reason::new(Culprit::Front, "sibling-older"));
    if worker
        .files()
        .siblings
        .allows(exchange.scene.deadline.instant())
    {
        let path = String::from_utf8_lossy(&request.path);
        tracing::warn!(
            request = %exchange.id,
            reason = "front:sibling-older",
            "the {} file of {path} is older than the plain one by more than a minute, so it is not \
             used; compress it again",
            coding.suffix()
        );
    }
}

/// Sends an opened file to the client.
async fn send_file(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    opened: Opened,
) -> After {
    let counters = exchange.scene.worker.counters();
    let _open = counters.count_file();
    let Opened {
        file,
        sending,
        body,
    } = opened;
    // The body has its own reference to the file.
    drop(file);
    let source = FileSource::new(sending, body, down.takes_files(), counters);
    let served = own_response::serve(exchange, down, Source::File(Box::new(source)));
    match served.await {
        Ok(()) => After::Done,
        Err(failure) => {
            if !failure.reason.is_client() {
                tracing::warn!(request = %exchange.id, reason = %failure.reason, "a file was cut");
            }
            own_response::fail(exchange, down, failure).await
        }
    }
}

/// The body of a response, in memory if it is small. `None`: the file has changed meanwhile.
async fn load(
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
    file: &FoundFile,
    sending: &mut FileSending,
) -> Result<Option<FileBody>, Failure> {
    if let Some(wait) = file.settles_after() {
        let waiting = Box::pin(tokio::time::sleep(wait));
        let waited = unless_left(waiting, scene, down).await;
        waited.map_err(|error| Failure::from_client(&error))?;
        if !file.holds() {
            return Ok(None);
        }
    }
    let files = scene.worker.files();
    let mut body = FileBody::new(file, sending, &files.threads);
    if body.is_loaded() || !body.is_small() {
        return Ok(Some(body));
    }
    let loading = Box::pin(body.load());
    match unless_left(loading, scene, down).await {
        Err(error) => return Err(Failure::from_client(&error)),
        Ok(Err(FileBodyError::Changed)) => return Ok(None),
        Ok(Err(error)) => return Err(from_source(error)),
        Ok(Ok(())) => {}
    }
    if let Some(bytes) = body.loaded().filter(|_| sending.status == StatusCode::OK) {
        files.table().keep_body(file, bytes);
    }
    Ok(Some(body))
}

/// What is sent of a file. `Err`: the response has no bytes of the file.
fn to_sending(response: FileResponse) -> Result<FileSending, FileEnd> {
    let page = |status, fields, token| Err(FileEnd::Page(status, fields, token));
    match response {
        FileResponse::Send(sending) => Ok(sending),
        FileResponse::NotModified(fields) => Err(FileEnd::NotModified(fields)),
        FileResponse::Failed(fields) => {
            page(StatusCode::PRECONDITION_FAILED, fields, "file-precondition")
        }
        FileResponse::Unsatisfiable(fields) => {
            page(StatusCode::RANGE_NOT_SATISFIABLE, fields, "file-range")
        }
    }
}

fn from_source(error: FileBodyError) -> Failure {
    let error = SourceError::File(error);
    Failure::new(error.culprit(), error.status(), error.token())
}

/// The most times that a file is opened again because it has changed while it was read.
const CHANGES_MAX: usize = 3;
