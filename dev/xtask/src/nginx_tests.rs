//! Runs nginx's own tests with nginx, and with the front that has nginx's file imported. Counts how many of the
//! subtests that nginx passes the front passes, and says why it fails the others.
//!
//! It is no part of `ci`: the tests are a checkout of another project, and take a quarter of an hour.

mod outcome;
mod reasons;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, bail, ensure};
use catamaran_tier::needs::package;

use crate::needs;
use crate::nginx_tests::outcome::{Comparison, Outcome};
use crate::nginx_tests::reasons::Reasons;
use crate::step::{Steps, say};
use crate::test::{self, BINARY};

/// Runs the tests of `suite`, a checkout of `nginx/nginx-tests`, with nginx and with the front.
///
/// # Errors
/// The front serves what nginx refuses, does not start, passes fewer subtests than [`reasons::PASSED_MIN`], or fails a
/// test that has no row in `reasons.txt`.
pub(crate) fn run(steps: &mut Steps, root: &Path, suite: &Path) -> anyhow::Result<()> {
    let suite = fs::canonicalize(suite).with_context(|| suite.display().to_string())?;
    let names = names(&suite)?;
    let reasons = Reasons::read()?;
    steps.run("install what the run needs", || {
        needs::install(&needs::of_tests())?;
        needs::install(&[
            package("libio-socket-ssl-perl", "/usr/share/perl5/IO/Socket/SSL.pm"),
            package(
                "libcryptx-perl",
                "/usr/lib/x86_64-linux-gnu/perl5/5.36/CryptX.pm",
            ),
        ])
    })?;
    let binary = test::binary(steps, root)?;
    let folder = test::target_directory(root)?.join("nginx-tests");
    let stage = Stage::set(&folder, suite, binary)?;
    let by_nginx = steps.run("nginx", || stage.run(&names, "nginx"))?;
    let by_front = steps.run("the front", || stage.run(&names, "front"))?;
    let comparison = Comparison::new(&by_nginx, &by_front);
    say(&comparison.table());
    say(&format!(
        "what import and check said is in {}",
        folder.display()
    ));
    let faults = reasons.faults(&comparison);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The names of the tests that concern a front, without `.t`.
fn names(suite: &Path) -> anyhow::Result<Vec<String>> {
    ensure!(
        suite.join("lib/Test/Nginx.pm").is_file(),
        "{} is no checkout of nginx/nginx-tests",
        suite.display()
    );
    let mut names = Vec::new();
    for entry in fs::read_dir(suite)? {
        let file = entry?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".t"));
        names.extend(name.map(ToOwned::to_owned));
    }
    names.retain(|name| !OTHERS.iter().any(|other| name.starts_with(other)));
    names.sort();
    Ok(names)
}

/// The folder and the programs with which the tests run.
struct Stage {
    /// The folder with the programs that stand in for nginx and, for each of them, what its tests left.
    folder: PathBuf,
    suite: PathBuf,
    binary: OsString,
}

impl Stage {
    /// Empties the folder and writes the stand-ins into it.
    fn set(folder: &Path, suite: PathBuf, binary: OsString) -> anyhow::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let temporary = folder.join("tmp");
        fs::create_dir_all(&temporary)?;
        // The workers of nginx run as another user.
        fs::set_permissions(temporary, Permissions::from_mode(0o777))?;
        fs::write(
            folder.join("Relaxed.pm"),
            include_str!("nginx_tests/Relaxed.pm"),
        )?;
        for (name, text) in [
            ("nginx.sh", include_str!("nginx_tests/nginx.sh")),
            ("front.sh", include_str!("nginx_tests/front.sh")),
        ] {
            let path = folder.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            suite,
            binary,
        })
    }

    /// Runs the tests, two at a time, with `server` in place of nginx.
    fn run(&self, names: &[String], server: &str) -> anyhow::Result<BTreeMap<String, Outcome>> {
        let waiting: Mutex<VecDeque<&String>> = Mutex::new(names.iter().collect());
        let take = || waiting.lock().ok()?.pop_front();
        let work = || -> anyhow::Result<Vec<(String, Outcome)>> {
            let mut outcomes = Vec::new();
            while let Some(name) = take() {
                outcomes.push((name.clone(), self.run_one(name, server)?));
            }
            Ok(outcomes)
        };
        thread::scope(|scope| {
            let workers = [scope.spawn(work), scope.spawn(work)];
            let mut all = BTreeMap::new();
            for worker in workers {
                match worker.join() {
                    Ok(outcomes) => all.extend(outcomes?),
                    Err(_) => bail!("a thread that runs tests panicked"),
                }
            }
            Ok(all)
        })
    }

    fn run_one(&self, name: &str, server: &str) -> anyhow::Result<Outcome> {
        let kept = self.folder.join(server).join(name);
        fs::create_dir_all(&kept)?;
        let (out, err) = (kept.join("out"), kept.join("err"));
        let mut library = OsString::from("-I");
        library.push(&self.folder);
        // The status is ignored: other than 0 it says that subtests failed, which the output also says.
        Command::new("timeout")
            .args(["--kill-after=5", SECONDS_MAX, "perl"])
            .arg(library)
            .args(["-MRelaxed", &format!("{name}.t")])
            .current_dir(&self.suite)
            .env(
                "TEST_NGINX_BINARY",
                self.folder.join(format!("{server}.sh")),
            )
            .env("TMPDIR", self.folder.join("tmp"))
            .env("KEEP", &kept)
            .env(BINARY, &self.binary)
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .status()
            .context("cannot run perl")?;
        let text = |path: &Path| -> anyhow::Result<String> {
            Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
        };
        let is_refused = kept.join("refused").exists();
        Ok(Outcome::read(&text(&out)?, &text(&err)?, is_refused))
    }
}

/// The longest that one test may take, in seconds.
const SECONDS_MAX: &str = "60";

/// Prefixes of the names of tests of features that a front does not have: other protocols, languages inside nginx,
/// filters of images and documents, nginx's processes.
const OTHERS: &[&str] = &[
    "stream",
    "mail",
    "fastcgi",
    "uwsgi",
    "scgi",
    "grpc",
    "perl",
    "js_",
    "quic",
    "h3_",
    "imap",
    "smtp",
    "pop3",
    "memcached",
    "geoip",
    "image_filter",
    "xslt",
    "ssi",
    "mp4",
    "flv",
    "dav",
    "slice",
    "secure_link",
    "random_index",
    "empty_gif",
    "browser",
    "mirror",
    "proxy_store",
    "worker_",
    "debug_",
    "binary_",
    "syslog",
    "acme",
    "oidc",
    "tunnel",
    "server_tokens",
    "userid",
    "addition",
    "sub_filter",
    "charset",
    "lua",
];
