use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(hash: &str, password: &[u8]) {
    let hash = PasswordHash::parse(hash).unwrap();
    assert!(bool::from(hash.is_of(password)));
    let mut other = password.to_vec();
    match other.first_mut() {
        Some(byte) => *byte ^= 1,
        None => other.push(b' '),
    }
    assert!(!bool::from(hash.is_of(&other)));
}

/// The fault of a hash, which no message shows.
#[track_caller]
fn fault(hash: &str) -> HashFault {
    let fault = PasswordHash::parse(hash).unwrap_err();
    assert!(hash.len() < 9 || !format!("{fault} {fault:?} {}", fault.hint()).contains(&hash[5..]));
    fault
}

#[test]
fn published_vectors_of_bcrypt() {
    // jBCrypt, TestBCrypt.java.
    check(
        "$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s.",
        b"",
    );
    check(
        "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe",
        b"a",
    );
    // crypt_blowfish, wrapper.c: a byte with its highest bit must not spoil those before it.
    check(
        "$2y$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e",
        b"\xff\xff\xa3",
    );
}

#[test]
fn published_vectors_of_sha_crypt() {
    // Drepper, "Unix crypt using SHA-256 and SHA-512". Its salts are cut to 16 characters when they are written.
    check(
        "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        b"Hello world!",
    );
    check(
        "$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
        b"Hello world!",
    );
    check(
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
        b"Hello world!",
    );
}

#[test]
fn passwords_of_all_lengths() {
    // htpasswd -nbBC 4 u "$(printf 'p%.0s' {1..72})", and 73
    check(
        "$2y$04$WLbCqPL23UpPZGQC7UPjt.9c.7xVPcBMRoL3NGlgrntW0GO77e5VS",
        &[b'p'; 72],
    );
    check(
        "$2y$04$boC0Qs/Ty5CTr8yV/sQ26.2.AMaqdV4m0mMFTu/5XbDxv0vlDrAHy",
        &[b'p'; 73],
    );
    // htpasswd -nbBC 4 u ''
    check(
        "$2y$04$PHCp439k1B5vKFuJOzVXE.orH0rLc2aGh1vAEGN0t4UIApiWrDcDy",
        b"",
    );
    // htpasswd -nb2r 1000 u "$(printf 'p%.0s' {1..255})", then -nb5r 1000, then -nb
    for hash in [
        "$5$rounds=1000$IW2Cx2F2U2HwV7HK$JfpOqVKADcJs47kijmNVdpf3ZZL7TNnsHpbec.LSmOB",
        "$6$rounds=1000$Va.C2bQBFhztEKHM$KLpyzS6T6JRQl7TCjMKQ0XpkrAaHdAIoMeoMFYU5L7HLpcJkT8ObVms0J9sFaJUdDwWHwGV/IwWmvTOu5mzhf0",
        "$apr1$37WwnwFe$Cp2EsPn4WE.Cxy/Kh.S1i.",
    ] {
        check(hash, &[b'p'; 255]);
    }
    // htpasswd -nb2r 1000 u "$(printf 'a%.0s' {1..N})", then -nb5r 1000
    for (len, sha256, sha512) in [
        (
            0,
            "$5$rounds=1000$lXE72g.EI4wT6Gi7$1nfHzHjjcyGLbVP5awaumHWNtptTJMz3rvnhZajqpED",
            "$6$rounds=1000$I9y7S..eUAfkCQ1Q$0F5cPHoZkAtlZaMplCrAjWMxzzusgCYVLE04apZMIoPfuuOlRMF5nZdoENwDbFiP.qrPrKsghpnyb8fxkQrsi/",
        ),
        (
            16,
            "$5$rounds=1000$Skf.stUPDnsqRiCH$dddKe5BDghh8BfnjeGzXftCTYV4r.3WLy6pwPz.wNn7",
            "$6$rounds=1000$lq.tczCdI/MKeput$KTFc6CyTZ6eteufu8q2cAdCMQBF12bnrxqrEDhW.JCRYPTnfrP1F/g7/cuRHFKnTshbpI6Gc/Hfgwcwt0GAMa.",
        ),
        (
            63,
            "$5$rounds=1000$EAyJCtXBXBTCfrV0$4DpvDDrxXLdDRH3t.ezcQtPESFCPHPeFpEKcwGpcHuC",
            "$6$rounds=1000$e8k/VWRNu2KvmV7f$JRtWHNVBjG2LsbB5g58fenOLsOyomsuhlMAGpkTqfILBCbcaqw6dP4N.2pgDas8niUDW7YsdHmABF1hZ4oFCM1",
        ),
        (
            65,
            "$5$rounds=1000$OIkH8NV3rc9DOce2$5rzaq.h5eW/e1dAfTyD7BiLccmNH1IiDE9xbvYbiqA3",
            "$6$rounds=1000$0iSKWz/rIuohhqUv$P6k4ivYjs9T6IX.noeZFZTVLaayOPPw2jKHrladoczFSL3/CNQptVkoUyhCMMflhKhtPLLgkywf4XfZiT0pOU0",
        ),
    ] {
        check(sha256, &vec![b'a'; len]);
        check(sha512, &vec![b'a'; len]);
    }
}

