//! The settings of the admin listener.

use std::path::PathBuf;

use super::{ListenAddress, Secret};

/// The settings of the admin listener, which has a thread of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// The addresses where it listens; at least one.
    pub addresses: Vec<ListenAddress>,
    /// The permissions of a Unix socket's file, as for `chmod`. Default 0600: a client that may connect may change
    /// everything.
    pub socket_mode: u32,
    /// The secret that a client over TCP must send to change anything. Default: none; clients over TCP can only read.
    pub token: Option<Secret>,
    /// The name of the sign-on, with a file of users, that clients over TCP need if they have no token. Default: none.
    pub auth: Option<String>,
    /// The names, in lower case, that `Host` of a client over TCP may have, besides `localhost` and the listener's
    /// address. Default: none.
    pub hosts: Vec<String>,
    /// The file that keeps operators' changes for a restart. Default: none. HAProxy: `server-state-file`.
    pub state_file: Option<PathBuf>,
    /// Whether changes are refused, whoever asks. Default off.
    pub read_only: bool,
    /// The upstreams that `/readyz` needs: it answers that the front is not ready while one of them accepts no new
    /// clients. Default: `None`, all upstreams.
    pub ready: Option<Vec<String>>,
    /// The values of variables and files that the configuration refers to. They are shown only to clients that have the
    /// token, are root, or are the user who runs the front. Default: none.
    pub hidden: Vec<HiddenValue>,
}

/// A value that the configuration takes from a variable or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenValue {
    /// The value itself.
    pub value: Secret,
    /// The text that is shown instead: `${NAME}`, or the path of the file.
    pub name: String,
}

impl AdminConfig {
    /// An admin listener at these addresses, with every default.
    #[must_use]
    pub fn new(addresses: Vec<ListenAddress>) -> Self {
        Self {
            addresses,
            socket_mode: 0o600,
            token: None,
            auth: None,
            hosts: Vec::new(),
            state_file: None,
            read_only: false,
            ready: None,
            hidden: Vec::new(),
        }
    }
}
