//! What the configuration in force makes the front accept.

objects! {
    /// Every listener.
    pub struct ListenerList {
        /// In the order of the file.
        pub listeners: Vec<ListenerStatus>,
    }

    /// A listener.
    pub struct ListenerStatus {
        /// Its name, if the file gives one.
        pub name: Option<String>,
        /// Where it listens.
        pub address: String,
        /// Whether that is a socket of the file system.
        pub unix: bool,
        /// What it speaks: `http/1.1`, `h2`.
        pub protocols: Vec<String>,
        /// The TLS profile; `null` if it speaks without TLS.
        pub tls: Option<String>,
        /// Whether a proxy tells the client's address.
        pub proxy_protocol: bool,
        /// The port of https to which it redirects everything; `null` if it does not.
        pub redirect_https: Option<u16>,
    }
}
