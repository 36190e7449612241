//! Attempts at what a busy machine spoils.

/// What `attempt` finds once `is_timely` says that it was made in time, or at the last attempt. For what only holds while
/// nobody stands still: a busy machine spoils one of several attempts, a fault spoils them all.
pub fn timely<T>(attempt: impl Fn() -> T, is_timely: impl Fn(&T) -> bool) -> T {
    const FURTHER: usize = 4;
    for _ in 0..FURTHER {
        let found = attempt();
        if is_timely(&found) {
            return found;
        }
    }
    attempt()
}
