//! Purges that are found out when a stored response is next looked at.
//!
//! A purge of a prefix or a tag concerns responses that nobody has a list of. So it is remembered, and a
//! response that was begun before it is judged by it when it is read. Memory is bounded: of the bans that
//! are forgotten only the number of the last is kept, and what is older than that counts as purged.

use std::collections::VecDeque;

use crate::tags;

/// What a purge takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// All variants of this URL.
    Url(Box<[u8]>),
    /// All whose URL begins so.
    Prefix(Box<[u8]>),
    /// All with this tag.
    Tag(Box<[u8]>),
    /// All.
    All,
}

/// The effect of purges on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PurgeEffect {
    /// Not at all.
    No,
    /// It is stale from now on, and may be used as stale responses are.
    Softly,
    /// It is gone.
    Hard,
}

/// A purge that is remembered.
#[derive(Clone, Debug)]
struct Ban {
    number: u64,
    purge: Purge,
    is_soft: bool,
}

/// Purges so far.
#[derive(Clone, Debug, Default)]
pub struct Bans {
    list: VecDeque<Ban>,
    /// How many purges there were.
    count: u64,
    /// A response that began before this number of purges counts as purged.
    floor: u64,
}

impl Bans {
    /// How many purges there were. A response that begins now is concerned by later ones alone.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a response that began at this count may have been purged since.
    #[must_use]
    pub fn concern(&self, began: u64) -> bool {
        began < self.count
    }

    /// Adds a purge.
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

    /// The effect of later purges on a response that began at this count, with its URL and its tags.
    #[must_use]
    pub fn judge(&self, began: u64, url: &[u8], tags: &[u8]) -> PurgeEffect {
        if began < self.floor {
            return PurgeEffect::Hard;
        }
        let later = self.list.iter().rev().take_while(|ban| ban.number > began);
        let concerned = later.filter(|ban| ban.purge.concerns(url, tags));
        let purged = concerned.map(|ban| {
            if ban.is_soft {
                PurgeEffect::Softly
            } else {
                PurgeEffect::Hard
            }
        });
        purged.max().unwrap_or(PurgeEffect::No)
    }
}

impl Purge {
    /// Whether the purge removes a response with this URL and these tags.
    #[must_use]
    pub fn concerns(&self, url: &[u8], tags: &[u8]) -> bool {
        match self {
            Self::Url(of) => **of == *url,
            Self::Prefix(prefix) => url.starts_with(prefix),
            Self::Tag(tag) => tags::has(tags, tag),
            Self::All => true,
        }
    }
}

/// Purges that are remembered.
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
