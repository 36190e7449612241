//! Codings of files that are in memory: each is made once, at the second request that wants it, and kept beside
//! the file. The first request has its response compressed as it streams, as all others that are not kept.

use bytes::Bytes;
use catamaran_files::{FileSending, FoundFile};
use catamaran_message::ResponseHead;
use http::StatusCode;

use crate::exchange::Exchange;
use crate::exchange::compression::describe;

impl Exchange<'_> {
    /// The bytes that are sent instead of the file's, if a coding of it is kept; the fields become those of
    /// the coded response.
    pub(super) fn kept_coding(
        &mut self,
        file: &FoundFile,
        sending: &mut FileSending,
    ) -> Option<Bytes> {
        let passage = self.decided.passage.as_deref()?;
        let offer = passage.compression.as_ref()?;
        let body = file.kept()?;
        // The route's own fields may forbid it, which is known when they are there.
        if sending.status != StatusCode::OK || !passage.rules.response_fields().is_empty() {
            return None;
        }
        let mut head = ResponseHead {
            status: sending.status,
            headers: std::mem::take(&mut sending.headers),
            content_length: Some(sending.length),
            ..ResponseHead::default()
        };
        let coding = offer.settle(&mut head);
        let coded = coding.and_then(|coding| {
            if let Some(coded) = body.coded().get(coding) {
                return Some((coding, coded.clone()));
            }
            if !body.coded().is_wanted_again() {
                return None;
            }
            let coded = offer.code(coding, [body.bytes()], self.scene)?;
            let mut table = self.scene.worker.files().table();
            table.keep_coded(file, coding, coded.clone());
            Some((coding, coded))
        });
        if let Some((coding, coded)) = &coded {
            describe(&mut head, *coding);
            let plain = sending.length;
            sending.length = coded.len() as u64;
            let counters = self.scene.worker.counters();
            counters.compressed(*coding, plain, sending.length);
            if let Some(logged) = &mut self.logged {
                logged.coded = Some((coding.token(), plain));
            }
        }
        sending.headers = head.headers;
        coded.map(|(_, bytes)| bytes)
    }
}
