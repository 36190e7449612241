//! Real servers in spaces of their own, and what is left of them.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod guarded;
mod process;
mod space;

use std::process::Command;

use catamaran_tier::{Launch, Process, Programs, Space, SpaceFault, StartFault, Target, builtin};

/// A space that is isolated if this is root; else isolated ones must be refused, and it is shared.
fn space(name: &str) -> Space {
    match Space::isolated(&own_name(name)) {
        Ok(space) => space,
        Err(fault) => {
            assert!(!is_root(), "{fault}");
            assert!(matches!(fault, SpaceFault::Group(_)), "{fault}");
            Space::shared().unwrap()
        }
    }
}

fn own_name(name: &str) -> String {
    format!("catamaran-tier-{}-{name}", std::process::id())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// Starts the target of this project that is called `target`.
fn start(space: &Space, target: &str, set: &[(&str, &str)]) -> Result<Process, StartFault> {
    launch(space, &builtin(target).unwrap(), set)
}

fn launch(space: &Space, target: &Target, set: &[(&str, &str)]) -> Result<Process, StartFault> {
    let settings = target.settings(set)?;
    space.start(&Launch {
        name: target.name(),
        target,
        settings: &settings,
        programs: &Programs::new(),
        core: None,
        limit: None,
    })
}
