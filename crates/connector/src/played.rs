//! Runs a [`Handler`] on a thread that may block, by sending its response as data.
//!
//! For the built-in application: a delay then holds a thread, as in a servlet, and one application
//! can be compared on an event loop and on threads.

use std::io::{self, Write};

use crate::blocking::{BlockingHandler, BodyReader, Responder};
use crate::handler::{Handler, Request};
use crate::source::{Piece, Source};

/// A [`Handler`] as a [`BlockingHandler`].
#[derive(Debug)]
pub(crate) struct PlayedHandler<H>(pub(crate) H);

impl<H: Handler> BlockingHandler for PlayedHandler<H> {
    /// Sends the handler's response piece by piece, sleeping where it asks for a pause.
    fn handle(
        &self,
        request: &Request,
        body: &mut BodyReader<'_>,
        mut responder: Responder<'_>,
    ) -> io::Result<()> {
        let answer = self.0.handle(request);
        if answer.after_body {
            // The handler wants the body received before its answer, not its bytes.
            while body.read_bytes()?.is_some() {}
        }
        responder.hold(answer.delay)?;
        *responder.headers_mut() = answer.headers;
        responder.set_body_length(answer.body.length(request.body));
        let mut writer = responder.begin(answer.status);
        let mut source = Source::new(answer.body);
        loop {
            match source.next() {
                Piece::Data(data) => writer.write_bytes(data)?,
                Piece::Pause(pause) => {
                    writer.flush()?;
                    writer.hold(pause)?;
                }
                Piece::Request => match body.read_bytes()? {
                    Some(data) => writer.write_bytes(data)?,
                    None => return Ok(()),
                },
                Piece::End => return Ok(()),
            }
        }
    }
}
