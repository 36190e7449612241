//! HTTP/1.1 on the wire, both roles, without I/O.
#![forbid(unsafe_code)]
