//! Our front, nginx and HAProxy with similar settings.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use catamaran_e2e::Front;
use catamaran_testkit::{Address, Deadline, Process, address};

/// What all servers of a run share.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The directory of `www.pem` and `www.key`, which are for `localhost`.
    pub(crate) certificates: PathBuf,
    /// The certificate of their issuer, as DER.
    pub(crate) authority: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Nginx,
    HaProxy,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The address for HTTP/2 without TLS.
    pub(crate) clear: SocketAddr,
    pub(crate) tls: SocketAddr,
    _process: Running,
}

#[derive(Debug)]
#[expect(dead_code, reason = "they are kept running")]
enum Running {
    Ours(Front),
    Other(Process),
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Nginx, Self::HaProxy];

    /// The name and the version.
    pub(crate) fn title(self) -> anyhow::Result<String> {
        let (name, program) = match self {
            Self::Ours => return Ok("Catamaran".to_owned()),
            Self::Nginx => ("nginx", "nginx"),
            Self::HaProxy => ("HAProxy", "haproxy"),
        };
        // nginx prints its version on stderr, HAProxy on stdout.
        let output = Command::new(program).arg("-v").output().context(program)?;
        let bytes = [output.stderr, output.stdout].concat();
        let text = String::from_utf8_lossy(&bytes);
        let mut words = text.split([' ', '/', '-', '\n']);
        let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let version = words.find(is_version).context("a version")?;
        Ok(format!("{name} {version}"))
    }

    /// Starts the server before `backend`. With `trusts`, our front takes its clients for balancers.
    pub(crate) fn start(
        self,
        stage: &Stage,
        backend: SocketAddr,
        trusts: bool,
    ) -> anyhow::Result<Server> {
        match self {
            Self::Ours => ours(stage, backend, trusts),
            Self::Nginx => other(stage, &nginx(backend)),
            Self::HaProxy => other(stage, &haproxy(backend)),
        }
    }
}

/// Starts our front: the first listener speaks HTTP/2 without TLS, the second one has TLS.
fn ours(stage: &Stage, backend: SocketAddr, trusts: bool) -> anyhow::Result<Server> {
    let trusted = if trusts {
        "trusted_proxies = [\"127.0.0.0/8\"]\n"
    } else {
        ""
    };
    let folder = stage.certificates.display();
    let front = Front::with_config(&format!(
        "[server]\nworkers = 2\n{trusted}[log]\naccess = \"off\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"h2\"]\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [[tls.www.certificate]]\nchain = \"{folder}/www.pem\"\nkey = \"{folder}/www.key\"\n\
         [[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"http://{backend}\"\nconnections_max = 200\n"
    ))?;
    let line = front.wait_for_log("listening on https://")?;
    let (_, tls) = line.rsplit_once("https://").context("an address")?;
    Ok(Server {
        clear: front.address(),
        tls: tls.trim().parse()?,
        _process: Running::Ours(front),
    })
}

/// A program, its arguments, and its file, in which `{clear}`, `{tls}`, `{pem}`, `{key}` and `{directory}` are
/// replaced at the start.
struct Program {
    command: &'static [&'static str],
    file: String,
}

/// nginx, as [`other`] starts it.
fn nginx(backend: SocketAddr) -> Program {
    Program {
        command: &["nginx", "-c", "{directory}/file", "-p", "{directory}"],
        file: format!(
            "daemon off;\nuser root;\npid {{directory}}/pid;\nerror_log stderr;\nworker_processes 2;\n\
             events {{ worker_connections 10000; }}\nhttp {{\n\
             access_log off;\nproxy_temp_path {{directory}}/proxy;\n\
             client_body_temp_path {{directory}}/body;\n\
             ssl_certificate {{pem}};\nssl_certificate_key {{key}};\n\
             upstream app {{ zone app 64k; server {backend} max_conns=200; keepalive 32; }}\n\
             server {{\nlisten {{clear}} http2 backlog=4096;\nlisten {{tls}} ssl http2 backlog=4096;\n\
             location / {{ proxy_pass http://app; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; }}\n}}\n}}\n"
        ),
    }
}

/// HAProxy, as [`other`] starts it.
fn haproxy(backend: SocketAddr) -> Program {
    Program {
        command: &["haproxy", "-db", "-f", "{directory}/file"],
        file: format!(
            "global\n nbthread 2\n maxconn 20000\n no strict-limits\ndefaults\n mode http\n \
             timeout connect 5s\n timeout client 50s\n timeout server 50s\n\
             frontend front\n maxconn 20000\n bind {{clear}} proto h2 backlog 4096\n \
             bind {{tls}} ssl crt {{both}} alpn h2,http/1.1 backlog 4096\n default_backend app\n\
             backend app\n server app {backend} maxconn 200\n"
        ),
    }
}

/// Starts nginx or HAProxy, by the program's file with names and addresses filled in.
fn other(stage: &Stage, program: &Program) -> anyhow::Result<Server> {
    let directory = tempfile::tempdir()?;
    let (clear, tls) = (address::unused()?, address::unused()?);
    let [pem, key] = ["www.pem", "www.key"].map(|name| stage.certificates.join(name));
    // HAProxy needs the certificate and the key in one file.
    let joined = directory.path().join("both.pem");
    fs::write(&joined, [fs::read(&pem)?, fs::read(&key)?].concat())?;
    let fill = |text: &str| {
        text.replace("{directory}", &directory.path().to_string_lossy())
            .replace("{clear}", &clear.to_string())
            .replace("{tls}", &tls.to_string())
            .replace("{pem}", &pem.to_string_lossy())
            .replace("{key}", &key.to_string_lossy())
            .replace("{both}", &joined.to_string_lossy())
    };
    fs::write(directory.path().join("file"), fill(&program.file))?;
    let words: Vec<String> = program.command.iter().map(|word| fill(word)).collect();
    let (name, arguments) = words.split_first().context("a command")?;
    let mut process = Process::spawn_in(Command::new(name).args(arguments), directory)?;
    let listener = Address::from(tls);
    let is_running = Deadline::default().poll(format!("{name} on {tls}"), || {
        if listener.connect(Deadline::DEFAULT).is_ok() {
            return Some(true);
        }
        match process.try_wait() {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => Some(false),
        }
    })?;
    ensure!(is_running, "{name} did not start: {}", process.stderr());
    Ok(Server {
        clear,
        tls,
        _process: Running::Other(process),
    })
}
