//! Finds out which cargo profile a build script runs for, from the path of its folder.

use std::path::Path;

/// The name of the profile, from the path in `OUT_DIR`; `None` if the path has an unexpected form.
///
/// The path is `TARGET/PROFILE/build/PACKAGE-HASH/out`, with the target triple before the profile if
/// one is given.
pub(crate) fn profile(out: &Path) -> Option<&str> {
    // The innermost folder of this name: a checkout may lie in a folder that is called `build`, too.
    let build = out.ancestors().find(|path| path.ends_with("build"))?;
    let name = build.parent()?.file_name()?.to_str()?;
    Some(named(name))
}

/// The profile whose folder or `PROFILE` has this name. Only `dev` has a different name there.
pub(crate) fn named(name: &str) -> &str {
    if name == "debug" { "dev" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_before_build_is_the_profile() {
        for (path, expected) in [
            ("/src/target/debug/build/catamaran-0a1b/out", Some("dev")),
            (
                "/src/target/release/build/catamaran-0a1b/out",
                Some("release"),
            ),
            ("/src/target/dist/build/catamaran-0a1b/out", Some("dist")),
            (
                "/t/x86_64-unknown-linux-musl/dist/build/catamaran-0/out",
                Some("dist"),
            ),
            (
                "/home/build/me/target/release/build/catamaran/0a1b/out",
                Some("release"),
            ),
            ("/somewhere/else", None),
            ("/build", None),
            ("", None),
        ] {
            assert_eq!(profile(Path::new(path)), expected, "{path}");
        }
    }
}
