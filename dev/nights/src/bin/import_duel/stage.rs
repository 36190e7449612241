//! Runs a configuration on its own server, and its import on the front.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use anyhow::Context as _;
use catamaran_e2e::{Front, binary};
use catamaran_testkit::{Address, Deadline, Process, address};
use tempfile::TempDir;

use crate::tree::{Conf, MAIN};

/// The server to which the configuration belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Httpd,
    Nginx,
}

/// The backends and addresses that all configurations of a thread use.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// The addresses at which the source listens: `{a}` and `{b}`.
    pub(crate) source: [SocketAddr; 2],
    /// The addresses at which the front listens instead.
    pub(crate) front: [SocketAddr; 2],
    /// The backends: `{one}` and `{two}`.
    pub(crate) backends: [SocketAddr; 2],
}

/// The running server of the source.
pub(crate) struct Source {
    _process: Process,
    directory: TempDir,
}

/// The result of an import.
pub(crate) enum Imported {
    /// The front runs.
    Serves {
        _front: Front,
        /// The report of the command.
        said: String,
        /// Addresses in the written file at which the source does not listen.
        wider: Vec<String>,
    },
    /// The command failed, or the front refuses what it wrote.
    Fails(String),
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Httpd, Self::Nginx];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Httpd => "httpd",
            Self::Nginx => "nginx",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The configuration with the directives that the server needs to start.
    fn text(self, body: &str) -> String {
        match self {
            Self::Nginx => NGINX.replace("{body}", body),
            Self::Httpd => {
                let load = |it: &&str| {
                    format!("LoadModule {it}_module /usr/lib/apache2/modules/mod_{it}.so\n")
                };
                let modules: String = MODULES.iter().map(load).collect();
                HTTPD.replace("{modules}", &modules).replace("{body}", body)
            }
        }
    }

    /// The command that runs the server in the foreground with this file.
    fn command(self, file: &Path) -> Command {
        let mut command = match self {
            Self::Nginx => Command::new("/usr/sbin/nginx"),
            Self::Httpd => Command::new("/usr/sbin/apache2"),
        };
        match self {
            Self::Nginx => command.args(["-e", "stderr", "-c"]).arg(file),
            Self::Httpd => command.args(["-X", "-DONE", "-f"]).arg(file),
        };
        command
    }
}

impl Addresses {
    pub(crate) fn new(backends: [SocketAddr; 2]) -> io::Result<Self> {
        Ok(Self {
            source: [address::unused()?, address::unused()?],
            front: [address::unused()?, address::unused()?],
            backends,
        })
    }

    /// The text with its placeholders filled in.
    fn fill(&self, text: &str, place: &Path) -> String {
        let names = ["{a}", "{b}", "{one}", "{two}"];
        let addresses = self.source.iter().chain(&self.backends);
        let mut filled = text.replace("{place}", &place.display().to_string());
        for (name, address) in names.iter().zip(addresses) {
            filled = filled.replace(name, &address.to_string());
        }
        for (name, address) in ["{port_a}", "{port_b}"].iter().zip(self.source) {
            filled = filled.replace(name, &address.port().to_string());
        }
        filled
    }

    /// Replaces the source's addresses in the written file by the front's, and finds those that the source does not
    /// have.
    fn moved(&self, written: &str, source: &str) -> io::Result<(String, Vec<String>)> {
        let mut text = written.to_owned();
        let mut wider = Vec::new();
        for (from, to) in self.source.iter().zip(self.front) {
            let quoted = format!("\"{from}\"");
            if text.contains(&quoted) && !source.contains(&from.to_string()) {
                wider.push(from.to_string());
            }
            text = text.replace(&quoted, &format!("\"{to}\""));
        }
        // The addresses that are left have another host, such as `[::]`, or a port that the importer has chosen.
        let listens = text
            .lines()
            .filter_map(|line| line.strip_prefix("address = \"")?.strip_suffix('"'));
        let addresses: Vec<String> = listens.map(str::to_owned).collect();
        for address in addresses {
            let Some((host, port)) = address.rsplit_once(':') else {
                continue;
            };
            if self.front.iter().any(|it| it.to_string() == address) {
                continue;
            }
            let is_wide = matches!(host, "[::]" | "0.0.0.0");
            let mut words = ["*:", "listen ", "Listen "].iter();
            if is_wide && !words.any(|it| source.contains(&format!("{it}{port}"))) {
                wider.push(address.clone());
            }
            let mut own_ports = self.source.iter().map(|it| it.port().to_string());
            let to = match own_ports.position(|it| it == port) {
                Some(position) => self.front[position],
                None => address::unused()?,
            };
            text = text.replace(&format!("\"{address}\""), &format!("\"{to}\""));
        }
        Ok((text, wider))
    }
}

/// Starts the source's server; `None` if it refuses the configuration.
pub(crate) fn source(
    kind: Kind,
    conf: &Conf,
    addresses: &Addresses,
) -> anyhow::Result<Option<Source>> {
    let directory = placed(kind, conf, addresses)?;
    let mut process = Process::spawn(&mut kind.command(&directory.path().join(MAIN)))?;
    let deadline = Deadline::after(PATIENCE);
    let is_up = deadline.poll("the source's server", || {
        let has_ended = !matches!(process.try_wait(), Ok(None));
        let listens = || {
            let mut all = addresses.source.iter();
            all.any(|it| Address::from(*it).connect(PATIENCE).is_ok())
        };
        (has_ended || listens()).then_some(!has_ended)
    });
    if !is_up? {
        return Ok(None);
    }
    Ok(Some(Source {
        _process: process,
        directory,
    }))
}

