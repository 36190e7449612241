//! Compares the certificates of two builds of TLS profiles: which certificates the later build replaced.
//!
//! A certificate replaces one of its profile that has one of its names, by preference one with the same type of key.

use std::fmt;
use std::time::{Duration, SystemTime};

use catamaran_tls::CertificateFacts;

use crate::date::{show_moment, unix_seconds};

/// What a reload, or a change of files, did to the certificates that are served. Its `Display` is one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateChanges {
    /// How many certificates stayed.
    pub kept: usize,
    /// The certificates that are served from now on.
    pub added: Vec<AddedCertificate>,
    /// The first names of certificates that are not served any more, and that none replaced.
    pub removed: Vec<String>,
}

/// A certificate that is served from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedCertificate {
    /// The first name of the certificate.
    pub name: String,
    /// The end of the certificate's validity.
    pub not_after: SystemTime,
    /// The certificate that it replaced; `None`: none of its names had one.
    pub replaced: Option<ReplacedCertificate>,
    /// When it was first served.
    pub at: SystemTime,
}

/// A certificate that another one has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedCertificate {
    /// The end of the certificate's validity.
    pub not_after: SystemTime,
    /// The SHA-256 of the certificate's DER, in lower-case hexadecimal.
    pub sha256: String,
    /// When it was replaced.
    pub at: SystemTime,
}

impl CertificateChanges {
    /// Adds the changes of one profile, whose certificates were `before` and are `next` from the time `at` on.
    pub(super) fn add(
        &mut self,
        before: &[CertificateFacts],
        next: &[CertificateFacts],
        at: SystemTime,
    ) {
        let mut left: Vec<&CertificateFacts> = before.iter().collect();
        for facts in next {
            if before.iter().any(|it| it.sha256 == facts.sha256) {
                self.kept += 1;
                left.retain(|it| it.sha256 != facts.sha256);
                continue;
            }
            let replaced = replaced_by(facts, before);
            left.retain(|it| replaced.is_none_or(|replaced| it.sha256 != replaced.sha256));
            self.added.push(AddedCertificate {
                name: first_name(facts),
                not_after: facts.not_after,
                replaced: replaced.map(|it| ReplacedCertificate::new(it, at)),
                at,
            });
        }
        self.removed.extend(left.into_iter().map(first_name));
    }

    /// Whether a certificate was put in place that has ended, or that ends before the one that it replaced.
    #[must_use]
    pub fn are_doubtful(&self) -> bool {
        let mut added = self.added.iter();
        added.any(|it| it.has_ended() || it.ends_earlier())
    }
}

impl ReplacedCertificate {
    fn new(facts: &CertificateFacts, at: SystemTime) -> Self {
        Self {
            not_after: facts.not_after,
            sha256: facts.sha256.clone(),
            at,
        }
    }
}

/// For each certificate of `next` the one that it replaced, now or earlier. `before` has the certificates that are
/// served, each with the one that it replaced itself.
pub(super) fn replaced_by_each(
    next: &[CertificateFacts],
    before: &[CertificateFacts],
    replaced_before: &[Option<ReplacedCertificate>],
    at: SystemTime,
) -> Vec<Option<ReplacedCertificate>> {
    let replaced =
        next.iter().map(
            |facts| match before.iter().position(|it| it.sha256 == facts.sha256) {
                Some(index) => replaced_before.get(index).cloned().flatten(),
                None => replaced_by(facts, before).map(|it| ReplacedCertificate::new(it, at)),
            },
        );
    replaced.collect()
}

/// The certificate of `before` that a new one replaces.
fn replaced_by<'c>(
    facts: &CertificateFacts,
    before: &'c [CertificateFacts],
) -> Option<&'c CertificateFacts> {
    let shares_name = |it: &&CertificateFacts| it.names.iter().any(|it| facts.names.contains(it));
    let mut same_type = before.iter().filter(|it| it.key_type == facts.key_type);
    same_type
        .find(shares_name)
        .or_else(|| before.iter().find(shares_name))
}

fn first_name(facts: &CertificateFacts) -> String {
    let name = facts.names.first();
    name.map_or_else(|| facts.sha256.clone(), String::clone)
}

impl AddedCertificate {
    fn has_ended(&self) -> bool {
        self.not_after <= self.at
    }

