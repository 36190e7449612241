//! Compressed copies of files in memory: each is made once, at the second request that wants it, and kept with
//! the file. Until then responses are compressed as they stream, and so are all whose copy is not kept.
//!
//! Such files are short, so they are compressed on the event loop; with Brotli that takes about a millisecond.

use std::cell::LazyCell;

use bytes::Bytes;
use catamaran_coding::Coding;
use catamaran_files::{FileSending, FoundFile, KeptBody};
use catamaran_message::ResponseHead;
use http::StatusCode;

use crate::exchange::compression::{CompressionOffer, describe};
use crate::exchange::state::Exchange;

/// The compressed copy to send instead of the file's bytes; `None`: there is none. The fields become those of the
/// compressed response. A HEAD gets these fields, too, but no copy is made for it.
pub(crate) fn kept_coding(
    exchange: &mut Exchange<'_>,
    file: &FoundFile,
    sending: &mut FileSending,
) -> Option<Bytes> {
    let passage = exchange.decided.passage.as_deref()?;
    let offer = passage.compression.as_ref()?;
    let body = file.kept()?;
    // The route's own fields may forbid compression, which is known only after they are set.
    let is_other = sending.status != StatusCode::OK || sending.is_compressed;
    if is_other || !passage.rules.response_fields().is_empty() {
        return None;
    }
    let mut head = ResponseHead {
        status: sending.status,
        headers: std::mem::take(&mut sending.headers),
        content_length: Some(sending.length),
        ..ResponseHead::default()
    };
    let copy = if offer.mark_varying(&mut head) {
        choose_coding(exchange, file, body, offer)
    } else {
        None
    };
    if let Some((coding, coded)) = &copy {
        describe(&mut head, *coding);
        let plain = sending.length;
        sending.length = coded.len() as u64;
        if !offer.is_head {
            let counters = exchange.scene.worker.counters();
            counters.compressed(*coding, plain, sending.length);
            if let Some(logged) = &mut exchange.logged {
                logged.coded = Some((coding.token(), plain));
            }
        }
    }
    sending.headers = head.headers;
    copy.map(|(_, coded)| coded)
}

/// The best compressed copy of a file in memory, of those that are kept or worth making.
fn choose_coding(
    exchange: &Exchange<'_>,
    file: &FoundFile,
    body: &KeptBody,
    offer: &CompressionOffer<'_>,
) -> Option<(Coding, Bytes)> {
    // Evaluated at most once for all codings, since `is_wanted_again` counts the request.
    let is_worth_it = LazyCell::new(|| !offer.is_head && body.coded().is_wanted_again());
    offer.choose(|coding| match body.coded().get(coding) {
        Some(coded) => Some(coded.clone()),
        None if *is_worth_it => {
            let coded = offer.code(coding, [body.bytes()], exchange.scene)?;
            let mut table = exchange.scene.worker.files().table();
            table.keep_coded(file, coding, coded.clone());
            Some(coded)
        }
        None => None,
    })
}