/// Imports a configuration, and starts the front with the result.
pub(crate) fn import(
    kind: Kind,
    conf: &Conf,
    addresses: &Addresses,
    beside: &Source,
) -> anyhow::Result<Imported> {
    // The directory is that of the source's file, which the server may still read.
    let place = beside.directory.path();
    let main = &conf.0.first().context("a configuration has a file")?.1;
    let filled = addresses.fill(&kind.text(main), place);
    fs::write(place.join(IMPORTED), &filled)?;
    let mut command = Command::new(binary()?);
    command
        .args([
            "import", "--define", "ONE", "--force", "--out", OUT, IMPORTED,
        ])
        .current_dir(place);
    let mut process = Process::spawn(&mut command)?;
    let status = process.wait(Deadline::after(PATIENCE))?;
    let said = process.stderr();
    if !matches!(status.code(), Some(0 | 1)) {
        return Ok(Imported::Fails(format!("import: {status}: {said}")));
    }
    let out = place.join(OUT);
    let written = fs::read_to_string(&out).context("the written file")?;
    let all: String = conf.0.iter().map(|(_, text)| text.as_str()).collect();
    let (moved, wider) = addresses.moved(&written, &addresses.fill(&all, place))?;
    if !moved.contains("[[listen]]") {
        return Ok(Imported::Fails(format!("no listener was written: {said}")));
    }
    fs::write(&out, &moved)?;
    match Front::with_file(&out, &[]) {
        Ok(front) => Ok(Imported::Serves {
            _front: front,
            said,
            wider,
        }),
        Err(error) => Ok(Imported::Fails(
            format!("serve: {error:#}").replace('\n', " "),
        )),
    }
}

/// Makes a directory with the configuration, and with the files that are served.
fn placed(kind: Kind, conf: &Conf, addresses: &Addresses) -> anyhow::Result<TempDir> {
    // Sections of directories whose names begin with a dot are not about all of it.
    let directory = tempfile::Builder::new().prefix("duel-").tempdir()?;
    let place = directory.path();
    for (folder, files) in FOLDERS {
        fs::create_dir_all(place.join(folder))?;
        for name in *files {
            let file = place.join(folder).join(name);
            fs::create_dir_all(file.parent().context("a file has a folder")?)?;
            fs::write(file, format!("FILE {folder}/{name}\n"))?;
        }
    }
    for (name, text) in USERS {
        fs::write(place.join(name), text)?;
    }
    for (name, text) in &conf.0 {
        let whole = if name == MAIN {
            kind.text(text)
        } else {
            text.clone()
        };
        let file = place.join(name);
        fs::create_dir_all(file.parent().context("a file has a folder")?)?;
        fs::write(file, addresses.fill(&whole, place))?;
    }
    Ok(directory)
}

/// The directories and their files: the document root, and others outside of it.
pub(crate) const FOLDERS: &[(&str, &[&str])] = &[
    (
        "site",
        &[
            "index.html",
            "a.html",
            "err.html",
            ".hidden",
            ".git/config",
            ".well-known/x",
            "admin/index.html",
            "admin/secret.txt",
            "shop/index.html",
            "shop/1",
            "app/index.html",
            "app/admin/x.txt",
            "up/x.html",
            "up/y.txt",
        ],
    ),
    ("other", &["index.html", "secret.txt", "admin/index.html"]),
    ("empty", &[]),
];

/// Files of users, whose password is `password`, and of groups. The front does not take the second one.
const USERS: &[(&str, &str)] = &[
    (
        "htpasswd",
        "user:$apr1$duelduel$D7z6pNy105zCV/qjVlu/D.\nother:$apr1$duelduel$D7z6pNy105zCV/qjVlu/D.\n",
    ),
    ("fast.htpasswd", "user:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"),
    ("groups", "staff: user\n"),
];

const IMPORTED: &str = "imported.conf";

const OUT: &str = "out.toml";

/// How long a start may take; all starts are much faster.
const PATIENCE: Duration = Duration::from_secs(30);

const NGINX: &str = "daemon off;
master_process off;
pid {place}/nginx.pid;
events { }
http {
access_log off;
include /etc/nginx/mime.types;
client_body_temp_path {place}/1;
proxy_temp_path {place}/2;
fastcgi_temp_path {place}/3;
uwsgi_temp_path {place}/4;
scgi_temp_path {place}/5;
{body}}
";

const HTTPD: &str = "ServerRoot {place}
ServerName localhost
PidFile httpd.pid
ErrorLog /dev/stderr
Mutex file:{place}
DefaultRuntimeDir {place}
ThreadsPerChild 5
StartServers 1
MaxRequestWorkers 5
ServerLimit 1
{modules}TypesConfig /etc/mime.types
{body}";

const MODULES: &[&str] = &[
    "mpm_event",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_groupfile",
    "authz_host",
    "authz_user",
    "auth_basic",
    "access_compat",
    "allowmethods",
    "alias",
    "dir",
    "env",
    "headers",
    "mime",
    "negotiation",
    "autoindex",
    "remoteip",
    "rewrite",
    "setenvif",
    "actions",
    "proxy",
    "proxy_http",
];
