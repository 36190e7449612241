//! Hostile bytes against the built binary, row by row of the hardening catalogue.
//!
//! A row is bytes in and the required reaction; its number is that of the catalogue and part of
//! what a failing test says. The codecs have these rows too; here they prove that nothing between
//! the socket and the codec softens them, and that no byte of a refused request reaches a backend.

mod requests;
mod responses;
