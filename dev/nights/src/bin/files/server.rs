//! Servers of the files of a directory, each a process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use catamaran_e2e::Front;
use catamaran_testkit::{Address, Deadline, HttpClient, Process, address};

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Front,
    /// The bool says whether threads read the disk.
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
    /// Its name, and its version if it has one of its own.
    pub(crate) fn title(self) -> anyhow::Result<String> {
        let (program, flag) = match self {
            Self::Front => return Ok("Catamaran".to_owned()),
            Self::Nginx(_) => (NGINX, "-v"),
            Self::Httpd => (HTTPD, "-v"),
        };
        let said = Command::new(program).arg(flag).output()?;
        let said = [said.stdout, said.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let version = said.split(['/', ' ', '\n']).find(|word| {
            let mut parts = word.split('.');
            parts.next().is_some_and(|part| part.parse::<u32>().is_ok()) && parts.next().is_some()
        });
        let name = if self == Self::Httpd {
            "httpd"
        } else {
            "nginx"
        };
        Ok(format!("{name} {}", version.context("a version")?))
    }

    /// Starts it with one worker.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub(crate) fn start(self, root: &Path) -> anyhow::Result<Server> {
        let shown = root.display();
        if self == Self::Front {
            let front = Front::with_tables(&format!(
                "[server]\nworkers = 1\n[[route]]\nfiles = \"{shown}\"\n[log]\naccess = \"off\"\n"
            ))?;
            return Ok(Server {
                address: front.address(),
                process: Running::Front(Box::new(front)),
            });
        }
        let address = address::unused()?;
        let directory = tempfile::tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let at = directory.path().display();
        let (program, text) = match self {
            Self::Nginx(threads) => {
                let aio = if threads { "aio threads;" } else { "" };
                let text = NGINX_CONF.replace("{aio}", aio);
                (NGINX, text)
            }
            Self::Httpd | Self::Front => (HTTPD, HTTPD_CONF.to_owned()),
        };
        let text = text
            .replace("{at}", &at.to_string())
            .replace("{address}", &address.to_string())
            .replace("{root}", &shown.to_string());
        let file = directory.path().join("server.conf");
        fs::write(&file, text)?;
        let mut command = Command::new(program);
        match self {
            Self::Nginx(_) => command.args(["-e", "stderr", "-c"]).arg(file),
            Self::Httpd | Self::Front => command.args(["-X", "-f"]).arg(file),
        };
        let mut process = Process::spawn_in(&mut command, directory)?;
        let listens = Address::from(address);
        let ended = Deadline::default().poll(format!("{self:?}"), || {
            let connected = listens.connect(Deadline::DEFAULT).is_ok();
            let ended = !connected && !matches!(process.try_wait(), Ok(None));
            (connected || ended).then_some(ended)
        })?;
        ensure!(!ended, "{self:?} did not start: {}", process.stderr());
        Ok(Server {
            process: Running::Other(process),
            address,
        })
    }
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
