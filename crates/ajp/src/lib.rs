//! AJP13 on the wire, both roles, without I/O.
#![forbid(unsafe_code)]
