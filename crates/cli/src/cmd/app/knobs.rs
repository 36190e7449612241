//! The options of `app` that Tomcat's `<Connector>` also has, under the same names.
//!
//! An option that is left out keeps the connector's default. The connector defines what the values
//! mean.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use catamaran_connector::{
    AllowedAttributes, ConfidentialPaths, Config, PacketSize, TrustedPeers, UnixSocketMode, UriForm,
};
use catamaran_units::{parse_duration, parse_size};

#[derive(clap::Args)]
#[command(next_help_heading = "As Tomcat's <Connector>")]
pub(super) struct Knobs {
    /// Connections that may wait to be accepted, per listener [default: 1024]
    #[arg(long, value_name = "N")]
    accept_count: Option<u32>,

    /// Connections open at once; further ones wait [default: 8192]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,

    /// With --io threads or --blocking-delay: threads, and so connections or requests served at
    /// once; further ones wait [default: 200]
    #[arg(long, value_name = "N")]
    max_threads: Option<NonZeroUsize>,

    /// Threads that are started at once and never end [default: 10]
    #[arg(long, value_name = "N")]
    min_spare_threads: Option<usize>,

    /// With --blocking-delay: requests that may wait for a thread; further ones are answered with
    /// 503 [default: 8192]
    #[arg(long, value_name = "N")]
    max_queue_size: Option<usize>,

    /// How long a client may take for its first byte, a head, or a further piece of a body
    /// [default: 20s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    connection_timeout: Option<Duration>,

    /// How long a connection may be idle between requests [default: 60s over HTTP, for ever over
    /// AJP]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep_alive_timeout: Option<Duration>,

    /// Requests on one HTTP connection [default: any number]
    #[arg(long, value_name = "N")]
    max_keep_alive_requests: Option<NonZeroU64>,

    /// Body bytes that the application left unread and that are still read to keep an HTTP
    /// connection [default: 2MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_swallow_size: Option<u64>,

    /// The most body bytes of a request; more is refused with 413 [default: any number]
    #[arg(long, value_name = "SIZE", value_parser = parse_limit)]
    max_post_size: Option<NonZeroU64>,

    /// The largest AJP packet, 8192 to 65536 bytes; must be the front's own setting
    /// [default: 8192]
    #[arg(long, value_name = "SIZE", value_parser = parse_packet_size)]
    packet_size: Option<PacketSize>,

    /// Packets of an AJP request body of known length that are asked for ahead, at most 15; 0 for a
    /// front that cannot be asked ahead [default: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=15))]
    body_ahead: Option<u8>,

    /// AJP request attributes accepted besides the well-known ones: names with commas between, a *
    /// at the end of one stands for any end [default: none]
    #[arg(long, value_name = "NAMES")]
    allowed_request_attributes: Option<AllowedAttributes>,

    /// Who is believed about users and TLS over AJP without a secret: addresses, networks and
    /// `unix` with commas between, or `none` [default: 127.0.0.0/8,::1,unix]
    #[arg(long, value_name = "PEERS")]
    trusted_peers: Option<TrustedPeers>,

    /// The application authenticates users itself: those that a front names are not passed on
    #[arg(long)]
    tomcat_authentication: bool,

    /// How AJP fronts write paths
    #[arg(long, value_name = "FORM")]
    uri: Option<Form>,

    /// AJP body packets carry no count, as lighttpd sends them
    #[arg(long)]
    bare_body: bool,

    /// Paths served over TLS only: prefixes such as /admin with commas between; requests in the
    /// clear are redirected [default: none]
    #[arg(long, value_name = "PATHS")]
    confidential: Option<ConfidentialPaths>,

    /// The port of https:// that --confidential redirects to [default: 443]
    #[arg(long, value_name = "PORT")]
    redirect_port: Option<NonZeroU16>,

