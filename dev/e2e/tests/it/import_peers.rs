//! Whether the importer's table has every directive that the installed httpd and nginx know. Its own test holds it
//! against the committed list of names; this one holds that list against the servers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The names of the list for some of its servers, in lower case.
fn listed(servers: &[&str]) -> BTreeSet<String> {
    let mut server = "";
    let mut names = BTreeSet::new();
    for line in PEERS.lines().filter(|it| !it.starts_with('#')) {
        match line.strip_prefix('[') {
            Some(heading) => server = heading.trim_end_matches(']'),
            None if servers.contains(&server) => {
                names.extend(line.split_whitespace().map(str::to_lowercase));
            }
            None => {}
        }
    }
    names
}

#[test]
fn httpd_knows_no_directive_that_the_list_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let modules = Path::new("/usr/lib/apache2/modules");
    let files = fs::read_dir(modules).unwrap();
    let name = |it: fs::DirEntry| it.file_name().to_string_lossy().into_owned();
    let names = files.flatten().map(name);
    let stem = |it: String| Some(it.strip_prefix("mod_")?.strip_suffix(".so")?.to_owned());
    let all: BTreeSet<String> = names.filter_map(stem).collect();
    let first = FIRST.iter().copied().filter(|it| all.contains(*it));
    let others = all.iter().map(String::as_str);
    let is_other =
        |it: &&str| !FIRST.contains(it) && !STRANGE.contains(it) && !it.starts_with("mpm_");
    let mut conf = format!(
        "ServerName x\nServerRoot {place}\nErrorLog {place}/log\nPidFile {place}/pid\n",
        place = folder.path().display()
    );
    for it in first.chain(others.filter(is_other)) {
        let file = modules.join(format!("mod_{it}.so"));
        writeln!(conf, "LoadModule {it}_module {}", file.display()).unwrap();
    }
    let path = folder.path().join("all.conf");
    fs::write(&path, conf).unwrap();
    let run = Command::new("/usr/sbin/apache2")
        .args(["-L", "-f"])
        .arg(&path)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&run.stdout).into_owned();
    let known: BTreeSet<String> = shown
        .lines()
        .filter_map(|line| line.split_once(" ("))
        .map(|it| {
            it.0.trim_start_matches('<')
                .trim_end_matches('>')
                .to_lowercase()
        })
        .filter(|it| !it.is_empty() && it.chars().all(|sign| sign.is_alphanumeric() || sign == '_'))
        .collect();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(known.len() > 600, "{} names: {errors}", known.len());
    let listed = listed(&["httpd", "mod_jk"]);
    let missing: Vec<&String> = known.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn nginx_knows_no_directive_that_the_list_lacks() {
    let binary = fs::read("/usr/sbin/nginx").unwrap();
    let known = commands(&binary);
    assert!(known.len() > 500, "{} names", known.len());
    let listed = listed(&["nginx"]);
    let is_left = |it: &&String| !listed.contains(*it) && !NO_DIRECTIVES.contains(&it.as_str());
    let missing: Vec<&String> = known.iter().filter(is_left).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The names in the tables of commands of an nginx binary: each entry begins with a text's length and its address, and
/// then has a word of flags. The addresses are those of relocations.
fn commands(binary: &[u8]) -> BTreeSet<String> {
    let word = |at: usize| -> Option<u64> {
        let bytes = binary.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let half = |at: usize| {
        Some(usize::from(u16::from_le_bytes(
            binary.get(at..at + 2)?.try_into().ok()?,
        )))
    };
    let index = |at: usize| usize::try_from(word(at)?).ok();
    let (Some(programs), Some(sections)) = (index(0x20), index(0x28)) else {
        return BTreeSet::new();
    };
    let (programs_count, sections_count) = (half(0x38).unwrap_or(0), half(0x3c).unwrap_or(0));
    let offset = |address: u64| {
        (0..programs_count).find_map(|number| {
            let at = programs + number * 56;
            let is_loaded = binary.get(at..at + 4)? == [1, 0, 0, 0];
            let inside = address.checked_sub(word(at + 16)?)?;
            let found = is_loaded && inside < word(at + 32)?;
            found.then(|| usize::try_from(word(at + 8)? + inside).ok())?
        })
    };
    let mut names = BTreeSet::new();
    for number in 0..sections_count {
        let at = sections + number * 64;
        let is_relocations = binary.get(at + 4..at + 8) == Some(&[4, 0, 0, 0]);
        let (Some(start), Some(size)) = (index(at + 24), index(at + 32)) else {
            continue;
        };
        for entry in (start..start + size).step_by(24).filter(|_| is_relocations) {
            let name = || {
                let place = offset(word(entry)?)?;
                let text = offset(word(entry + 16)?)?;
                let length = usize::try_from(word(place - 8)?)
                    .ok()
                    .filter(|it| (1..60).contains(it))?;
                let flags = word(place + 8)?;
                let name = std::str::from_utf8(binary.get(text..text + length)?).ok()?;
                let is_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
                let is_one = name.bytes().all(is_name) && binary.get(text + length) == Some(&0);
                (is_one && (0x1_0000..0x1_0000_0000).contains(&flags)).then(|| name.to_owned())
            };
            names.extend(name());
        }
    }
    names
}

const PEERS: &str = include_str!("../../../../crates/front/config/src/foreign/peers.txt");

/// Modules of other packages, which recipes of sign-on need. Their directives are in no list, so the importer closes the
/// place where one stands.
const STRANGE: [&str; 3] = ["auth_gssapi", "auth_openidc", "shib"];

/// Modules that others need, or that must be alone of their kind.
const FIRST: &[&str] = &[
    "mpm_event",
    "authn_core",
    "authz_core",
    "proxy",
    "session",
    "dbd",
    "cache",
    "dav",
    "http2",
    "ldap",
    "heartmonitor",
    "filter",
    "xml2enc",
];

/// Texts in tables of the same form that are no directives: commands within pages (SSI), and values.
const NO_DIRECTIVES: &[&str] = &[
    "args", "block", "config", "core", "echo", "elif", "else", "endblock", "endif", "off",
    "openssl", "regex",
];
