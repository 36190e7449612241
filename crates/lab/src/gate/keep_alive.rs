//! Whether connections were kept as asked for.

use super::{Effect, Facts, Fired, of};

pub(super) fn check(facts: &Facts) -> Option<Fired> {
    let (wanted, kept) = (facts.expect.kept?, facts.kept?);
    let all = facts.completed;
    if all == 0 {
        return None;
    }
    let share = kept as f64 / all as f64;
    let words = match wanted {
        true if share < least(facts.expect.kept_requests_max) => {
            format!(
                "Keep-alive was asked for, and {} connections were kept.",
                of(kept, all)
            )
        }
        false if kept > 0 => {
            format!(
                "Keep-alive was not asked for, and {} connections were kept.",
                of(kept, all)
            )
        }
        _ => return None,
    };
    Some(Fired::new("keep-alive", Effect::Void, words))
}

/// The least share of kept answers if the server closes a connection after so many requests. Each
/// connection that ends with the run may have closed early, hence not 1 but 1.5.
fn least(limit: u64) -> f64 {
    match limit {
        0 => 0.99,
        limit => (1.0 - 1.5 / limit as f64).clamp(0.0, 0.99),
    }
}
