//! `serve --tls`: the certificates and the ports of a front without a file.

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::OnceLock;

use catamaran_config::{parse_acme_directory, parse_acme_name, trusted_issuers};
use catamaran_proxy::config::{
    AcmeChallenge, AcmeConfig, CertificateConfig, Config, IssuedKeyType, LETS_ENCRYPT,
    LETS_ENCRYPT_STAGING, ListenAddress, ListenerConfig, OwnCertificate, Protocols, TlsConfig,
};
use catamaran_proxy::{BindError, StartError};

use crate::failure::Failure;
use crate::own_log;

/// The flags of TLS.
#[derive(clap::Args)]
pub(crate) struct TlsArgs {
    /// Without a file: serve a name over TLS, with a certificate from Let's Encrypt, at port 443, and redirect
    /// port 80 to it. `localhost`, names that end in .test and addresses get a self-signed certificate in memory.
    /// With a comma: the files of a certificate and its key. Repeatable
    #[arg(long, value_name = "NAME|CHAIN,KEY", value_parser = parse_certificate, requires = "upstream")]
    tls: Vec<CertificateSource>,

    /// With --tls NAME: you agree to the terms of service of the authority
    #[arg(long, requires = "tls")]
    agree_terms: bool,

    /// With --tls NAME: another authority: letsencrypt-staging, or the URL of a directory of ACME
    #[arg(long, value_name = "URL", value_parser = parse_acme_directory, requires = "tls")]
    acme_directory: Option<String>,

    /// With --acme-directory: a PEM file with who issued the certificate of that authority's own server
    /// [default: the system's authorities]
    #[arg(long, value_name = "FILE", requires = "acme_directory")]
    acme_ca_file: Option<PathBuf>,

    /// The self-signed certificate, which reloads keep.
    #[arg(skip)]
    self_signed: OnceLock<OwnCertificate>,
}

/// Where a certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CertificateSource {
    /// An authority issues it for this name.
    Issued(String),
    /// The front signs it itself, for a name or an address that no authority can see.
    SelfSigned(String),
    Files(CertificateConfig),
}

fn parse_certificate(text: &str) -> Result<CertificateSource, String> {
    if let Some((chain, key)) = text.split_once(',') {
        if chain.is_empty() || key.is_empty() || key.contains(',') {
            return Err("must be a name, or two files with a comma between them".to_owned());
        }
        return Ok(CertificateSource::Files(CertificateConfig {
            chain: chain.into(),
            key: key.into(),
            default: false,
        }));
    }
    let lower = text.to_ascii_lowercase();
    let address = lower.trim_start_matches('[').trim_end_matches(']');
    if lower == "localhost" || address.parse::<IpAddr>().is_ok() {
        return Ok(CertificateSource::SelfSigned(address.to_owned()));
    }
    let name = parse_acme_name(lower.trim_end_matches('.'))?;
    Ok(if name.ends_with(".test") {
        CertificateSource::SelfSigned(name)
    } else {
        CertificateSource::Issued(name)
    })
}

impl TlsArgs {
    /// Whether there is TLS.
    pub(super) fn are_given(&self) -> bool {
        !self.tls.is_empty()
    }

