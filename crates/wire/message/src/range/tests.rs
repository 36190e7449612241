use super::RangeSelection::{Part, Unsatisfiable, Whole};
use super::*;

fn asked(range: &str) -> Fields {
    Fields::from_iter([(RANGE, range)])
}

/// Selects ranges of 1,456 bytes, at most 16 parts.
fn of(range: &str) -> RangeSelection {
    of_length(range, 1456)
}

fn of_length(range: &str, length: u64) -> RangeSelection {
    let validators = Validators::default();
    select(&Method::GET, &asked(range), &validators, length, 16)
}

fn part(first: u64, last: u64) -> RangeSelection {
    Part(ByteRange { first, last })
}

fn parts<const N: usize>(parts: [(u64, u64); N]) -> RangeSelection {
    let parts = parts.map(|(first, last)| ByteRange { first, last });
    RangeSelection::Parts(parts.to_vec())
}

#[test]
fn one_range_is_one_part() {
    for (range, expected) in [
        ("bytes=0-0", part(0, 0)),
        ("bytes=100-199", part(100, 199)),
        ("bytes=-100", part(1356, 1455)),
        ("bytes=1400-", part(1400, 1455)),
        ("bytes=0-1455", part(0, 1455)),
        ("bytes=0-", part(0, 1455)),
        ("bytes=1455-1455", part(1455, 1455)),
        // Beyond the end.
        ("bytes=0-9999", part(0, 1455)),
        ("bytes=-1456", part(0, 1455)),
        ("bytes=-9999", part(0, 1455)),
        ("bytes=0-99999999999999999999999", part(0, 1455)),
        ("bytes=-99999999999999999999999", part(0, 1455)),
        // Zeros before, spaces around, an element that is empty.
        ("bytes=000000000000000000000001-2", part(1, 2)),
        (" bytes= 1-2 ", part(1, 2)),
        ("bytes=,1-2,\t,", part(1, 2)),
        ("BYTES=1-2", part(1, 2)),
    ] {
        assert_eq!(of(range), expected, "{range}");
    }
}

#[test]
fn what_has_no_byte_cannot_be_satisfied() {
    for range in [
        "bytes=1456-",
        "bytes=1456-1456",
        "bytes=9999-",
        "bytes=-0",
        "bytes=-000",
        "bytes=1456-, -0, 2000-3000",
        "bytes=99999999999999999999999-",
        "bytes=18446744073709551615-18446744073709551615",
    ] {
        assert_eq!(of(range), Unsatisfiable, "{range}");
    }
    assert_eq!(unsatisfied(1456), "bytes */1456");
}

#[test]
fn what_is_malformed_is_ignored() {
    for range in [
        "",
        "bytes",
        "bytes=",
        "bytes= , ,",
        "bytes=-",
        "bytes=a-b",
        "bytes=1",
        "bytes=5-1",
        "bytes=99999999999999999999999-5",
        "bytes=1-2-3",
        "bytes=--1",
        "bytes=+1-2",
        "bytes=1 -2",
        "bytes=1- 2",
        "bytes=0x1-2",
        "bytes =1-2",
        "bytes:1-2",
        "bytes=bytes=1-2",
        // One that is malformed makes the others so.
        "bytes=1-2,5-1",
        "bytes=1-2;3-4",
        "bytes=9999-,x",
        // Other units.
        "lines=1-2",
        "none",
        "byte=1-2",
        "bytess=1-2",
    ] {
        assert_eq!(of(range), Whole, "{range}");
    }
}

#[test]
fn several_ranges_are_parts_in_the_order_asked_for() {
    for (range, expected) in [
        ("bytes=0-1,100-101", parts([(0, 1), (100, 101)])),
        ("bytes=0-1, 100-101", parts([(0, 1), (100, 101)])),
        ("bytes=1450-1451,1-2", parts([(1450, 1451), (1, 2)])),
        ("bytes=0-1,2-3", parts([(0, 1), (2, 3)])),
        ("bytes=0-0,-1", parts([(0, 0), (1455, 1455)])),
        // Those without a byte are left out.
        ("bytes=0-1,9999-", part(0, 1)),
        ("bytes=9999-,-0,0-1", part(0, 1)),
        ("bytes=9999-,4-5,-0,0-1", parts([(4, 5), (0, 1)])),
        // Those that overlap are not worth a thought.
        ("bytes=0-1,1-2", Whole),
        ("bytes=0-,0-", Whole),
        ("bytes=0-1,0-1", Whole),
        ("bytes=10-20,30-40,0-100", Whole),
        ("bytes=0-1,-9999", Whole),
        ("bytes=10-20,12-13", Whole),
    ] {
        assert_eq!(of(range), expected, "{range}");
    }
}

