use std::fs::File;
use std::io::Write;

use catamaran_message::Fields;
use http::Method;
use tempfile::NamedTempFile;

use super::*;
use crate::config::FilesConfig;
use crate::response::FileResponse;
use crate::response::tests::found;

/// Makes a file with this number of bytes, and a body of all of it.
fn body(bytes: usize) -> (NamedTempFile, FileBody) {
    let mut file = NamedTempFile::new().unwrap();
    let pattern: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    file.write_all(&pattern).unwrap();
    let found = found(File::open(file.path()).unwrap(), None);
    let config = FilesConfig::new("/srv");
    let response = FileResponse::new(&Method::GET, &Fields::new(), &found, &config);
    let FileResponse::Send(mut sending) = response else {
        panic!("{response:?}");
    };
    let body = FileBody::new(&found, &mut sending, &FileThreads::default());
    (file, body)
}

async fn next(body: &mut FileBody) -> Result<Option<Bytes>, FileBodyError> {
    poll_fn(|cx| body.poll_next(cx)).await
}

/// Reads to the end, or to a failure.
async fn all(body: &mut FileBody) -> (Vec<u8>, Result<(), FileBodyError>) {
    let mut bytes = Vec::new();
    loop {
        match next(body).await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}

#[tokio::test]
async fn a_body_is_all_of_its_file() {
    for len in [
        0,
        1,
        PIECE_MAX - 1,
        PIECE_MAX,
        PIECE_MAX + 1,
        3 * TURN_MAX + 7,
    ] {
        let (file, mut body) = body(len);
        assert_eq!(body.is_small(), len <= PIECE_MAX);
        let (bytes, ended) = all(&mut body).await;
        assert!(ended.is_ok(), "{len}");
        assert!(bytes == std::fs::read(file.path()).unwrap(), "{len}");
    }
}

#[tokio::test]
async fn a_small_body_is_one_version() {
    let (file, mut body) = body(1000);
    body.load().await.unwrap();
    std::fs::write(file.path(), [b'y'; 1000]).unwrap();
    let (bytes, ended) = all(&mut body).await;
    assert!(ended.is_ok());
    let expected: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
    assert!(bytes == expected, "bytes of a later version");
}

/// However a file is changed while it is sent, its end does not arrive as if it were whole.
#[tokio::test]
async fn a_file_that_is_changed_while_it_is_sent_is_cut() {
    type Change = fn(&File);
    let changes: [(&str, Change); 5] = [
        ("shrinks", |file| file.set_len(PIECE_MAX as u64).unwrap()),
        ("is emptied", |file| file.set_len(0).unwrap()),
        ("shrinks a little", |file| {
            file.set_len(4 * PIECE_MAX as u64 - 1).unwrap();
        }),
        ("grows", |file| file.set_len(8 * PIECE_MAX as u64).unwrap()),
        ("is overwritten", |mut file| {
            file.write_all(b"other").unwrap();
            // Within the grain of the kernel's times nothing else would tell.
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }),
    ];
    for (what, change) in changes {
        let (file, mut body) = body(4 * PIECE_MAX);
        let first = next(&mut body).await.unwrap().unwrap();
        assert!(!first.is_empty());
        change(&File::options().write(true).open(file.path()).unwrap());
        let (rest, ended) = all(&mut body).await;
        assert!(
            matches!(ended, Err(FileBodyError::Changed)),
            "{what}: {ended:?}"
        );
        assert!(first.len() + rest.len() < 4 * PIECE_MAX, "{what}");
    }
}

#[tokio::test]
async fn others_have_their_turn() {
    let (_file, mut body) = body(3 * TURN_MAX);
    let mut pauses = 0;
    let mut given = 0;
    loop {
        let polled = poll_fn(|cx| Poll::Ready(body.poll_next(cx))).await;
        match polled {
            Poll::Pending => {
                pauses += 1;
                tokio::task::yield_now().await;
            }
            Poll::Ready(Ok(Some(piece))) => given += piece.len(),
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
    }
    assert_eq!(given, 3 * TURN_MAX);
    assert!(pauses >= 2, "{pauses}");
}

/// Takes all pieces to the end, or to a failure. Returns the bytes, how many of them the kernel was to send, and
/// the largest part.
async fn all_pieces(body: &mut FileBody) -> (Vec<u8>, usize, usize, Result<(), FileBodyError>) {
    let (mut bytes, mut sent, mut largest) = (Vec::new(), 0, 0);
    loop {
        match poll_fn(|cx| body.poll_piece(cx)).await {
            Ok(Some(FilePiece::Bytes(piece))) => bytes.extend_from_slice(&piece),
            Ok(Some(FilePiece::Part(part))) => {
                let mut piece = vec![0; part.len];
                let read = pread(&part.fd, &mut piece[..], part.from).unwrap();
                bytes.extend_from_slice(&piece[..read]);
                sent += part.len;
                largest = largest.max(part.len);
            }
            Ok(None) => return (bytes, sent, largest, Ok(())),
            Err(error) => return (bytes, sent, largest, Err(error)),
        }
    }
}

#[tokio::test]
async fn the_kernel_sends_all_of_a_file_but_small_parts_and_the_end_of_a_long_one() {
    let small = COPIED_MAX as usize;
    for (len, copied) in [
        (0, 0),
        (1, 1),
        (small, small),
        (small + 1, 0),
        (WINDOW_MAX, 0),
        (WINDOW_MAX + small, small),
        (WINDOW_MAX + small + 1, small),
        (3 * TURN_MAX + 7, small),
    ] {
        let (file, mut body) = body(len);
        let (bytes, sent, largest, ended) = all_pieces(&mut body).await;
        assert!(ended.is_ok(), "{len}");
        assert!(bytes == std::fs::read(file.path()).unwrap(), "{len}");
        assert_eq!(sent, len - copied, "{len}");
        assert!(largest <= WINDOW_MAX, "{len}: {largest}");
    }
}

#[tokio::test]
async fn the_end_of_a_changed_file_is_not_sent_after_its_parts() {
    type Change = fn(&File);
    let changes: [Change; 4] = [
        |file| file.set_len(PIECE_MAX as u64).unwrap(),
        |file| file.set_len(0).unwrap(),
        |file| file.set_len(8 << 20).unwrap(),
        |file| file.set_modified(std::time::UNIX_EPOCH).unwrap(),
    ];
    for change in changes {
        let (file, mut body) = body(4 * WINDOW_MAX);
        let first = poll_fn(|cx| body.poll_piece(cx)).await.unwrap();
        assert!(matches!(first, Some(FilePiece::Part(_))), "{first:?}");
        change(&File::options().write(true).open(file.path()).unwrap());
        let (_, sent, _, ended) = all_pieces(&mut body).await;
        assert!(matches!(ended, Err(FileBodyError::Changed)), "{ended:?}");
        assert!(sent < 3 * WINDOW_MAX, "{sent}");
    }
}

/// The kernel gets all bytes as parts, and the test plays a sender that holds the last ones back.
#[tokio::test]
async fn a_file_that_was_changed_after_its_last_part_has_no_end() {
    for len in [PIECE_MAX + 1, WINDOW_MAX] {
        let (file, mut body) = body(len);
        let part = poll_fn(|cx| body.poll_piece(cx)).await.unwrap();
        assert!(
            matches!(&part, Some(FilePiece::Part(part)) if part.len == len),
            "{part:?}"
        );
        let file = File::options().write(true).open(file.path()).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        let end = poll_fn(|cx| body.poll_piece(cx)).await;
        assert!(matches!(end, Err(FileBodyError::Changed)), "{end:?}");
    }
}

#[tokio::test]
async fn a_window_that_is_not_in_memory_is_read_by_a_thread() {
    let (file, _body) = body(2 * WINDOW_MAX);
    let fd = OwnedFd::from(File::open(file.path()).unwrap());
    warm_blocking(&fd, 5, WINDOW_MAX).unwrap();
    let beyond = warm_blocking(&fd, WINDOW_MAX as u64 + 1, WINDOW_MAX);
    assert!(matches!(beyond, Err(FileBodyError::Changed)));
}

/// A file that is replaced by a rename stays the same for clients that already receive it.
#[tokio::test]
async fn a_file_that_lost_its_name_is_sent_to_its_end() {
    let (file, mut body) = body(4 * PIECE_MAX);
    let expected = std::fs::read(file.path()).unwrap();
    let first = next(&mut body).await.unwrap().unwrap();
    let other = file.path().with_extension("other");
    std::fs::write(&other, "another").unwrap();
    std::fs::rename(&other, file.path()).unwrap();
    let (rest, ended) = all(&mut body).await;
    assert!(ended.is_ok(), "{ended:?}");
    assert!([&first[..], &rest].concat() == expected);
}

#[tokio::test]
async fn ranges_of_what_is_in_memory_need_no_file() {
    let (_file, body) = body(10);
    let mut body = FileBody {
        fd: None,
        segments: VecDeque::from([
            Segment::Text(Bytes::from_static(b"head")),
            Segment::File { from: 2, len: 3 },
            Segment::File { from: 0, len: 10 },
        ]),
        ..body
    };
    assert!(!body.is_loaded() && body.loaded().is_none());
    let bytes = Bytes::from_static(b"0123456789");
    body.segments.iter_mut().for_each(|it| it.fill(&bytes));
    assert!(body.is_loaded() && body.is_small());
    let (all, ended) = all(&mut body).await;
    assert!(ended.is_ok());
    assert_eq!(all, b"head2340123456789");
}