    /// Has every listener serve TLS; if there is none, the front listens at the usual ports.
    ///
    /// # Errors
    /// A certificate cannot be had in this way.
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if !self.are_given() {
            return Ok(());
        }
        let has_clear = config.listeners.is_empty();
        if has_clear {
            config
                .listeners
                .push(ListenerConfig::new(at_every_address(443)));
        }
        for listener in &mut config.listeners {
            listener.tls = Some(PROFILE.to_owned());
            listener.protocols = Protocols::Both;
        }
        let files = self.tls.iter().filter_map(|source| match source {
            CertificateSource::Files(files) => Some(files.clone()),
            CertificateSource::Issued(_) | CertificateSource::SelfSigned(_) => None,
        });
        let mut profile = TlsConfig::new(PROFILE, files.collect());
        profile.own_certificates.extend(self.self_signed()?);
        profile.acme = self.acme(has_clear)?;
        let has_port = |listener: &ListenerConfig| match &listener.address {
            ListenAddress::Tcp(address) => address.port() == 443,
            ListenAddress::Unix(_) => false,
        };
        if profile.acme.is_some() && !config.listeners.iter().any(has_port) {
            own_log::say(format_args!(
                "warning: no --listen has the port 443, which the authority asks; have what is before the front pass it on"
            ))?;
        }
        if has_clear {
            let mut clear = ListenerConfig::new(at_every_address(80));
            clear.redirect_https = Some(443);
            clear.acme_pending = profile.acme.iter().map(AcmeConfig::pending).collect();
            config.listeners.push(clear);
        }
        config.tls.push(profile);
        Ok(())
    }

    /// The failure of a start, with a hint if it is about a port that the user has not written. `has_listen`: whether
    /// there is a `--listen`.
    pub(super) fn start_failure(&self, has_listen: bool, error: &StartError) -> Failure {
        let failure = Failure::of(error);
        let (
            StartError::Bind(BindError::InUse { address } | BindError::Denied { address }),
            Failure::Fault(message),
        ) = (error, &failure)
        else {
            return failure;
        };
        let is_usual = [":443", ":80"].iter().any(|port| address.ends_with(port));
        if !self.are_given() || has_listen || !is_usual {
            return failure;
        }
        Failure::Fault(format!(
            "{message}. --tls takes the ports 443 and 80 unless --listen names an address in their place"
        ))
    }

    /// The certificate that the front signs itself; `None`: no name needs one.
    fn self_signed(&self) -> Result<Option<OwnCertificate>, Failure> {
        let mut names = Vec::new();
        for source in &self.tls {
            if let CertificateSource::SelfSigned(name) = source {
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        if let Some(made) = self.self_signed.get() {
            return Ok(Some(made.clone()));
        }
        let made = OwnCertificate::self_signed(names.clone())
            .map_err(|error| Failure::Fault(format!("cannot make a certificate: {error}")))?;
        let (names, sha256) = (names.join(", "), made.sha256());
        own_log::say(format_args!(
            "self-signed certificate for {names}, which no client trusts by itself; SHA-256 {sha256}"
        ))?;
        Ok(Some(self.self_signed.get_or_init(|| made).clone()))
    }

    /// The certificates that an authority issues; `None`: no name needs one.
    fn acme(&self, has_clear: bool) -> Result<Option<AcmeConfig>, Failure> {
        let mut names: Vec<String> = Vec::new();
        for source in &self.tls {
            match source {
                CertificateSource::Issued(name) if names.contains(name) => {
                    let message = format!("--tls {name} is there twice; remove one");
                    return Err(Failure::Usage(message));
                }
                CertificateSource::Issued(name) => names.push(name.clone()),
                CertificateSource::SelfSigned(_) | CertificateSource::Files(_) => {}
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        let directory = self.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT);
        let terms = match directory {
            LETS_ENCRYPT | LETS_ENCRYPT_STAGING => LETS_ENCRYPT_TERMS.to_owned(),
            other => format!("`termsOfService` of {other}"),
        };
        if !self.agree_terms {
            return Err(Failure::Usage(format!(
                "the authority issues certificates only to those who agree to its terms: read {terms}, and add --agree-terms"
            )));
        }
        let mut challenges = vec![AcmeChallenge::TlsAlpn01];
        if has_clear {
            challenges.insert(0, AcmeChallenge::Http01);
        }
        Ok(Some(AcmeConfig {
            names,
            together: false,
            directory: directory.to_owned(),
            contact: Vec::new(),
            state_dir: state_dir()?,
            challenges,
            dns_hook: Vec::new(),
            preflight: true,
            key_type: IssuedKeyType::P256,
            profile: None,
            external_account: None,
            roots: trusted_issuers(self.acme_ca_file.clone()).map_err(Failure::Fault)?,
        }))
    }
}

/// The directory for issued certificates: of systemd's `StateDirectory=`, else below the user's home.
fn state_dir() -> Result<PathBuf, Failure> {
    let of_systemd = env::var_os("STATE_DIRECTORY").filter(|it| !it.is_empty());
    if let Some(directories) = of_systemd {
        // Several are separated by colons (systemd.exec).
        let first = env::split_paths(&directories).next().unwrap_or_default();
        return Ok(first.join("acme"));
    }
    let of_user = env::var_os("HOME").filter(|it| !it.is_empty());
    let home = of_user.ok_or_else(|| {
        let message = "neither STATE_DIRECTORY nor HOME says where certificates are kept; set one";
        Failure::Usage(message.to_owned())
    })?;
    Ok(PathBuf::from(home).join(".local/state/catamaran/acme"))
}

/// Every address of this machine: of IPv6 and IPv4, or of IPv4 alone if the system has no IPv6.
fn at_every_address(port: u16) -> ListenAddress {
    let has_ipv6 = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
    let address = if has_ipv6 {
        IpAddr::from(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    };
    ListenAddress::Tcp(SocketAddr::from((address, port)))
}

/// The name of the profile.
const PROFILE: &str = "default";

/// The page with the terms of service of Let's Encrypt.
const LETS_ENCRYPT_TERMS: &str = "https://letsencrypt.org/repository/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_nobody_wrote_is_explained() {
        let given = |tls| TlsArgs {
            tls,
            agree_terms: false,
            acme_directory: None,
            acme_ca_file: None,
            self_signed: OnceLock::new(),
        };
        let of_name = given(vec![CertificateSource::SelfSigned("localhost".to_owned())]);
        let denied = |address: &str| {
            let address = address.to_owned();
            StartError::Bind(BindError::Denied { address })
        };
        let hint =
            ". --tls takes the ports 443 and 80 unless --listen names an address in their place";
        for (args, has_listen, address, expected) in [
            (&of_name, false, "[::]:443", true),
            (&of_name, false, "0.0.0.0:80", true),
            (&of_name, false, "127.0.0.1:90", false),
            (&of_name, true, "[::]:443", false),
            (&given(Vec::new()), false, "[::]:443", false),
        ] {
            let error = denied(address);
            let words = args.start_failure(has_listen, &error).words();
            let end = if expected { hint } else { "" };
            assert_eq!(words, format!("{error}{end}"));
        }
    }

    #[test]
    fn a_value_is_a_name_or_two_files() {
        let issued = |name: &str| CertificateSource::Issued(name.to_owned());
        let own = |name: &str| CertificateSource::SelfSigned(name.to_owned());
        for (text, source) in [
            ("www.Example.org", issued("www.example.org")),
            ("localhost", own("localhost")),
            ("shop.test", own("shop.test")),
            ("127.0.0.1", own("127.0.0.1")),
            ("::1", own("::1")),
            ("[::1]", own("::1")),
            ("www.example.org.", issued("www.example.org")),
        ] {
            assert_eq!(parse_certificate(text), Ok(source), "{text}");
        }
        let files = CertificateConfig {
            chain: "a/chain.pem".into(),
            key: "key.pem".into(),
            default: false,
        };
        let parsed = parse_certificate("a/chain.pem,key.pem");
        assert_eq!(parsed, Ok(CertificateSource::Files(files)));
        for bad in [
            "",
            "www",
            ",",
            "a,",
            ",b",
            "a,b,c",
            "*.example.org",
            "*.a.test",
            ".test",
            "https://shop.test",
            "a.b/",
        ] {
            assert!(parse_certificate(bad).is_err(), "{bad}");
        }
    }
}
