//! Real servers in spaces of their own, and what is left of them.

#![expect(
    clippy::unwrap_used,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod guarded;
mod process;
mod space;

use catamaran_tier::{Launch, Process, Programs, Space, StartFault, Target, builtin};

/// An isolated space for the test `name`. It needs root.
fn space(name: &str) -> Space {
    Space::isolated(&own_name(name)).unwrap()
}

fn own_name(name: &str) -> String {
    format!("catamaran-tier-{}-{name}", std::process::id())
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
