//! Windows in both directions.

use catamaran_http2::{Config, Event, Fault, StreamFault};
use catamaran_message::{BodyLength, Fields, Response};
use http::StatusCode;

use crate::transcript::{
    ACK, Begun, DATA, END_STREAM, PADDED, PREFACE, SETTINGS, WINDOW_UPDATE, frame, get, headers,
};

fn respond(begun: &mut Begun, stream: u32) {
    let response = Response {
        status: StatusCode::OK,
        reason: None,
        headers: &Fields::new(),
        body: BodyLength::Unknown,
    };
    begun.receive(&headers(stream, true, &get(&[]))).unwrap();
    begun
        .server
        .send_head(stream, &response, false, &mut begun.out)
        .unwrap();
    begun.out.clear();
}

fn update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

#[test]
fn no_more_is_sent_than_both_windows_allow() {
    let mut begun = Begun::new(Config::default());
    respond(&mut begun, 1);
    respond(&mut begun, 3);
    let mut sent = 0;
    while let taken @ 1.. = begun
        .server
        .connection
        .begin_data(1, 100_000, false, &mut begun.out)
        .unwrap()
    {
        sent += taken;
    }
    assert_eq!(sent, 65_535);
    assert_eq!(
        begun.server.connection.room(3),
        0,
        "the connection's window is shut"
    );
    assert_eq!(
        begun.receive(&update(0, 10)),
        Ok(vec![Event::Window { stream: 0 }])
    );
    assert_eq!(
        (
            begun.server.connection.room(1),
            begun.server.connection.room(3)
        ),
        (0, 10)
    );
    assert_eq!(
        begun.receive(&update(1, 7)),
        Ok(vec![Event::Window { stream: 1 }])
    );
    assert_eq!(begun.server.connection.room(1), 7);
    // An end alone takes no window.
    assert_eq!(
        begun
            .server
            .connection
            .begin_data(3, 0, true, &mut begun.out),
        Ok(0)
    );
}

#[test]
fn settings_change_the_windows_of_open_streams() {
    let mut begun = Begun::new(Config::default());
    respond(&mut begun, 1);
    let window = |bytes: u32| {
        frame(
            SETTINGS,
            0,
            0,
            &[&[0, 4][..], &bytes.to_be_bytes()].concat(),
        )
    };
    assert_eq!(
        begun
            .server
            .connection
            .begin_data(1, 1000, false, &mut begun.out),
        Ok(1000)
    );
    begun.receive(&window(500)).unwrap();
    assert_eq!(begun.server.connection.room(1), 0, "less than none");
    assert_eq!(
        begun.receive(&window(1001)),
        Ok(vec![Event::Window { stream: 0 }])
    );
    assert_eq!(begun.server.connection.room(1), 1);
    assert_eq!(begun.receive(&window(0x8000_0000)), Err(Fault::FlowControl));
}

#[test]
fn windows_do_not_overflow() {
    let mut begun = Begun::new(Config::default());
    respond(&mut begun, 1);
    let fault = StreamFault::FlowControl;
    assert_eq!(
        begun.receive(&update(1, 0x7fff_ffff)),
        Ok(vec![Event::Failed { stream: 1, fault }])
    );
    assert_eq!(
        begun.receive(&update(0, 0x7fff_ffff)),
        Err(Fault::FlowControl)
    );
}

#[test]
fn as_much_comes_as_was_credited() {
    let config = Config {
        window: 100,
        ..Config::default()
    };
    let mut begun = Begun::new(config);
    let wire = [
        headers(1, false, &get(&[])),
        frame(DATA, PADDED, 1, &[&[9][..], &[0; 69]].concat()),
    ];
    let events = begun.receive(&wire.concat()).unwrap();
    assert!(
        matches!(&events[1], Event::Body { data, .. } if data.len() == 60),
        "{events:?}"
    );
    assert_eq!(begun.written(), [], "padding is credited with what follows");
    begun.server.connection.credit(1, 60, &mut begun.out);
    assert_eq!(
        begun.written(),
        [(WINDOW_UPDATE, 0, 1, 70_u32.to_be_bytes().to_vec())]
    );
    begun.server.connection.credit(1, 60, &mut begun.out);
    assert_eq!(begun.written(), [], "no more than came");
    let overrun = begun.receive(&frame(DATA, 0, 1, &[0; 101])).unwrap();
    assert_eq!(
        overrun,
        [Event::Failed {
            stream: 1,
            fault: StreamFault::FlowControl
        }]
    );
}

#[test]
fn a_narrow_window_counts_once_the_client_heeds_it() {
    let mut out = bytes::BytesMut::new();
    let config = Config {
        window: 100,
        ..Config::default()
    };
    let limits = catamaran_http2::Limits::request();
    let mut begun = Begun {
        server: catamaran_http2::Server::new(limits, config, &mut out),
        input: bytes::BytesMut::new(),
        out,
    };
    let early = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[]),
        &headers(1, false, &get(&[])),
        &frame(DATA, 0, 1, &[0; 1000]),
        &frame(SETTINGS, ACK, 0, &[]),
        &frame(DATA, 0, 1, &[0; 1]),
    ];
    let events = begun.receive(&early.concat()).unwrap();
    assert!(matches!(events[1], Event::Body { stream: 1, .. }));
    assert_eq!(
        events[2],
        Event::Failed {
            stream: 1,
            fault: StreamFault::FlowControl
        }
    );
}

#[test]
fn what_nobody_takes_is_credited_to_the_connection() {
    let mut begun = Begun::new(Config::default());
    let data = |stream| frame(DATA, 0, stream, &[0; 16_384]);
    for stream in [1, 3] {
        begun.receive(&headers(stream, false, &get(&[]))).unwrap();
        begun.receive(&data(stream)).unwrap();
    }
    begun.out.clear();
    begun
        .server
        .connection
        .reset(1, catamaran_http2::Code::CANCEL, &mut begun.out);
    begun
        .server
        .connection
        .reset(3, catamaran_http2::Code::CANCEL, &mut begun.out);
    let updates: Vec<_> = begun
        .written()
        .into_iter()
        .filter(|it| it.0 == WINDOW_UPDATE)
        .collect();
    assert_eq!(
        updates,
        [(WINDOW_UPDATE, 0, 0, 32_768_u32.to_be_bytes().to_vec())]
    );
    // Data for streams that this side has reset counts for the connection alone.
    let flood = [data(1), data(1), data(1), data(1)].concat();
    assert_eq!(begun.receive(&flood), Ok(vec![]));
    assert_eq!(begun.receive(&frame(DATA, END_STREAM, 3, &[])), Ok(vec![]));
}

#[test]
fn the_window_of_the_connection_ends_too() {
    let mut begun = Begun::new(Config {
        window: 1 << 20,
        ..Config::default()
    });
    begun.receive(&headers(1, false, &get(&[]))).unwrap();
    let data = frame(DATA, 0, 1, &[0; 16_384]);
    assert!(begun.receive(&data.repeat(3)).is_ok());
    assert_eq!(begun.receive(&data), Err(Fault::FlowControl));
}
