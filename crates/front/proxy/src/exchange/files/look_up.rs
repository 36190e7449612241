//! Finds the file that is requested: in the worker's table, then with what the kernel has in memory, then by
//! a thread that waits for the disk.

use std::sync::Arc;

use catamaran_files::{
    Access, Directory, FileQuery, FindError, Finding, Found, OpenError, TableLimits,
};
use catamaran_upstream::Culprit;
use http::StatusCode;
use tokio::time::Instant;

use super::{FileEnd, from_source};
use crate::counters::{FileResult, Reason};
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::leaving::unless_left;
use crate::exchange::scene::Scene;
use crate::exchange::state::Exchange;

/// Finds the file. With `is_changed` the table's entry is ignored, because the file has just changed.
pub(crate) async fn look_up(
    exchange: &mut Exchange<'_>,
    down: &mut Downstream<'_>,
    directory: &Arc<Directory>,
    query: &FileQuery,
    is_changed: bool,
) -> Result<Found, FileEnd> {
    let now = Instant::now();
    let files = exchange.scene.worker.files();
    let known = if is_changed {
        None
    } else {
        files.table().find(directory, query, now)
    };
    let (found, result) = match known {
        Some(found) => (found, FileResult::Hit),
        None => {
            let (finding, result) = search(exchange.scene, down, directory, query).await?;
            let server = &exchange.site.server;
            let limits = TableLimits {
                open: server.files_open,
                memory: server.files_memory,
            };
            let mut table = files.table();
            let found =
                finding.and_then(|finding| table.keep(directory, query, &finding, limits, now));
            exchange.scene.worker.counters().file_bytes(table.bytes());
            (found, result)
        }
    };
    let found = found.map_err(|error| not_found(exchange, directory, query, &error))?;
    exchange.scene.worker.counters().file(result);
    if let Some(logged) = &mut exchange.logged {
        logged.file = Some(result.name());
    }
    Ok(found)
}

/// The end of a request whose file was not found. What an operator should know is logged.
fn not_found(
    exchange: &Exchange<'_>,
    directory: &Directory,
    query: &FileQuery,
    error: &FindError,
) -> FileEnd {
    let files = exchange.scene.worker.files();
    let name = String::from_utf8_lossy(query.name.relative());
    let (root, request) = (directory.config().root.display(), exchange.id);
    let (status, token) = match error {
        FindError::Open(OpenError::Missing) => {
            let failure = Failure::client(StatusCode::NOT_FOUND, "file-missing");
            return FileEnd::Missing(failure);
        }
        FindError::Open(OpenError::Outside) => {
            if files.outside.allows(exchange.scene.deadline.instant()) {
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
    if files.failures.allows(exchange.scene.deadline.instant()) {
        tracing::warn!(%request, reason = %Reason::new(Culprit::Front, token), "{name:?} in {root}: {error}");
    }
    let failure = Failure::new(Culprit::Front, status, token);
    match error {
        // The directory may be absent while a new release replaces it: the upstream still serves.
        FindError::Root(_) => FileEnd::Missing(failure),
        _ => FileEnd::Failed(failure),
    }
}

/// Opens the file, on a thread if that has to wait for the disk.
async fn search(
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
    directory: &Arc<Directory>,
    query: &FileQuery,
) -> Result<(Result<Finding, FindError>, FileResult), FileEnd> {
    let files = scene.worker.files();
    let mut found = directory.search(query, Access::Cached);
    // Too many files are open: closes those that the worker only keeps for later requests, and tries again.
    if is_short(&found) && files.table().close_all() {
        found = directory.search(query, Access::Cached);
    }
    if !matches!(found, Err(FindError::Open(OpenError::WouldBlock))) {
        return Ok((found, FileResult::Open));
    }
    let mut may_close = true;
    loop {
        let (directory, query) = (Arc::clone(directory), query.clone());
        let search = move |_| directory.search(&query, Access::Blocking);
        let searching = Box::pin(files.threads.run(search));
        let found = match unless_left(searching, scene, down).await {
            Err(error) => return Err(FileEnd::Failed(Failure::from_client(&error))),
            Ok(Err(busy)) => return Err(FileEnd::Failed(from_source(busy.into()))),
            Ok(Ok(found)) => found,
        };
        // As above, but once.
        if may_close && is_short(&found) && files.table().close_all() {
            may_close = false;
            continue;
        }
        return Ok((found, FileResult::Thread));
    }
}

/// Whether the file could not be opened because no further file descriptor is available.
fn is_short(found: &Result<Finding, FindError>) -> bool {
    matches!(found, Err(FindError::Open(OpenError::Descriptors)))
}