    fn ends_earlier(&self) -> bool {
        let replaced = self.replaced.as_ref();
        replaced.is_some_and(|it| self.not_after < it.not_after)
    }
}

impl fmt::Display for CertificateChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "certificates: {} kept", self.kept)?;
        for added in &self.added {
            write!(f, ", {added}")?;
        }
        for name in &self.removed {
            write!(f, ", removed {name}")?;
        }
        Ok(())
    }
}

impl fmt::Display for AddedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |time| show_moment(unix_seconds(time));
        let verb = match self.replaced {
            Some(_) => "replaced",
            None => "added",
        };
        let end = moment(self.not_after);
        write!(f, "{verb} {} (", self.name)?;
        match self.at.duration_since(self.not_after) {
            Ok(since) => write!(
                f,
                "ENDED {end}, {} days ago",
                since.as_secs() / DAY.as_secs()
            )?,
            Err(_) => write!(f, "ends {end}")?,
        }
        if let Some(replaced) = &self.replaced {
            let which = if self.ends_earlier() {
                "EARLIER than the previous one:"
            } else {
                "the previous one"
            };
            write!(f, ", {which} {}", moment(replaced.not_after))?;
        }
        f.write_str(")")
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A certificate that ends so many days after [`NOW`].
    fn certificate(
        sha256: &str,
        name: &str,
        key_type: &'static str,
        days: i32,
    ) -> CertificateFacts {
        let away = DAY * days.unsigned_abs();
        CertificateFacts {
            names: vec![name.to_owned()],
            issuer: "CN=ca".to_owned(),
            not_before: now() - DAY * 1000,
            not_after: if days < 0 { now() - away } else { now() + away },
            sha256: sha256.to_owned(),
            key_type,
            chain_file: PathBuf::from("/etc/ssl/chain.pem"),
            key_file: PathBuf::from("/etc/ssl/key.pem"),
        }
    }

    /// 2030-01-31T00:00:00Z.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_896_048_000)
    }

    fn said(before: &[CertificateFacts], next: &[CertificateFacts]) -> (String, bool) {
        let mut changes = CertificateChanges::default();
        changes.add(before, next, now());
        (changes.to_string(), changes.are_doubtful())
    }

    #[test]
    fn a_line_tells_what_was_replaced() {
        let old = [
            certificate("1", "a.test", "ECDSA", 30),
            certificate("2", "a.test", "RSA", 40),
            certificate("3", "b.test", "RSA", 1),
        ];
        let new = [
            certificate("1", "a.test", "ECDSA", 30),
            certificate("4", "a.test", "RSA", 50),
            certificate("5", "c.test", "RSA", 2),
        ];
        let text = "certificates: 1 kept, replaced a.test (ends 2030-03-22T00:00:00Z, the previous one \
                    2030-03-12T00:00:00Z), added c.test (ends 2030-02-02T00:00:00Z), removed b.test";
        assert_eq!(said(&old, &new), (text.to_owned(), false));
    }

    #[test]
    fn one_that_has_ended_or_ends_earlier_is_doubtful() {
        let before = |days| [certificate("1", "a.test", "RSA", days)];
        let next = |days| [certificate("2", "a.test", "ECDSA", days)];
        let (text, is_doubtful) = said(&before(-300), &next(-299));
        assert!(
            is_doubtful
                && text.contains("replaced a.test (ENDED 2029-04-07T00:00:00Z, 299 days ago")
        );
        let (text, is_doubtful) = said(&before(30), &next(29));
        let earlier = "EARLIER than the previous one: 2030-03-02T00:00:00Z)";
        assert!(is_doubtful && text.ends_with(earlier), "{text}");
        assert!(!said(&before(29), &next(30)).1);
        assert!(said(&[], &next(-1)).1, "a new one that has ended");
    }

    #[test]
    fn a_kept_certificate_keeps_what_it_replaced() {
        let (old, new) = (
            [certificate("1", "a.test", "RSA", 1)],
            [certificate("2", "a.test", "RSA", 2)],
        );
        let first = replaced_by_each(&new, &old, &[None], now());
        let replaced = ReplacedCertificate::new(&old[0], now());
        assert_eq!(first, [Some(replaced)]);
        assert_eq!(replaced_by_each(&new, &new, &first, now() + DAY), first);
    }
}