    /// Permissions of the files of Unix sockets, in octal [default: 0660]
    #[arg(long, value_name = "MODE")]
    unix_socket_mode: Option<UnixSocketMode>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Form {
    /// Percent-encoded, as in a URI: mod_jk, mod_proxy_ajp, IIS and our front
    Encoded,
    /// Decoded: lighttpd and nginx's ajp module
    Decoded,
}

impl Knobs {
    /// Returns `config` with its values replaced by those options that were given.
    pub(super) fn apply(self, mut config: Config) -> Config {
        let set = &mut config;
        replace(&mut set.accept_count, self.accept_count);
        replace(&mut set.max_connections, self.max_connections);
        replace(&mut set.max_threads, self.max_threads);
        replace(&mut set.min_spare_threads, self.min_spare_threads);
        replace(&mut set.max_queue_size, self.max_queue_size);
        replace(&mut set.body_ahead, self.body_ahead);
        replace(&mut set.connection_timeout, self.connection_timeout);
        replace(&mut set.http_keep_alive_timeout, self.keep_alive_timeout);
        replace(&mut set.max_swallow_size, self.max_swallow_size);
        replace(&mut set.packet_size, self.packet_size);
        replace(
            &mut set.allowed_request_attributes,
            self.allowed_request_attributes,
        );
        replace(&mut set.trusted_peers, self.trusted_peers);
        replace(&mut set.confidential, self.confidential);
        replace(&mut set.redirect_port, self.redirect_port);
        replace(&mut set.unix_socket_mode, self.unix_socket_mode);
        set.ajp_keep_alive_timeout = self.keep_alive_timeout.or(set.ajp_keep_alive_timeout);
        set.max_keep_alive_requests = self.max_keep_alive_requests.or(set.max_keep_alive_requests);
        set.max_post_size = self.max_post_size.or(set.max_post_size);
        set.tomcat_authentication |= self.tomcat_authentication;
        set.bare_body |= self.bare_body;
        replace(&mut set.uri, self.uri.map(Form::meaning));
        config
    }
}

impl Form {
    fn meaning(self) -> UriForm {
        match self {
            Self::Encoded => UriForm::Encoded,
            Self::Decoded => UriForm::Decoded,
        }
    }
}

fn replace<T>(default: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *default = given;
    }
}

fn parse_limit(text: &str) -> Result<NonZeroU64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let none = "is no limit; leave the option out to take bodies of any size";
    NonZeroU64::new(bytes).ok_or_else(|| none.to_owned())
}

fn parse_packet_size(text: &str) -> Result<PacketSize, String> {
    let size = parse_size(text).map_err(|error| error.to_string())?;
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    PacketSize::new(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        knobs: Knobs,
    }

    fn config(arguments: &str) -> Config {
        let arguments = ["app"].into_iter().chain(arguments.split_whitespace());
        let only = Only::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}"));
        only.knobs.apply(Config::default())
    }

    #[test]
    fn what_is_left_out_keeps_its_default() {
        assert_eq!(
            format!("{:?}", config("")),
            format!("{:?}", Config::default())
        );
    }

    #[test]
    fn numbers_durations_and_sizes_reach_the_connector() {
        let config = config(
            "--accept-count 7 --max-connections 8 --connection-timeout 9s --keep-alive-timeout 10s \
             --max-keep-alive-requests 11 --max-swallow-size 12KiB --max-post-size 13MiB \
             --packet-size 64KiB --redirect-port 8443 --unix-socket-mode 0600 --max-threads 14 \
             --min-spare-threads 15 --max-queue-size 16 --body-ahead 3",
        );
        assert_eq!((config.max_queue_size, config.body_ahead), (16, 3));
        assert_eq!(config.max_threads.get(), 14);
        assert_eq!(config.min_spare_threads, 15);
        assert_eq!((config.accept_count, config.max_connections), (7, 8));
        assert_eq!(config.connection_timeout, Duration::from_secs(9));
        assert_eq!(config.http_keep_alive_timeout, Duration::from_secs(10));
        assert_eq!(config.ajp_keep_alive_timeout, Some(Duration::from_secs(10)));
        assert_eq!(config.max_keep_alive_requests, NonZeroU64::new(11));
        assert_eq!(config.max_swallow_size, 12 << 10);
        assert_eq!(config.max_post_size, NonZeroU64::new(13 << 20));
        assert_eq!(config.packet_size, PacketSize::MAX);
        assert_eq!(config.redirect_port.get(), 8443);
        assert_eq!(Ok(config.unix_socket_mode), "0600".parse());
    }

    #[test]
    fn lists_and_choices_reach_the_connector() {
        let config = config(
            "--allowed-request-attributes MY*,x --trusted-peers 10.0.0.0/8,unix --uri decoded \
             --tomcat-authentication --bare-body --confidential /admin,/login/*",
        );
        assert_eq!(Ok(config.allowed_request_attributes), "MY* x".parse());
        assert_eq!(Ok(config.trusted_peers), "10.0.0.0/8, unix".parse());
        assert_eq!(config.uri, UriForm::Decoded);
        assert!(config.tomcat_authentication && config.bare_body);
        assert!(config.confidential.contains(b"/login/x"));
    }
}
