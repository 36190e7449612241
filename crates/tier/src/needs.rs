//! What servers need: Debian's packages, and programs that whoever starts them names.

use crate::server::Need;

/// Those of `needs` that are not there.
#[must_use]
pub fn missing(needs: &[Need]) -> Vec<Need> {
    let missing = needs.iter().filter(|need| !need.proof.exists());
    missing.cloned().collect()
}

/// What is missing and what to do, for people.
pub(crate) fn message(missing: &[Need]) -> String {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|need| need.package.as_deref())
        .collect();
    let mut lines = Vec::new();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        lines.push(format!(
            "not installed: {packages}; `apt-get install {packages}` does it"
        ));
    }
    for need in missing.iter().filter(|need| need.package.is_none()) {
        let proof = need.proof.display().to_string();
        lines.push(match proof.as_str() {
            "" => "the path of a program is not given".to_owned(),
            path => format!("there is no program {path}"),
        });
    }
    lines.join("\n")
}
