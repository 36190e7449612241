use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use catamaran_coding::Coding;
use catamaran_message::MediaPattern;
use rustix::fs::fstat;

use super::*;
use crate::found::{FileContent, FileFacts, NamedFile, Selection, Version};

/// Makes a file with this number of bytes and this time.
fn file(bytes: usize, modified: SystemTime) -> FoundFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![b'x'; bytes]).unwrap();
    file.set_modified(modified).unwrap();
    found(file, None)
}

/// Makes the result of a lookup of this file: as a sibling in `coding`, or as the plain file.
pub(crate) fn found(file: File, coding: Option<Coding>) -> FoundFile {
    let fd = OwnedFd::from(file);
    let facts = FileFacts::new(&fstat(&fd).unwrap());
    let mut named = NamedFile {
        media_type: HeaderValue::from_static("text/plain"),
        coding: None,
        is_compressed: false,
        is_fallback: false,
        plain: Version::new(facts, None),
        siblings: ArrayVec::new(),
        old_siblings: ArrayVec::new(),
    };
    if let Some(coding) = coding {
        named
            .siblings
            .push((coding, Version::new(facts, Some(coding))));
    }
    let selection = Selection {
        sibling: coding.map(|_| 0),
        old_sibling: None,
    };
    Arc::new(named).found(selection, FileContent::Open(Arc::new(fd)))
}

fn long_ago() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn respond(file: &FoundFile, fields: &[(&'static str, &str)]) -> FileResponse {
    let headers = Fields::from_iter(fields.iter().copied());
    FileResponse::new(&Method::GET, &headers, file, &FilesConfig::new("/srv"))
}

fn send(file: &FoundFile, fields: &[(&'static str, &str)]) -> FileSending {
    match respond(file, fields) {
        FileResponse::Send(sending) => sending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tag_is_of_time_size_and_coding() {
    let one = file(3, long_ago());
    let tag = |file: &FoundFile| send(file, &[]).headers.text_of(ETAG).map(str::to_owned);
    assert_eq!(tag(&one).as_deref(), Some("\"17979cfe362a0000-3\""));
    let plain = tag(&one);
    let FileContent::Open(fd) = &one.content else {
        panic!("it is open");
    };
    let coded = found(File::from(fd.try_clone().unwrap()), Some(Coding::Gzip));
    assert_eq!(tag(&coded).as_deref(), Some("\"17979cfe362a0000-3-gz\""));
    assert_ne!(tag(&file(4, long_ago())), plain);
    let later = long_ago() + Duration::from_nanos(4);
    assert_ne!(tag(&file(3, later)), plain);
}

/// Container images have the same time for all files, so another version would look the same. The entity tag
/// of the content is made elsewhere.
#[test]
fn a_file_without_a_time_has_no_validators_of_it() {
    for seconds in [0, 1] {
        let file = file(3, UNIX_EPOCH + Duration::from_secs(seconds));
        let sending = send(&file, &[("if-none-match", "\"0-3\"")]);
        assert!(!sending.headers.contains(ETAG));
        assert!(!sending.headers.contains(LAST_MODIFIED));
        assert_eq!(sending.status, StatusCode::OK);
    }
}

#[test]
fn a_time_to_come_is_not_told() {
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    let sending = send(&file(3, tomorrow), &[]);
    assert!(!sending.headers.contains(LAST_MODIFIED));
    assert!(sending.headers.contains(ETAG));
}

#[test]
fn several_ranges_are_parts_of_one_body_of_known_length() {
    let file = file(1000, long_ago());
    let sending = send(&file, &[("range", "bytes=900-901, 0-9")]);
    assert_eq!(sending.status, StatusCode::PARTIAL_CONTENT);
    assert!(!sending.headers.contains(CONTENT_RANGE));
    let media_type = sending.headers.text_of(CONTENT_TYPE).unwrap();
    let boundary = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let mut body = Vec::new();
    for segment in &sending.segments {
        match segment {
            Segment::Text(text) => body.extend_from_slice(text),
            Segment::File { len, .. } => body.extend((0..*len).map(|_| b'x')),
        }
    }
    let part = |range: &str, bytes: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/1000\r\n\r\n{bytes}"
        )
    };
    let expected = [
        part("900-901", "xx"),
        part("0-9", "xxxxxxxxxx"),
        format!("\r\n--{boundary}--\r\n"),
    ];
    assert_eq!(String::from_utf8(body.clone()).unwrap(), expected.concat());
    assert_eq!(sending.length, body.len() as u64);
}

#[test]
fn the_most_specific_type_says_how_long_a_file_is_fresh() {
    // Its type is text/plain.
    let file = file(10, long_ago());
    let value = HeaderValue::from_static;
    for (types, expected) in [
        (vec![], Some("no-cache")),
        (vec![("image/*", Some("max-age=1"))], Some("no-cache")),
        (
            vec![("text/plain", Some("max-age=1")), ("text/*", None)],
            Some("max-age=1"),
        ),
        (vec![("text/*", None)], None),
    ] {
        let mut config = FilesConfig::new("/srv");
        config.cache_control = Some(value("no-cache"));
        let of_type = |(text, caching): (&str, Option<&'static str>)| {
            (MediaPattern::parse(text).unwrap(), caching.map(value))
        };
        config.cache_control_types = types.into_iter().map(of_type).collect();
        let sent = |etag: &str| {
            let headers = Fields::from_iter([("if-none-match", etag)]);
            match FileResponse::new(&Method::GET, &headers, &file, &config) {
                FileResponse::Send(sending) => sending.headers,
                FileResponse::NotModified(fields) => fields,
                other => panic!("{other:?}"),
            }
        };
        for etag in ["\"other\"", "*"] {
            assert_eq!(sent(etag).text_of(CACHE_CONTROL), expected, "{etag}");
        }
    }
}

#[test]
fn errors_vary_as_the_file_does_and_are_not_cached_as_it_is() {
    let mut file = file(10, long_ago());
    file.varies_by_coding = true;
    let mut config = FilesConfig::new("/srv");
    config.cache_control = Some(HeaderValue::from_static("max-age=60"));
    let respond = |name: &'static str, value: &'static str| {
        let headers = Fields::from_iter([(name, value)]);
        FileResponse::new(&Method::GET, &headers, &file, &config)
    };
    match respond("range", "bytes=10-") {
        FileResponse::Unsatisfiable(fields) => {
            assert_eq!(fields.text_of(VARY), Some("Accept-Encoding"));
            assert_eq!(fields.text_of(CONTENT_RANGE), Some("bytes */10"));
            assert_eq!(fields.len(), 2);
        }
        other => panic!("{other:?}"),
    }
    match respond("if-match", "\"other\"") {
        FileResponse::Failed(fields) => assert_eq!(fields.len(), 1),
        other => panic!("{other:?}"),
    }
    match respond("if-none-match", "*") {
        FileResponse::NotModified(fields) => {
            assert_eq!(fields.text_of(CACHE_CONTROL), Some("max-age=60"));
            assert_eq!(fields.len(), 3);
        }
        other => panic!("{other:?}"),
    }
}
