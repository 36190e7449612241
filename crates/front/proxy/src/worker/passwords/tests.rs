use std::net::Ipv4Addr;
use std::path::PathBuf;

use catamaran_limit::Quota;

use super::*;
use crate::config::{
    AuthConfig, AuthKind, Challenge, Config, ListenAddress, ListenerConfig, UpstreamConfig,
    UsersAuth,
};
use crate::users::LiveUsers;

/// A sign-on with the user ann, whose password is secret, and [`FAILURES`] an hour.
struct Stand {
    site: Site,
    passwords: Passwords,
    read: Arc<ReadUsers>,
}

impl Stand {
    fn new(threads: Threads) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let users_file = folder.path().join("users");
        std::fs::write(&users_file, USERS).unwrap();
        let settings = UsersAuth {
            users_file,
            groups_file: None,
            users: Vec::new(),
            groups: Vec::new(),
            challenge: Challenge::new("x").unwrap(),
            failures: Quota::rate(FAILURES, Duration::from_secs(3600), FAILURES),
            pass_credentials: false,
            fields: Vec::new(),
        };
        let live = LiveUsers::unread("staff", &settings);
        live.renew().unwrap();
        let listener = ListenerConfig::new(ListenAddress::Unix(PathBuf::from("/x")));
        let mut config = Config::of_one(vec![listener], UpstreamConfig::new("app", Vec::new()));
        config.auths.push(AuthConfig {
            name: "staff".to_owned(),
            kind: AuthKind::Users(settings),
        });
        let mut passwords = Passwords::new().unwrap();
        if threads == Threads::None {
            passwords.threads_max = 0;
        }
        Self {
            site: Site::new(&config, 1, &mut Vec::new()).unwrap(),
            passwords,
            read: live.current().unwrap(),
        }
    }

    fn check(&self, client: u8, credentials: &[u8]) -> PasswordCheck {
        let value = [b"Basic ", credentials].concat();
        let credentials = BasicCredentials::parse(&value).transpose().unwrap();
        self.passwords.check(self.question(client), credentials)
    }

    fn question(&self, client: u8) -> PasswordQuestion<'_> {
        PasswordQuestion {
            site: &self.site,
            auth: "staff",
            users: &self.read,
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, client)),
        }
    }

    /// The number of wrong passwords that a client may still send.
    fn failures_left(&self, client: u8) -> u32 {
        let question = self.question(client);
        let charges: Vec<FailureCharge> = std::iter::from_fn(|| question.charge().ok()).collect();
        let left = u32::try_from(charges.len()).unwrap();
        charges.into_iter().for_each(FailureCharge::refund);
        left
    }
}

/// The threads that hash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    Usual,
    /// No hash is ever computed.
    None,
}

#[tokio::test]
async fn wrong_passwords_are_charged_and_right_ones_are_not() {
    let stand = Stand::new(Threads::Usual);
    for _ in 0..9 {
        assert_eq!(stand.check(1, RIGHT).await, PasswordVerdict::Right);
    }
    for credentials in [WRONG, UNKNOWN, b"!"] {
        let verdict = stand.check(1, credentials).await;
        assert_eq!(verdict, PasswordVerdict::Wrong, "{credentials:?}");
    }
    let limited = stand.check(1, WRONG).await;
    let PasswordVerdict::Limited(wait) = limited else {
        panic!("{limited:?}");
    };
    assert!(wait > Duration::from_secs(1000), "{wait:?}");
    // Who has signed on already still may, and others are not concerned.
    assert_eq!(stand.check(1, RIGHT).await, PasswordVerdict::Right);
    assert_eq!(stand.check(2, WRONG).await, PasswordVerdict::Wrong);
}

#[test]
fn requests_with_one_password_wait_for_one_hash() {
    let stand = Stand::new(Threads::None);
    let waiting = || stand.passwords.waiting();
    let checks: Vec<PasswordCheck> = (0..9).map(|_| stand.check(1, RIGHT)).collect();
    assert_eq!(waiting(), 1);
    let all_wait = checks
        .iter()
        .all(|check| matches!(check, PasswordCheck::Hashing(_)));
    assert!(all_wait);
    // Two hashes of an address wait; the third is refused, and not charged.
    let other = stand.check(1, WRONG);
    assert_eq!(waiting(), 2);
    let third = stand.check(1, UNKNOWN);
    assert!(
        matches!(third, PasswordCheck::Settled(PasswordVerdict::Busy)),
        "{third:?}"
    );
    drop(other);
    assert_eq!(waiting(), 1);
    drop(checks);
    assert_eq!(waiting(), 0);
    assert_eq!(
        stand.failures_left(1),
        FAILURES,
        "withdrawn hashes are refunded"
    );
}

#[test]
fn a_client_that_leaves_is_charged_for_a_wrong_password_only() {
    let wrong = FAILURES - 1;
    for (credentials, result, left) in [
        (RIGHT, Some(true), FAILURES),
        (WRONG, Some(false), wrong),
        (UNKNOWN, Some(false), wrong),
        // The hash panicked.
        (WRONG, None, FAILURES),
    ] {
        let stand = Stand::new(Threads::None);
        let desk = &stand.passwords.desk;
        let check = stand.check(1, credentials);
        assert_eq!(stand.failures_left(1), wrong, "charged before the hash");
        let (network, job) = desk.next().unwrap();
        drop(check);
        assert_eq!(stand.failures_left(1), wrong, "the hash still runs");
        let is_right = result.map(|_| job.candidate.verify(job.credentials.password()));
        assert_eq!(is_right, result);
        desk.settle(&network, &job.key, is_right, stand.passwords.began);
        assert_eq!(stand.failures_left(1), left, "{result:?}");
        assert!(lock(&desk.state).pending.is_empty());
    }
}

/// The wrong passwords that an address may send at once.
const FAILURES: u32 = 3;

/// Made by: htpasswd -nbBC 4 ann secret
const USERS: &str = "ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";

/// ann:secret
const RIGHT: &[u8] = b"YW5uOnNlY3JldA==";

/// ann:wrong
const WRONG: &[u8] = b"YW5uOndyb25n";

/// bob:secret
const UNKNOWN: &[u8] = b"Ym9iOnNlY3JldA==";
