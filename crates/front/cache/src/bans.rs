//! Purges, which are applied when a stored response is next looked up.
//!
//! There is no list of the responses that a purge of a prefix or a tag removes. So the purge is remembered, and a
//! response that began before it is compared with it when it is read. Memory is bounded: if old purges
//! are forgotten, only the serial number of the newest of them is kept, and all responses that began before it count
//! as purged.

use std::collections::VecDeque;

use crate::tags;

/// The stored responses that a purge removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// All variants of the response with this URL.
    Url(Box<[u8]>),
    /// All responses whose URL begins with this text.
    Prefix(Box<[u8]>),
    /// All responses with this tag.
    Tag(Box<[u8]>),
    /// All responses in the cache.
    All,
}

/// The effect of later purges on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PurgeEffect {
    /// The response was not purged.
    No,
    /// The response is stale from now on, and may be used as stale responses are.
    Softly,
    /// The response is removed.
    Hard,
}

/// A remembered purge, with its number.
#[derive(Clone, Debug)]
struct Ban {
    number: u64,
    purge: Purge,
    is_soft: bool,
}

/// The purges so far.
#[derive(Clone, Debug, Default)]
pub struct Bans {
    list: VecDeque<Ban>,
    /// The number of purges so far; it only grows.
    count: u64,
    /// The number of the last purge that was forgotten, or that removed everything. A response that began before
    /// it counts as purged.
    floor: u64,
}

impl Bans {
    /// The number of purges so far. Only later purges apply to a response that begins now.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a response that began at this number of purges may have been purged since.
    #[must_use]
    pub fn concern(&self, began: u64) -> bool {
        began < self.count
    }

    /// Adds a purge; `is_soft`: the responses become stale instead of being removed.
    pub fn push(&mut self, purge: Purge, is_soft: bool) {
        self.count += 1;
        if purge == Purge::All && !is_soft {
            self.list.clear();
            self.floor = self.count;
            return;
        }
        if self.list.len() == BANS_MAX
            && let Some(oldest) = self.list.pop_front()
        {
            self.floor = self.floor.max(oldest.number);
        }
        self.list.push_back(Ban {
            number: self.count,
            purge,
            is_soft,
        });
    }

    /// The effect of later purges on a response with this URL and these tags, which began at this number
    /// of purges.
    #[must_use]
    pub fn judge(&self, began: u64, url: &[u8], tags: &[u8]) -> PurgeEffect {
        if began < self.floor {
            return PurgeEffect::Hard;
        }
        let later = self.list.iter().rev().take_while(|ban| ban.number > began);
        let mut effect = PurgeEffect::No;
        for ban in later.filter(|ban| ban.purge.concerns(url, tags)) {
            if !ban.is_soft {
                return PurgeEffect::Hard;
            }
            effect = PurgeEffect::Softly;
        }
        effect
    }
}

impl Purge {
    /// Whether the purge applies to a response with this URL and these tags.
    #[must_use]
    pub fn concerns(&self, url: &[u8], tags: &[u8]) -> bool {
        match self {
            Self::Url(purged) => **purged == *url,
            Self::Prefix(prefix) => url.starts_with(prefix),
            Self::Tag(tag) => tags::has(tags, tag),
            Self::All => true,
        }
    }
}

/// The most purges that are remembered.
pub const BANS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Purge {
        Purge::Prefix(text.as_bytes().into())
    }

    #[test]
    fn what_began_before_a_purge_is_gone() {
        let mut bans = Bans::default();
        let began = bans.count();
        bans.push(prefix("http://a/b"), false);
        bans.push(Purge::Tag(b"t"[..].into()), true);
        bans.push(Purge::Url(b"http://a/u"[..].into()), false);
        for (url, tags, expected) in [
            ("http://a/b/c", "", PurgeEffect::Hard),
            ("http://a/c", "", PurgeEffect::No),
            ("http://a/c", "s\nt\n", PurgeEffect::Softly),
            ("http://a/b", "t\n", PurgeEffect::Hard),
            ("http://a/u", "", PurgeEffect::Hard),
            ("http://a/u?q", "", PurgeEffect::No),
        ] {
            assert_eq!(
                bans.judge(began, url.as_bytes(), tags.as_bytes()),
                expected,
                "{url}"
            );
            let later = bans.judge(bans.count(), url.as_bytes(), tags.as_bytes());
            assert_eq!(later, PurgeEffect::No, "{url}");
        }
        assert!(bans.concern(began) && !bans.concern(bans.count()));
    }

    #[test]
    fn what_is_older_than_what_is_remembered_is_gone() {
        let mut bans = Bans::default();
        let first = bans.count();
        for at in 0..BANS_MAX {
            bans.push(prefix(&format!("http://{at}/")), false);
        }
        assert_eq!(bans.judge(first, b"http://x/", b""), PurgeEffect::No);
        let second = bans.count();
        bans.push(prefix("http://y/"), true);
        assert_eq!(bans.judge(first, b"http://x/", b""), PurgeEffect::Hard);
        assert_eq!(bans.judge(second, b"http://x/", b""), PurgeEffect::No);
        assert_eq!(bans.judge(second, b"http://y/", b""), PurgeEffect::Softly);
    }

    #[test]
    fn all_is_all() {
        let mut bans = Bans::default();
        let began = bans.count();
        bans.push(Purge::All, true);
        assert_eq!(bans.judge(began, b"u", b""), PurgeEffect::Softly);
        bans.push(Purge::All, false);
        assert_eq!(bans.judge(began, b"u", b""), PurgeEffect::Hard);
        assert_eq!(bans.judge(bans.count(), b"u", b""), PurgeEffect::No);
    }
}
