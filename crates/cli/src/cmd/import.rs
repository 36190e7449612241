//! `import`: converts a configuration of mod_jk, httpd or nginx into a file of the front, and can compare
//! both servers by the requests of a log.

mod replay;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catamaran_config::Severity;
use catamaran_import::{Files, Import, Kind, Options};

use crate::failure::Failure;

/// Convert a configuration of mod_jk, httpd or nginx into a file of the front
///
/// Exit 0: everything is mapped or not needed. Exit 1: something needs a decision; the file is written all
/// the same. Exit 2: the source cannot be read.
#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// The server that the configuration is of [default: recognised by its content]
    #[arg(long, value_name = "KIND")]
    kind: Option<KindArg>,

    /// The directory that absolute paths of the source start from
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// A variable of the source, or a name for `IfDefine`; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    define: Vec<String>,

    /// Only the virtual host with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    vhost: Vec<String>,

    /// nginx's prefix, which a relative `root` or `alias` starts from; `nginx -V` shows it
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// The old server at its new address, which gets what cannot be converted
    #[arg(long, value_name = "URL")]
    keep: Option<String>,

    /// The `server.xml` of a Tomcat behind the source, for secrets, packet sizes and times; may be repeated
    #[arg(long, value_name = "FILE")]
    tomcat: Vec<PathBuf>,

    /// An address in the place of the source's first, second, ... one; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Vec<String>,

    /// Where the file is written, with secrets in files beside it [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Overwrite existing files
    #[arg(long, requires = "out")]
    force: bool,

    /// The form of the report
    #[arg(long, value_name = "FORM", default_value = "text")]
    report: ReportForm,

    /// The files of the source
    #[arg(
        value_name = "FILE",
        required_unless_present = "replay",
        conflicts_with = "replay"
    )]
    files: Vec<PathBuf>,

    #[command(flatten)]
    replay: replay::ReplayArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum KindArg {
    ModJk,
    Httpd,
    Nginx,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ReportForm {
    Text,
    Json,
}

fn listen_address(text: &str) -> Result<String, String> {
    let parsed = catamaran_config::parse_listen_address(text);
    parsed
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    let result = if args.replay.is_asked() {
        args.replay.run()
    } else {
        convert(args)
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.exit(),
    }
}

fn convert(args: &ImportArgs) -> Result<ExitCode, Failure> {
    if let Some(url) = &args.keep {
        catamaran_config::parse_upstream_url(url)
            .map_err(|error| Failure::Usage(format!("--keep: {error}")))?;
    }
    let options = options(args);
    let disk = Disk {
        root: args.root.clone(),
        given: [&args.files[..], &args.tomcat].concat(),
    };
    let import = catamaran_import::import(&disk, &options)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    match &args.out {
        Some(out) => write_files(&import, out, args.force)?,
        None => io::stdout().write_all(import.text.as_bytes())?,
    }
    print_report(&import, args)?;
    Ok(ExitCode::from(u8::from(import.risks() > 0)))
}

/// The options of the import, from the command line.
fn options(args: &ImportArgs) -> Options {
    let define = |text: &String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text.clone(), String::new()),
    };
    Options {
        kind: args.kind.map(|kind| match kind {
            KindArg::ModJk => Kind::ModJk,
            KindArg::Httpd => Kind::Httpd,
            KindArg::Nginx => Kind::Nginx,
        }),
        files: args.files.clone(),
        defines: args.define.iter().map(define).collect(),
        vhosts: args
            .vhost
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect(),
        prefix: args.prefix.clone(),
        keep: args.keep.clone(),
        tomcats: args.tomcat.clone(),
        listens: args.listen.clone(),
        inline_secrets: args.out.is_none(),
        secrets_of: secrets_of(args.out.as_deref()),
    }
}

