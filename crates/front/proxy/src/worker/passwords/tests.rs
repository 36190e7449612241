use std::net::Ipv4Addr;
use std::path::PathBuf;

use catamaran_limit::Quota;

use super::*;
use crate::config::{
    AuthConfig, AuthKind, Challenge, Config, ListenAddress, ListenerConfig, UpstreamConfig,
    UsersAuth,
};
use crate::users::LiveUsers;

/// A sign-on with the user ann, whose password is secret, and three failures an hour.
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
            failures: Quota::rate(3, Duration::from_secs(3600), 3),
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
        let passwords = Passwords::new().unwrap();
        if threads == Threads::None {
            lock(&passwords.desk.state).threads = THREADS_MAX;
        }
        Self {
            site: Site::new(&config, 1, &mut Vec::new()).unwrap(),
            passwords,
            read: live.current().unwrap(),
        }
    }

    fn check(&self, client: u8, credentials: &[u8]) -> PasswordCheck {
        let value = [b"Basic ", credentials].concat();
        let question = PasswordQuestion {
            site: &self.site,
            auth: "staff",
            users: &self.read,
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, client)),
        };
        let credentials = BasicCredentials::parse(&value).transpose().unwrap();
        self.passwords.check(question, credentials)
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
    // Withdrawn hashes stay charged: two of three failures.
    let last = stand.check(1, WRONG);
    assert!(matches!(last, PasswordCheck::Hashing(_)), "{last:?}");
    let refused = stand.check(1, UNKNOWN);
    let is_limited = matches!(refused, PasswordCheck::Settled(PasswordVerdict::Limited(_)));
    assert!(is_limited, "{refused:?}");
}

/// Made by: htpasswd -nbBC 4 ann secret
const USERS: &str = "ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";

/// ann:secret
const RIGHT: &[u8] = b"YW5uOnNlY3JldA==";

/// ann:wrong
const WRONG: &[u8] = b"YW5uOndyb25n";

/// bob:secret
const UNKNOWN: &[u8] = b"Ym9iOnNlY3JldA==";
