//! Servers of the files of a directory, each as a process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use catamaran_e2e::Front;
use catamaran_testkit::{Address, Deadline, HttpClient, Process, address};

/// The program that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Front,
    /// With `true`, threads read the disk (`aio threads`).
    Nginx(bool),
    Httpd,
}

/// A running server.
pub(crate) struct Server {
    process: Running,
    address: SocketAddr,
}

enum Running {
    Front(Box<Front>),
    Other(Process),
}

impl Kind {
    /// The name, and the version of nginx and httpd.
    pub(crate) fn title(self) -> anyhow::Result<String> {
        let (name, program) = match self {
            Self::Front => return Ok("Catamaran".to_owned()),
            Self::Nginx(_) => ("nginx", NGINX),
            Self::Httpd => ("httpd", HTTPD),
        };
        // httpd prints its version on stdout, nginx on stderr.
        let output = Command::new(program).arg("-v").output()?;
        let bytes = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&bytes);
        let version = text.split(['/', ' ', '\n']).find(|word| {
            let major = word.split_once('.').map(|(major, _)| major.parse::<u32>());
            matches!(major, Some(Ok(_)))
        });
        Ok(format!("{name} {}", version.context("a version")?))
    }

    /// Starts the server with one worker.
    ///
    /// # Errors
    /// The server is not installed, or does not start.
    pub(crate) fn start(self, root: &Path) -> anyhow::Result<Server> {
        match self {
            Self::Front => start_front(root),
            Self::Nginx(threads) => {
                let aio = if threads { "aio threads;" } else { "" };
                let text = NGINX_CONF.replace("{aio}", aio);
                start_other(NGINX, &["-e", "stderr", "-c"], &text, root)
            }
            Self::Httpd => start_other(HTTPD, &["-X", "-f"], HTTPD_CONF, root),
        }
    }
}

fn start_front(root: &Path) -> anyhow::Result<Server> {
    let root = root.display();
    let front = Front::with_tables(&format!(
        "[server]\nworkers = 1\n[[route]]\nfiles = \"{root}\"\n[log]\naccess = \"off\"\n"
    ))?;
    Ok(Server {
        address: front.address(),
        process: Running::Front(Box::new(front)),
    })
}

/// Starts `program` with `flags` and a file of the text `conf`, whose places are filled in; waits until it listens.
fn start_other(program: &str, flags: &[&str], conf: &str, root: &Path) -> anyhow::Result<Server> {
    let address = address::unused()?;
    let directory = tempfile::tempdir()?;
    // Servers that were started as root serve as another user, who must reach their files here.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    let text = conf
        .replace("{at}", &directory.path().display().to_string())
        .replace("{address}", &address.to_string())
        .replace("{root}", &root.display().to_string());
    let file = directory.path().join("server.conf");
    fs::write(&file, text)?;
    let mut command = Command::new(program);
    command.args(flags).arg(file);
    let mut process = Process::spawn_in(&mut command, directory)?;
    let has_started = starts(&mut process, address, program)?;
    ensure!(has_started, "{program} did not start: {}", process.stderr());
    Ok(Server {
        process: Running::Other(process),
        address,
    })
}

/// Waits until the process listens (`true`) or has ended (`false`).
fn starts(process: &mut Process, address: SocketAddr, program: &str) -> anyhow::Result<bool> {
    let address = Address::from(address);
    let has_started = Deadline::default().poll(program, || {
        if address.connect(Deadline::DEFAULT).is_ok() {
            return Some(true);
        }
        let is_running = matches!(process.try_wait(), Ok(None));
        (!is_running).then_some(false)
    })?;
    Ok(has_started)
}

impl Server {
    pub(crate) fn connect(&self) -> anyhow::Result<HttpClient> {
        Ok(HttpClient::connect(self.address)?)
    }

    pub(crate) fn id(&mut self) -> u32 {
        match &mut self.process {
            Running::Front(front) => front.process().id(),
            Running::Other(process) => process.id(),
        }
    }
}

const NGINX: &str = "/usr/sbin/nginx";

const HTTPD: &str = "/usr/sbin/apache2";

const NGINX_CONF: &str = "\
daemon off;
master_process off;
pid {at}/nginx.pid;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    sendfile on;
    {aio}
    open_file_cache max=1000;
    open_file_cache_valid 1s;
    gzip_static on;
    gzip_vary on;
    server {
        listen {address};
        root {root};
        index index.html;
    }
}
";

/// The rules for compressed files are those of httpd's own documentation (mod_deflate, mod_brotli).
const HTTPD_CONF: &str = r#"
ServerRoot {at}
ServerName localhost
Listen {address}
PidFile httpd.pid
ErrorLog /dev/stderr
Mutex file:{at}
DefaultRuntimeDir {at}
User nobody
Group nogroup
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
TypesConfig /etc/mime.types
DocumentRoot {root}
DirectoryIndex index.html
<Directory {root}>
    Require all granted
    Options FollowSymLinks
    RewriteEngine On
    RewriteCond "%{HTTP:Accept-Encoding}" "br"
    RewriteCond "%{REQUEST_FILENAME}\.br" "-s"
    RewriteRule "^(.*)\.css" "$1\.css\.br" [QSA]
    RewriteCond "%{HTTP:Accept-Encoding}" "br"
    RewriteCond "%{REQUEST_FILENAME}\.br" "-s"
    RewriteRule "^(.*)\.js" "$1\.js\.br" [QSA]
    RewriteCond "%{HTTP:Accept-encoding}" "gzip"
    RewriteCond "%{REQUEST_FILENAME}\.gz" "-s"
    RewriteRule "^(.*)\.css" "$1\.css\.gz" [QSA]
    RewriteCond "%{HTTP:Accept-encoding}" "gzip"
    RewriteCond "%{REQUEST_FILENAME}\.gz" "-s"
    RewriteRule "^(.*)\.js" "$1\.js\.gz" [QSA]
    RewriteRule "\.css\.br$" "-" [T=text/css,E=no-brotli:1]
    RewriteRule "\.js\.br$" "-" [T=text/javascript,E=no-brotli:1]
    RewriteRule "\.css\.gz$" "-" [T=text/css,E=no-gzip:1]
    RewriteRule "\.js\.gz$" "-" [T=text/javascript,E=no-gzip:1]
    <FilesMatch "(\.js\.br|\.css\.br)$">
        Header append Content-Encoding br
        Header append Vary Accept-Encoding
    </FilesMatch>
    <FilesMatch "(\.js\.gz|\.css\.gz)$">
        Header append Content-Encoding gzip
        Header append Vary Accept-Encoding
    </FilesMatch>
</Directory>
"#;
