use std::collections::BTreeSet;

use super::*;

#[test]
fn each_record_says_what_building_it_takes() {
    let names: BTreeSet<&str> = all()
        .iter()
        .map(|software| software.name.as_str())
        .collect();
    assert_eq!(names.len(), all().len(), "a name twice");
    for software in all() {
        let name = &software.name;
        assert!(
            !software.what.is_empty() && !software.makes.is_empty(),
            "{name}"
        );
        assert!(
            software.makes.iter().all(|made| made.is_relative()),
            "{name}"
        );
        for source in &software.source {
            assert!(source.at.is_relative(), "{name}");
            assert_eq!(source.repository.split('/').count(), 2, "{name}");
            let is_hex = |tree: &str| tree.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(source.tree.len() == 40 && is_hex(&source.tree), "{name}");
        }
        for patch in &software.patch {
            assert!(!patch.why.is_empty() && patch.from != patch.to, "{name}");
            // One line is changed, or taken away beside another one.
            assert!(patch.from.trim().lines().count() <= 2, "{name}");
            assert!(patch.to.trim().lines().count() <= 1, "{name}");
        }
    }
}

#[test]
fn a_record_has_what_it_is_based_on() {
    let worker = find("httpd-2.2.21-worker").unwrap();
    let base = find("httpd-2.2.21").unwrap();
    assert_eq!(worker.patch.len(), base.patch.len());
    let trees = |software: &OldSoftware| -> Vec<String> {
        let sources = software.source.iter();
        sources.map(|source| source.tree.clone()).collect()
    };
    let (of_worker, of_base) = (trees(worker), trees(base));
    assert_eq!(of_worker[..of_base.len()], of_base);
    assert_eq!(of_worker.len(), of_base.len() + 1);
    // A change of the base is one of the record: what was built before counts no more.
    assert!(worker.stamp().contains(&of_base[0]));
}

/// Jars need no compiler.
#[test]
fn what_maven_fetches_needs_maven_alone() {
    let packages = find("tomcat-7.0.23").unwrap().packages();
    let names: Vec<_> = packages
        .iter()
        .filter_map(|need| need.package.as_deref())
        .collect();
    assert_eq!(names, ["maven"]);
}

/// Software of one source: a tree with the file `text`, which says `text`.
fn sample(tree: &str) -> OldSoftware {
    let source = Source {
        at: ".".into(),
        repository: "owner/sample".to_owned(),
        tag: "1.0".to_owned(),
        tree: tree.to_owned(),
    };
    let patch = Patch {
        why: "to be seen".to_owned(),
        file: "text".into(),
        from: "old".to_owned(),
        to: "new".to_owned(),
    };
    OldSoftware {
        name: "sample-1.0".to_owned(),
        what: "a sample".to_owned(),
        based_on: None,
        needs: Vec::new(),
        source: vec![source],
        patch: vec![patch],
        build: "cp text \"$OUT/made\"".to_owned(),
        makes: vec!["made".into()],
    }
}

/// A folder with the archive `sample.tar`, and the checksum of its tree.
fn archive() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("sample-1.0");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("text"), "an old text\r\n").unwrap();
    let checksum = tree_of(&tree).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-cf", "sample.tar", "sample-1.0"]);
    succeed(tar.current_dir(folder.path())).unwrap();
    (folder, checksum)
}

/// The message of a failure to prepare `software` from `sources`.
fn fault(software: &OldSoftware, sources: &[PathBuf]) -> String {
    let into = tempfile::tempdir().unwrap();
    let out = into.path().join("out");
    let fault = software.prepare(&out, sources).unwrap_err();
    assert!(!software.is_prepared(&out));
    fault.to_string()
}

#[test]
fn an_archive_is_told_by_its_tree_and_built_with_its_patch() {
    let (folder, tree) = archive();
    let software = sample(&tree);
    let into = tempfile::tempdir().unwrap();
    let out = into.path().join("out");
    software.prepare(&out, &[folder.path().to_owned()]).unwrap();
    assert_eq!(
        fs::read_to_string(out.join("made")).unwrap(),
        "an new text\r\n"
    );
    assert!(software.is_prepared(&out));
    let changed = OldSoftware {
        build: "true".to_owned(),
        ..software
    };
    assert!(!changed.is_prepared(&out));
}

#[test]
fn a_clone_has_the_tree_of_its_tag() {
    let (folder, tree) = archive();
    let clone = folder.path().join("sample-1.0");
    let user = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
    for arguments in [
        &["init", "--quiet"][..],
        &["-c", "core.autocrlf=false", "add", "text"],
        &["commit", "--quiet", "--message=a"],
    ] {
        succeed(
            Command::new("git")
                .args(user)
                .args(arguments)
                .current_dir(&clone),
        )
        .unwrap();
    }
    let into = tempfile::tempdir().unwrap();
    sample(&tree).prepare(into.path(), &[clone]).unwrap();
    assert!(into.path().join("made").exists());
}

#[test]
fn what_is_missing_is_said_with_where_it_is_to_be_had() {
    let (folder, _) = archive();
    let zeros = "0".repeat(40);
    let said = fault(&sample(&zeros), &[folder.path().to_owned()]);
    assert_eq!(
        said,
        format!(
            "these sources are not at hand: clone each repository or fetch its archive, and name it, or the folder \
             that it is in, by --source\n  https://github.com/owner/sample 1.0, tree {zeros}\n    \
             https://github.com/owner/sample/archive/1.0.tar.gz"
        )
    );
    let said = fault(&sample(&zeros), &["/nowhere".into()]);
    assert_eq!(said, "/nowhere is no clone, folder or archive");
}

#[test]
fn a_build_that_fails_is_told_with_its_last_words() {
    let (folder, tree) = archive();
    let sources = [folder.path().to_owned()];
    let software = |build: &str| OldSoftware {
        build: build.to_owned(),
        ..sample(&tree)
    };
    let said = fault(&software("echo no compiler; false; true"), &sources);
    assert!(
        said.starts_with("sample-1.0 ended with exit status: 1; its output is in /"),
        "{said}"
    );
    assert!(said.ends_with("build.log\nno compiler"), "{said}");
    let said = fault(&software("true"), &sources);
    assert!(
        said.starts_with("building has not made /") && said.ends_with("/made"),
        "{said}"
    );
    let mut unpatched = software("true");
    unpatched.patch[0].from = "older".to_owned();
    assert_eq!(
        fault(&unpatched, &sources),
        "text: there is no `older` to replace"
    );
}