/// Prints the report: as JSON to standard output if the configuration goes to a file, otherwise to standard error.
fn print_report(import: &Import, args: &ImportArgs) -> Result<(), Failure> {
    let report = match args.report {
        ReportForm::Text => import.report(),
        ReportForm::Json => {
            let document = serde_json::to_string_pretty(&import.document());
            document.map_err(|error| Failure::of(&error))? + "\n"
        }
    };
    let is_stdout_free = args.out.is_some();
    match args.report {
        ReportForm::Json if is_stdout_free => io::stdout().write_all(report.as_bytes())?,
        ReportForm::Json | ReportForm::Text => io::stderr().write_all(report.as_bytes())?,
    }
    Ok(())
}

/// The prefix of the names of the files with secrets: `shop.` if the configuration is written to `shop.toml`; empty
/// if it goes to standard output.
fn secrets_of(out: Option<&Path>) -> String {
    let stem = out.and_then(Path::file_stem);
    stem.map_or_else(String::new, |it| format!("{}.", it.to_string_lossy()))
}

/// Writes the configuration and the files with secrets beside it, which only their owner may read.
fn write_files(import: &Import, out: &Path, force: bool) -> Result<(), Failure> {
    let folder = out.parent().unwrap_or_else(|| Path::new(""));
    let mut files = Vec::new();
    for secret in &import.files {
        files.push((folder.join(&secret.name), &secret.text, 0o600));
    }
    files.push((out.to_owned(), &import.text, 0o644));
    if !force && let Some((path, ..)) = files.iter().find(|(path, ..)| path.exists()) {
        let message = format!("{} is there already; --force overwrites it", path.display());
        return Err(Failure::Usage(message));
    }
    for (path, text, mode) in files {
        let failed =
            |error: io::Error| Failure::Usage(format!("cannot write {}: {error}", path.display()));
        // Removed first, because a file that exists would keep its mode.
        if force && path.exists() {
            fs::remove_file(&path).map_err(failed)?;
        }
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut file = options.open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(())
}

/// The files of this machine; absolute paths of the source are taken to be below `root`.
struct Disk {
    root: Option<PathBuf>,
    /// The files that the command line names. Their paths are used as they are.
    given: Vec<PathBuf>,
}

impl Disk {
    /// The path below `--root`, if there is one. Paths of the command line, and those that are below it already, stay as
    /// they are.
    fn path_on_disk(&self, path: &Path) -> PathBuf {
        let is_given = self.given.iter().any(|given| given == path);
        if let Some(root) = &self.root
            && let Ok(relative) = path.strip_prefix("/")
            && !is_given
            && !path.starts_with(root)
        {
            return root.join(relative);
        }
        path.to_owned()
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = self.path_on_disk(path);
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        if fs::metadata(&path)?.len() > FILE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is larger than 16 MiB",
            ));
        }
        fs::read(path)
    }

    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let pattern_on_disk = self.path_on_disk(Path::new(pattern));
        let matches = glob::glob(&pattern_on_disk.to_string_lossy());
        let mut files = Vec::new();
        // What cannot be read is left out.
        for path in matches.into_iter().flatten().flatten() {
            add_files(path, DEPTH_MAX, &mut files);
        }
        files
    }

    fn names(&self, directory: &Path) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.path_on_disk(directory)).ok()?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Some(
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
        )
    }

    fn located(&self, path: &Path) -> String {
        self.path_on_disk(path).display().to_string()
    }

    fn fault(&self, text: &str) -> Option<String> {
        let report = catamaran_config::load_text("the import", text).err()?;
        let mut findings = report.findings().iter();
        let fault = findings.find(|it| matches!(it.severity, Severity::Fault))?;
        Some(format!("{}; {}", fault.message, fault.hint))
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var_os(name)?.into_string().ok()
    }
}

/// Adds a file, or the files in a directory and in those below it, as httpd includes them.
fn add_files(path: PathBuf, levels: usize, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path);
    } else if levels > 0 {
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let mut inner: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        inner.sort();
        let inside = inner.into_iter().filter(|it| it.is_file() || it.is_dir());
        inside.for_each(|it| add_files(it, levels - 1, files));
    }
}

/// The most levels of directories that an included one may have; httpd has a limit of 10.
const DEPTH_MAX: usize = 10;

/// The most bytes of one file.
const FILE_MAX: u64 = 16 << 20;
