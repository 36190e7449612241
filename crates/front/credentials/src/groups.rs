//! Groups of users in a file, as httpd's `AuthGroupFile` has them: lines `group: user user`.

use std::collections::{BTreeMap, BTreeSet};

use crate::lines::{self, FaultyLine, LineFault};

/// The groups of a file with their members. A group may have several lines. Whether its members are users is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    by_name: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

impl Groups {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// All lines with a fault, in their order.
    pub fn parse(file: &[u8]) -> Result<Self, Vec<FaultyLine>> {
        let mut groups = Self::default();
        let mut count = 0;
        lines::read(file, LINE_BYTES_MAX, |_, line| {
            let (name, members) = lines::name_and_rest(line)?;
            if name.contains(char::is_whitespace) {
                return Err(LineFault::SpaceInGroup);
            }
            let group = groups.by_name.entry(name.into()).or_default();
            for user in members.split_ascii_whitespace() {
                count += 1;
                if count > MEMBERS_MAX {
                    return Err(LineFault::TooMany { max: MEMBERS_MAX });
                }
                // httpd takes what is between quotes for one name.
                if user.starts_with(['"', '\'']) {
                    return Err(LineFault::Quote);
                }
                group.insert(user.into());
            }
            Ok(())
        })?;
        Ok(groups)
    }

    /// Whether the group has this member. A group that the file does not have has none.
    #[must_use]
    pub fn contains(&self, group: &str, user: &str) -> bool {
        self.members(group).any(|member| member == user)
    }

    /// The members of a group in the order of their bytes, each once.
    pub fn members(&self, group: &str) -> impl Iterator<Item = &str> {
        let members = self.by_name.get(group).into_iter().flatten();
        members.map(|member| &**member)
    }
}

/// The most bytes of a line, which has all members of a group.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The most members of all groups of a file.
const MEMBERS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_joined_from_their_lines() {
        let groups =
            Groups::parse(b"# of httpd\nadmins: bob  ann\nempty:\nadmins:\tcat ann\n").unwrap();
        let members: Vec<&str> = groups.members("admins").collect();
        assert_eq!(members, ["ann", "bob", "cat"]);
        assert!(groups.contains("admins", "cat"));
        for (group, user) in [
            ("admins", "dan"),
            ("admins", ""),
            ("empty", "ann"),
            ("Admins", "ann"),
        ] {
            assert!(!groups.contains(group, user), "{group} {user}");
        }
    }

    #[test]
    fn what_httpd_reads_otherwise_is_a_fault() {
        let file = b"admins : ann\nit: \"ann e\" bob\n: ann\nann\nok: ann\n'it's: x\n";
        let faults = Groups::parse(file).unwrap_err();
        let faults: Vec<_> = faults.iter().map(|it| (it.line, it.fault)).collect();
        assert_eq!(
            faults,
            [
                (1, LineFault::SpaceInGroup),
                (2, LineFault::Quote),
                (3, LineFault::NoName),
                (4, LineFault::NoColon),
            ]
        );
    }

    #[test]
    fn members_are_limited() {
        let line = format!("g:{}\n", " u".repeat(1000));
        let fits = line.repeat(MEMBERS_MAX / 1000);
        assert_eq!(
            Groups::parse(fits.as_bytes()).unwrap().members("g").count(),
            1
        );
        let faults = Groups::parse(format!("{fits}g: v").as_bytes()).unwrap_err();
        let fault = LineFault::TooMany { max: MEMBERS_MAX };
        let line = MEMBERS_MAX / 1000 + 1;
        assert_eq!(faults, [FaultyLine { line, fault }]);
    }
}