#[test]
fn apr1_of_all_lengths() {
    // passlib.hash.apr_md5_crypt.using(salt='xxxxxxxx').hash('a' * LEN)
    for (len, digest) in [
        (0, "AL/DOdqyMUurcg0cPNW/P1"),
        (1, "YMs3Jkp9Zx7lSxpQ9nJyH1"),
        (15, "Jg1tBPoiUjEjZZkH4WHNm0"),
        (16, "ikRO1K1pHvcd1um5FSmnJ."),
        (17, "fXO8fuq/fzAll4YLVSVR7."),
        (31, "yQVFyHvh1kYC5UviWAIc00"),
        (32, "VIcylMzHNu0UzyaUIGn4n."),
        (33, "7Iy3cmTQ22rS8NHF8CBzp0"),
        (63, "a2wg80XAcknXgLTWsBnsB0"),
        (64, "6NbXiD2mE1j.z1rfbCrCL."),
        (65, "aZa6OXomWscrfa4Cx5ekf0"),
        (200, "eDB/iT3F1xKUivlSQxyMw0"),
        (500, "jO92JUJabpq1P3wGa04uX/"),
    ] {
        check(&format!("$apr1$xxxxxxxx${digest}"), &vec![b'a'; len]);
    }
}

#[test]
fn other_kinds_are_faults() {
    for (hash, expected) in [
        ("", HashFault::Missing),
        ("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", HashFault::Braces),
        ("{SSHA}abc", HashFault::Braces),
        ("N9GssQJlSJvxc", HashFault::Des),
        ("N9GssQJlSJvx", HashFault::Plain),
        ("N9GssQJlSJv-c", HashFault::Plain),
        ("secret word", HashFault::Plain),
        (
            "!$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
            HashFault::Plain,
        ),
        ("$", HashFault::UnknownKind),
        ("$ecret", HashFault::UnknownKind),
        ("$1$vYYGqFYb$IbC3Utl0a6k92wjnGoHLY1", HashFault::UnknownKind),
        ("$2$04$abc", HashFault::UnknownKind),
        (
            "$2x$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
            HashFault::UnknownKind,
        ),
        ("$y$j9T$abc$def", HashFault::UnknownKind),
        (
            "$argon2i$v=19$m=64,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            HashFault::UnknownKind,
        ),
    ] {
        assert_eq!(fault(hash), expected, "{hash}");
    }
}

