//! The listeners of the configuration in force.

objects! {
    /// The listeners of a configuration.
    pub struct ListenerList {
        /// The listeners, in the order of the configuration file.
        pub listeners: Vec<ListenerStatus>,
    }

    /// A listener.
    pub struct ListenerStatus {
        /// The listener's name, if the configuration file gives one.
        pub name: Option<String>,
        /// The address on which the listener listens.
        pub address: String,
        /// Whether that is a socket of the file system.
        pub unix: bool,
        /// The protocols that the listener accepts: `http/1.1`, `h2`.
        pub protocols: Vec<String>,
        /// The name of the TLS profile; `null` for a listener without TLS.
        pub tls: Option<String>,
        /// Whether a proxy before the listener tells the client's address by the PROXY protocol.
        pub proxy_protocol: bool,
        /// The port for `https` to which the listener redirects every request; `null` if it does not redirect.
        pub redirect_https: Option<u16>,
    }
}