#[test]
fn there_are_only_so_many_parts() {
    let many = |count: u64| {
        let ranges: Vec<_> = (0..count)
            .map(|at| format!("{}-{}", at * 4, at * 4))
            .collect();
        format!("bytes={}", ranges.join(","))
    };
    let validators = Validators::default();
    let of = |count, parts_max| {
        let headers = asked(&many(count));
        select(&Method::GET, &headers, &validators, 100_000, parts_max)
    };
    for parts_max in [2, 3, 16] {
        let limit = parts_max as u64;
        let most = (0..limit).map(|at| ByteRange {
            first: at * 4,
            last: at * 4,
        });
        assert_eq!(of(limit, parts_max), RangeSelection::Parts(most.collect()));
        assert_eq!(of(limit + 1, parts_max), Whole);
        assert_eq!(of(1000, parts_max), Whole);
    }
    assert_eq!(of(1, 1), part(0, 0));
    assert_eq!(of(2, 1), Whole);
    assert_eq!(of(1, 0), Whole);
    // Only those with bytes count.
    let headers = asked("bytes=7-7,200000-,-0");
    assert_eq!(
        select(&Method::GET, &headers, &validators, 100_000, 1),
        part(7, 7)
    );
}

#[test]
fn only_a_get_with_one_line_has_ranges() {
    let validators = Validators::default();
    for method in [Method::HEAD, Method::POST, Method::PUT] {
        let selection = select(&method, &asked("bytes=0-1"), &validators, 10, 16);
        assert_eq!(selection, Whole, "{method}");
    }
    let mut twice = asked("bytes=0-1");
    twice.append(RANGE, "bytes=2-3");
    assert_eq!(select(&Method::GET, &twice, &validators, 10, 16), Whole);
    assert_eq!(
        select(&Method::GET, &Fields::new(), &validators, 10, 16),
        Whole
    );
}

#[test]
fn of_nothing_there_are_no_ranges() {
    for range in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-"] {
        assert_eq!(of_length(range, 0), Whole, "{range}");
    }
}

#[test]
fn the_largest_representation_has_ranges() {
    assert_eq!(
        of_length("bytes=-1", u64::MAX),
        part(u64::MAX - 1, u64::MAX - 1)
    );
    let all = of_length("bytes=0-", u64::MAX);
    let Part(all) = all else {
        panic!("{all:?}");
    };
    assert_eq!(all.len(), u64::MAX);
    assert_eq!(
        all.content_range(u64::MAX),
        "bytes 0-18446744073709551614/18446744073709551615"
    );
}

#[test]
fn a_client_that_has_another_version_gets_the_whole() {
    let own = Validators {
        etag: Some(b"\"a\""),
        ..Validators::default()
    };
    for (if_range, range, expected) in [
        ("\"a\"", "bytes=2-3", part(2, 3)),
        ("\"a\"", "bytes=99-", Unsatisfiable),
        ("\"b\"", "bytes=2-3", Whole),
        ("W/\"a\"", "bytes=2-3", Whole),
        // What cannot be satisfied of this version may be of the client's.
        ("\"b\"", "bytes=99-", Whole),
    ] {
        let mut headers = asked(range);
        headers.insert("if-range", if_range);
        let selection = select(&Method::GET, &headers, &own, 10, 16);
        assert_eq!(selection, expected, "{if_range} {range}");
    }
}

/// Compares all ranges of small numbers with their meaning, byte by byte.
#[test]
fn every_small_range_has_the_bytes_it_names() {
    let numbers = ["", "0", "1", "2", "3", "4", "5", "6"];
    for length in 1..=5_u64 {
        for (from, to) in numbers
            .iter()
            .flat_map(|from| numbers.map(|to| (*from, to)))
        {
            let number = |text: &str| text.parse::<u64>().unwrap();
            let named: Option<Vec<u64>> = match (from, to) {
                ("", "") => None,
                ("", suffix) => {
                    let suffix = number(suffix);
                    Some((0..length).filter(|at| at + suffix >= length).collect())
                }
                (first, "") => Some((number(first)..length).collect()),
                (first, last) if number(first) > number(last) => None,
                (first, last) => Some((number(first)..=number(last).min(length - 1)).collect()),
            };
            let expected = match named.as_deref() {
                None => Whole,
                Some([]) => Unsatisfiable,
                Some([first, .., last]) => part(*first, *last),
                Some([only]) => part(*only, *only),
            };
            let range = format!("bytes={from}-{to}");
            assert_eq!(of_length(&range, length), expected, "{range} of {length}");
            if let (Part(part), Some(named)) = (of_length(&range, length), named) {
                assert_eq!(part.len(), named.len() as u64, "{range} of {length}");
                let text = format!("bytes {}-{}/{length}", part.first(), part.last());
                assert_eq!(part.content_range(length), text);
            }
        }
    }
}