#[test]
fn malformed_hashes_are_faults() {
    for hash in [
        "$2y$04",
        "$2y$4$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
        "$2y$+4$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
        "$2y$03$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
        "$2y$004$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
        "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e",
        "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e..",
        "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.eü",
        // Bits that a decoder would ignore: the same hash has one text.
        "$2y$04$BDsctodQR/lVgkBWw8Wue/7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.",
        "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc",
        "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc55",
        "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEcz",
        "$5$$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$5$saltstringsaltstr$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$5$rounds=999$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$5$rounds=05000$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$5$rounds=$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$5$rounds=99999999999$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$6$saltstring",
        "$6$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
        "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P",
        "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P1$",
        "$apr1$xxxxxxxxx$AL/DOdqyMUurcg0cPNW/P1",
        "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P=",
        "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAA",
        "$argon2id$m=64,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$t=1,m=64,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=1,x=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=0,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=0$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=9$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=4294967295$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=7,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAA",
        "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAA=$AAAAAAAAAAAAAAAAAAAAAA",
    ] {
        assert_eq!(fault(hash), HashFault::Malformed, "{hash}");
    }
    let long = "A".repeat(87);
    let hash = format!("$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAA${long}");
    assert_eq!(fault(&hash), HashFault::Malformed);
}

#[test]
fn costs_are_limited() {
    let bcrypt = |cost| format!("$2y${cost}$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.");
    let sha = |rounds| {
        format!("$5$rounds={rounds}$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
    };
    let argon2 = |kib, passes, version| {
        format!("$argon2id$v={version}$m={kib},t={passes},p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
    };
    assert_eq!(
        PasswordHash::parse(&bcrypt(14)).unwrap().work,
        HashWork::Bcrypt { cost: 14 }
    );
    assert_eq!(fault(&bcrypt(15)), HashFault::BcryptCost { cost: 15 });
    assert_eq!(fault(&bcrypt(31)), HashFault::BcryptCost { cost: 31 });
    let rounds = crypt::ROUNDS_MAX;
    assert_eq!(
        PasswordHash::parse(&sha(rounds)).unwrap().work,
        HashWork::Sha256 { rounds }
    );
    let rounds = crypt::ROUNDS_MAX + 1;
    assert_eq!(fault(&sha(rounds)), HashFault::Rounds { rounds });
    let work = HashWork::Argon2id {
        kib: 65536,
        passes: 10,
        lanes: 1,
    };
    assert_eq!(
        PasswordHash::parse(&argon2(65536, 10, 19)).unwrap().work,
        work
    );
    assert_eq!(
        fault(&argon2(65537, 1, 19)),
        HashFault::Argon2Memory { kib: 65537 }
    );
    assert_eq!(
        fault(&argon2(64, 11, 19)),
        HashFault::Argon2Passes { passes: 11 }
    );
    assert_eq!(
        fault(&argon2(64, 1, 16)),
        HashFault::Argon2Version { version: 16 }
    );
}

#[test]
fn nothing_secret_is_printed() {
    let text = "$apr1$xxxxxxxx$AL/DOdqyMUurcg0cPNW/P1";
    let hash = PasswordHash::parse(text).unwrap();
    assert_eq!(format!("{hash:?}"), "PasswordHash(Apr1)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Costs that are taken can be computed.
    #[test]
    fn taken_costs_are_computed(kib in 0..160_u32, passes in 0..3_u32, lanes in 0..20_u32) {
        let text = format!(
            "$argon2id$v=19$m={kib},t={passes},p={lanes}$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA"
        );
        let possible = kib >= 8 * lanes && kib >= 8 && passes > 0 && lanes > 0;
        let hash = PasswordHash::parse(&text);
        prop_assert_eq!(hash.is_ok(), possible);
        if possible {
            let digest = argon2id::digest([kib, passes, lanes], &[0; 8], b"x", 16);
            prop_assert_eq!(digest.len(), 16);
        }
    }

    /// No text of a file is a panic.
    #[test]
    fn any_text_is_read(kind in "(2y|argon2id|5|6|apr1|)", rest in "[$=,v0-9a-zA-Zmtp./+ü]{0,90}") {
        let text = format!("${kind}${rest}");
        if let Err(fault) = PasswordHash::parse(&text) {
            prop_assert!(!fault.hint().is_empty());
        }
    }
}
