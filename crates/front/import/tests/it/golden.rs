//! Configurations in `tests/golden`, with the file that each of them becomes, and the fate of each directive. Both are
//! there for an import without and with an old server (`--keep`). A configuration is one file: the files below `source/`,
//! then what is made of them. `GOLDEN=write` writes what is written now, for review.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use catamaran_import::{Fate, Files, Import, Options, Sums, import};
use catamaran_testkit::Cases;

/// The files of one configuration, by the names that it has for them.
struct Source(PathBuf);

impl Source {
    /// The machine that the files are from begins here.
    fn place(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

impl Files for Source {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(self.place(path))
    }

    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let path = PathBuf::from(pattern);
        self.0
            .join(&path)
            .is_file()
            .then_some(path)
            .into_iter()
            .collect()
    }

    fn names(&self, directory: &Path) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.place(directory)).ok()?;
        let name = |it: fs::DirEntry| it.file_name().to_string_lossy().into_owned();
        Some(entries.flatten().map(name).collect())
    }

    fn located(&self, path: &Path) -> String {
        self.place(path).display().to_string()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Writes the sources of `case` into `folder`.
fn unpack(case: &Cases, folder: &Path) {
    for file in case.iter().filter(|it| it.name.starts_with("source/")) {
        let path = folder.join(&file.name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))
            .expect("a directory is made");
        fs::write(path, &file.text).expect("a file is written");
    }
}

fn converted(source: &Path, keep: Option<&str>) -> Import {
    let source = Source(source.to_owned());
    let names = [
        "httpd.conf",
        "nginx.conf",
        "workers.properties",
        "uriworkermap.properties",
    ];
    let is_there = |it: &&&str| source.0.join(it).is_file();
    let options = Options {
        files: names.iter().filter(is_there).map(PathBuf::from).collect(),
        keep: keep.map(str::to_owned),
        inline_secrets: true,
        ..Options::default()
    };
    import(&source, &options).expect("the sources are read")
}

/// Every directive with its fate, and the sums.
fn ledger(import: &Import) -> String {
    let mut text = String::new();
    for it in &import.directives {
        let fate = match it.fate {
            Fate::Mapped => "mapped",
            Fate::Dropped => "dropped",
            Fate::Decided => "decided",
            Fate::Kept => "kept",
        };
        let line = format!("{fate:8}{} {}: {}", it.place, it.name, it.reason);
        let _ = writeln!(text, "{}", line.trim_end_matches([':', ' ']));
    }
    let _ = writeln!(text, "{}", shown(import.sums));
    text
}

fn shown(sums: Sums) -> String {
    let Sums {
        mapped,
        dropped,
        decided,
        kept,
    } = sums;
    let total = sums.total();
    format!(
        "{total} directives: {mapped} served here, {kept} kept, {dropped} dropped, {decided} to decide on"
    )
}

#[test]
fn configurations_become_what_was_reviewed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(&golden)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 12, "{paths:?}");
    let mut sums = FORMS.map(|_| Sums::default());
    for path in &paths {
        let case = Cases::read(path);
        let folder = tempfile::tempdir().unwrap();
        unpack(&case, folder.path());
        let source = folder.path().join("source");
        let mut files = Vec::new();
        for ((form, keep), all) in FORMS.iter().zip(&mut sums) {
            let import = converted(&source, *keep);
            if let Err(report) = catamaran_config::parse("catamaran.toml", &import.text) {
                panic!("{}: {report}\n{}", path.display(), import.text);
            }
            assert_eq!(import.sums.total(), import.directives.len());
            all.mapped += import.sums.mapped;
            all.dropped += import.sums.dropped;
            all.decided += import.sums.decided;
            all.kept += import.sums.kept;
            files.push((format!("{form}.toml"), import.text.clone()));
            files.push((format!("{form}.ledger"), ledger(&import)));
        }
        let source = source.display().to_string();
        case.check(|it| {
            let file = files.iter().find(|(name, _)| *name == it.name);
            file.map_or_else(String::new, |(_, text)| text.replace(&source, "SOURCE"))
        });
    }
    for ((form, _), all) in FORMS.iter().zip(sums) {
        println!("{} configurations, {form}: {}", paths.len(), shown(all));
        // An old server alone converts nothing: most of what is needed must be served here.
        assert!(all.mapped > all.kept + all.decided, "{}", shown(all));
    }
}

/// What a configuration is imported as, with the name that its files begin with.
const FORMS: [(&str, Option<&str>); 2] = [("alone", None), ("kept", Some("http://127.0.0.1:8081"))];
