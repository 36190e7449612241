//! `demo`: runs a front and an application in one process, joined by AJP.

mod certificate;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use catamaran_config::{parse_listen_address, parse_upstream_url};
use catamaran_connector::{self as connector, App, Listener, Secret, StatusView};
use catamaran_lab::{builtin, doctor};
use catamaran_proxy::BoundAddress;
use catamaran_proxy::config::{self, AdminConfig, BackendConfig, Config, ListenAddress, Protocols};
use certificate::Certificate;

use super::app::DRAIN_TIMEOUT;
use super::lab::own_path;
use super::look::{self, LookSubject};
use super::serve::without_file;
use crate::failure::Failure;
use crate::own_log;
use crate::signals::Signals;

/// Run a front and an application, joined by AJP, in one process on loopback
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Where the front listens [default: 127.0.0.1:8080, with --tls 127.0.0.1:8443, or another port
    /// if that is in use]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    listen: Option<ListenAddress>,

    /// Serve over TLS, with a certificate made on the spot
    #[arg(long)]
    tls: bool,

    /// Run a front and two applications as processes of their own, under a small load, and print how to
    /// look at them
    #[arg(long, conflicts_with_all = ["listen", "tls"])]
    tier: bool,

    /// End --tier after so long, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = catamaran_units::parse_duration, requires = "tier")]
    time: Option<Duration>,
}

impl DemoArgs {
    /// Whether this process itself serves, and does not only start other processes that do.
    pub(crate) fn serves(&self) -> bool {
        !self.tier
    }
}

/// Runs the demo until a signal, or until the time of `--tier` is over.
pub(crate) fn run(args: DemoArgs) -> ExitCode {
    let outcome = if args.tier {
        show_tier(args.time)
    } else {
        run_front(args).map(|()| ExitCode::SUCCESS)
    };
    outcome.unwrap_or_else(Failure::exit)
}

/// Starts the same front and two applications as `lab up` would, but without needing root.
fn show_tier(time: Option<Duration>) -> Result<ExitCode, Failure> {
    let experiment = builtin::demo();
    look::show(LookSubject {
        experiment: &experiment,
        programs: doctor::programs(&own_path()?, &[]),
        is_shared: true,
        is_driven: true,
        time,
    })
}

/// Runs an application and a front before it until a signal asks them to stop.
fn run_front(args: DemoArgs) -> Result<(), Failure> {
    let signals = Signals::catch()?;
    let secret = random_secret()?;
    let application = start_application(&secret)?;
    let application_address = application
        .addresses()
        .first()
        .expect("it was started on one address")
        .to_string();
    let usual_port = if args.tls { 8443 } else { 8080 };
    let listen = args.listen.unwrap_or_else(|| usual_or_free(usual_port));
    let certificate = if args.tls {
        Some(Certificate::make(&listen)?)
    } else {
        None
    };
    let config = front_config(listen, &application_address, secret, certificate.as_ref())?;
    let front = catamaran_proxy::start(config).map_err(|error| Failure::of(&error))?;
    front.count_own_log(own_log::queued());
    let trusted = certificate.as_ref().map(Certificate::chain);
    let admin = front.admin_addresses();
    for url in front.urls() {
        explain(&url, &application_address, trusted.as_deref(), &admin)?;
    }
    signals.wait_for_stop();
    front.drain();
    front.join();
    application.shutdown(DRAIN_TIMEOUT);
    application.join();
    Ok(())
}

/// The configuration of the front: it listens on `listen`, with TLS if there is a certificate, and forwards all requests
/// to the application at `application`.
fn front_config(
    listen: ListenAddress,
    application: &str,
    secret: String,
    certificate: Option<&Certificate>,
) -> Result<Config, Failure> {
    let url = parse_upstream_url(application).expect("a listener is shown as a URL");
    let mut backend = BackendConfig::new(url.protocol, url.address);
    backend.ajp.secret = Some(config::Secret::new(secret));
    let mut front = without_file(vec![listen], vec![backend])?;
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    front.admin = Some(AdminConfig::new(vec![ListenAddress::Tcp(admin)]));
    if let Some(certificate) = certificate {
        front.tls.push(certificate.profile());
        for listener in &mut front.listeners {
            listener.tls = Some(certificate::PROFILE.to_owned());
            listener.protocols = Protocols::Both;
        }
    }
    Ok(front)
}

/// Starts an application on a free port. The secret keeps other users of the machine from using it.
fn start_application(secret: &str) -> Result<connector::Running, Failure> {
    let address = connector::Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let config = connector::Config {
        listeners: vec![Listener {
            protocol: connector::Protocol::Ajp,
            address,
        }],
        secret: Secret::new(secret.to_owned()),
        status: Some(StatusView::default()),
        ..connector::Config::default()
    };
    connector::start(config, App::new()).map_err(|error| Failure::of(&error))
}

fn random_secret() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::Fault(format!("the system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The usual port, or a free one if somebody listens there already, such as another demo.
fn usual_or_free(usual: u16) -> ListenAddress {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, usual));
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    ListenAddress::Tcp(if TcpListener::bind(usual).is_ok() {
        usual
    } else {
        free
    })
}

/// Prints how to try the demo.
///
/// `trusted` is the certificate that clients must trust, if there is TLS; `admin` is the address of the
/// front's admin listener.
fn explain(
    front: &str,
    application: &str,
    trusted: Option<&Path>,
    admin: &[BoundAddress],
) -> io::Result<()> {
    // curl takes the path of a Unix socket as an option, not in the URL.
    let (mut option, url) = match front.split_once("+unix:") {
        Some((scheme, path)) => (
            format!("--unix-socket {path} "),
            format!("{scheme}://localhost"),
        ),
        None => (String::new(), front.to_owned()),
    };
    if let Some(trusted) = trusted {
        option += &format!("--cacert {} ", trusted.display());
    }
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "A front and an application are running, joined by AJP:\n"
    )?;
    writeln!(
        stdout,
        "    you -> front {front} -> application {application}\n"
    )?;
    writeln!(stdout, "Open {url}/ in a browser, or try")?;
    writeln!(stdout, "    curl {option}{url}/snoop")?;
    writeln!(stdout, "    curl {option}--data 'some text' {url}/echo")?;
    writeln!(stdout, "\nWhat the front does is at")?;
    for address in admin {
        writeln!(stdout, "    {address}/")?;
    }
    writeln!(
        stdout,
        "and what the application's connector does, at\n    {url}/_status"
    )?;
    if trusted.is_some() {
        writeln!(
            stdout,
            "\nThe browser warns of the certificate, because no authority that it knows has issued it. \
             Continue all the same.\nThe certificate was made for this demo and is gone at its end."
        )?;
    }
    writeln!(
        stdout,
        "\nEach request is logged below. Press ctrl-C to stop.\n"
    )?;
    stdout.flush()
}
