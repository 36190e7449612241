//! Bad input to the server role, as a table: what a container must do with which bytes.
//!
//! A row says what the container does: refuse with a status and END_RESPONSE(0), close the connection without a byte,
//! cut off a response that has begun, or serve. The row also has the token of the fault, so that a row does not pass
//! for the wrong reason. Row numbers are those of the project's catalogue of hardening cases.

use Expect::{Abort, Drop, Refuse, Serve};

use super::{
    Forward, LENGTH, attribute, coded, data, data_of, field, get, named, null, packet, post, text,
    to_container, to_web_server,
};

/// What the application does with the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// The application reads the body to its end, then answers.
    Reads,
    /// The application answers at once and reads nothing.
    Early,
    /// The application reads nothing, and answers when all bytes have arrived.
    Late,
}

/// The reaction that is expected from the container.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// The container answers by SEND_HEADERS with this status and by END_RESPONSE(0), because of this fault.
    Refuse(u16, &'static str),
    /// The container closes the connection without sending a byte, because of this fault.
    Drop(&'static str),
    /// The container finds this fault after the response has begun, and leaves the response without its end.
    Abort(&'static str),
    /// The container reports these events and sends this many CPONGs. `*` stands for any event. Any other text is how
    /// the event begins: a method and path, `body` and a number of bytes, or `end`.
    Serve(&'static [&'static str], usize),
}

/// A row of the catalogue: bytes that a web server sends, and the expected reaction.
#[derive(Debug)]
pub struct Row {
    /// The row's number in the catalogue.
    pub number: &'static str,
    /// Words for what is special about the input.
    pub what: &'static str,
    /// The application's way to treat the request, if it gets one.
    pub app: App,
    /// The bytes that the web server sends.
    pub input: Vec<u8>,
    /// The expected reaction of the container.
    pub expect: Expect,
}

/// All rows, in the order of the catalogue.
#[must_use]
pub fn server_rows() -> Vec<Row> {
    [
        framing(),
        head_shape(),
        head_meaning(),
        lengths(),
        attributes(),
        bodies(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row(number: &'static str, what: &'static str, input: Vec<u8>, expect: Expect) -> Row {
    row_with(App::Reads, number, what, input, expect)
}

fn row_with(
    app: App,
    number: &'static str,
    what: &'static str,
    input: Vec<u8>,
    expect: Expect,
) -> Row {
    Row {
        number,
        what,
        app,
        input,
        expect,
    }
}

/// A row whose request is answered at once.
fn served(number: &'static str, what: &'static str, input: Vec<u8>) -> Row {
    row_with(App::Early, number, what, input, Serve(&["*"], 0))
}

#[rustfmt::skip]
fn framing() -> Vec<Row> {
    let cping = to_container(&[0x0A]);
    let mut rows = vec![
        row("S01", "magic 12 35", packet(*b"\x12\x35", &[0x10]), Drop("ajp-magic")),
        row("S01", "zeros", vec![0, 0, 0, 0], Drop("ajp-magic")),
        row("S01", "HTTP", b"GET / HTTP/1.1\r\n".to_vec(), Drop("ajp-magic")),
        row("S02", "magic of the container", to_web_server(&[9]), Drop("ajp-magic")),
        row("S03", "TLS", b"\x16\x03\x01\x02".to_vec(), Drop("ajp-magic")),
        row("S04", "payload 8189", vec![0x12, 0x34, 0x1F, 0xFD],
            Refuse(400, "ajp-packet-too-large")),
        row("S04", "payload FFFF", vec![0x12, 0x34, 0xFF, 0xFF],
            Refuse(400, "ajp-packet-too-large")),
        row("S06", "empty packet first", to_container(&[]), Drop("ajp-empty-packet")),
        row("S07", "CPING", cping.clone(), Serve(&[], 1)),
        row("S07", "3 CPINGs", cping.repeat(3), Serve(&[], 3)),
    ];
    for code in (0..=1).chain(3..=9).chain(11..=255) {
        let input = to_container(&[code, 0, 0]);
        rows.push(row("S05", "idle code", input, Drop("ajp-unexpected-message")));
    }
    for tail in [1, 3, 100] {
        let input = to_container(&[&[0x0A][..], &vec![0xFF; tail]].concat());
        rows.push(row("S07", "CPING with a tail", input, Serve(&[], 1)));
    }
    rows
}

#[rustfmt::skip]
fn head_shape() -> Vec<Row> {
    let full = get().attribute(attribute(5, "q")).payload();
    let mut rows: Vec<Row> = (1..full.len())
        .map(|len| {
            let input = to_container(&full[..len]);
            row("S08", "head ends early", input, Refuse(400, "ajp-malformed-request"))
        })
        .collect();
    let malformed = |number, what, head: Forward| {
        row(number, what, head.packet(), Refuse(400, "ajp-malformed-request"))
    };
    let mut no_end = get();
    no_end.end.clear();
    rows.push(malformed("S09", "attributes without end", no_end));
    for tail in [1, 2, 100] {
        let mut head = get();
        head.end.extend(vec![0; tail]);
        rows.push(malformed("S10", "bytes behind the end", head));
    }
    let payload_end = {
        let mut head = get();
        head.end.clear();
        head.attributes = vec![5, 0, 3, b'a', b'b', b'c'];
        head
    };
    rows.extend([
        malformed("S11", "string passes the end by its zero byte", payload_end),
        malformed("S11", "string of FFFE", get().uri(vec![0xFF, 0xFE, b'/'])),
        malformed("S12", "string without zero byte", get().uri(b"\0\x01/x".to_vec())),
        row("S13", "zero byte in uri", get().uri(text("/a\0b")).packet(),
            Refuse(400, "ajp-control-character")),
        row("S13", "zero byte in name", get().field(field("a\0b", "v")).packet(),
            Refuse(400, "ajp-field-name")),
        row("S13", "zero byte in value", get().field(field("a", "v\0v")).packet(),
            Refuse(400, "ajp-field-value")),
        row("S13", "zero byte in attribute", get().attribute(named("a", "v\0v")).packet(),
            Refuse(400, "ajp-control-character")),
    ]);
    for code in [0, 28, 127, 128, 254] {
        rows.push(malformed("S14", "method code", get().method(code)));
    }
    rows
}

#[rustfmt::skip]
fn head_meaning() -> Vec<Row> {
    let refused = |number, what, head: Forward, token| {
        row(number, what, head.packet(), Refuse(400, token))
    };
    let many = |count: usize| {
        (0..count).fold(get(), |head, index| {
            head.field(field(format!("x-{index}"), "v"))
        })
    };
    let mut null_protocol = get();
    null_protocol.protocol = null();
    null_protocol.remote_addr = null();
    null_protocol.server_name = null();
    let mut lying = get();
    lying.count = Some(2);
    let mut lying_more = get();
    lying_more.count = Some(0xFFFF);
    let stored = |name: &str| get().method(255).attribute(attribute(0x0D, name));
    vec![
        refused("S15", "stored method missing", get().method(255), "ajp-stored-method"),
        refused("S15", "stored method empty", stored(""), "ajp-stored-method"),
        refused("S15", "stored method no token", stored("G T"), "ajp-stored-method"),
        refused("S15", "stored method with line break", stored("GET\r\nX:"), "ajp-stored-method"),
        refused("S15", "stored method null", get().method(255).attribute(vec![0x0D, 0xFF, 0xFF]),
            "ajp-stored-method"),
        refused("S16", "GET and stored DELETE", get().attribute(attribute(0x0D, "DELETE")),
            "ajp-stored-method"),
        refused("S17", "uri null", get().uri(null()), "ajp-path"),
        refused("S17", "uri empty", get().uri(text("")), "ajp-path"),
        refused("S17", "uri relative", get().uri(text("foo")), "ajp-path"),
        refused("S17", "uri absolute form", get().uri(text("http://h/x")), "ajp-path"),
        refused("S17", "uri with line break", get().uri(text("/a\r\nb")), "ajp-control-character"),
        refused("S17", "query with line break", get().attribute(attribute(5, "a\nb")),
            "ajp-control-character"),
        refused("S18", "* with GET", get().uri(text("*")), "ajp-path"),
        served("S18", "* with OPTIONS", get().method(1).uri(text("*")).packet()),
        // Which of these paths are acceptable is the connector's policy, the same as for HTTP.
        served("S19", "%00", get().uri(text("/%00")).packet()),
        served("S19", "%zz %2f %5c", get().uri(text("/%zz%2f%5c")).packet()),
        served("S19", "/..;/x", get().uri(text("/..;/x")).packet()),
        served("S19", "raw 80 to FF", get().uri(text(b"/\x80\xFF")).packet()),
        refused("S20", "count one too high", lying, "ajp-malformed-request"),
        refused("S21", "count FFFF", lying_more, "ajp-malformed-request"),
        refused("S22", "name code A000", get().field(coded(0x00, "v")), "ajp-malformed-request"),
        refused("S22", "name code A00F", get().field(coded(0x0F, "v")), "ajp-malformed-request"),
        refused("S22", "name code A0FF", get().field(coded(0xFF, "v")), "ajp-malformed-request"),
        refused("S22", "name length A100", get().field([vec![0xA1, 0], text("v")].concat()),
            "ajp-malformed-request"),
        refused("S23", "name null", get().field([null(), text("v")].concat()),
            "ajp-malformed-request"),
        refused("S23", "name empty", get().field(field("", "v")), "ajp-field-name"),
        refused("S23", "name with space", get().field(field("a b", "v")), "ajp-field-name"),
        refused("S23", "name with colon", get().field(field("a:", "v")), "ajp-field-name"),
        refused("S23", "name with control", get().field(field("a\rb", "v")), "ajp-field-name"),
        refused("S24", "name not ASCII", get().field(field("n\u{39A}", "v")), "ajp-field-name"),
        refused("S24", "value with line break", get().field(field("a", "v\r\nb: c")),
            "ajp-field-value"),
        served("S24", "value null", get().field([text("a"), null()].concat()).packet()),
        served("S24", "protocol, address, server null", null_protocol.packet()),
        served("S25", "100 fields", many(99).packet()),
        row("S25", "101 fields", many(100).packet(), Refuse(431, "ajp-too-many-fields")),
    ]
}

#[rustfmt::skip]
fn lengths() -> Vec<Row> {
    let length = |value: &str| field("content-length", value);
    let refused = |what, head: Forward| {
        row("S26", what, head.packet(), Refuse(400, "ajp-content-length"))
    };
    let encoded = |what, head: Forward| {
        row("S27", what, head.packet(), Refuse(400, "ajp-transfer-encoding"))
    };
    let chunked = |value: &str| get().method(4).field(field("Transfer-Encoding", value));
    vec![
        refused("twice, equal", post(5).field(length("5"))),
        refused("twice, different", post(5).field(length("6"))),
        refused("coded twice", post(5).field(coded(LENGTH, "5"))),
        refused("spelt out twice", get().field(length("5")).field(field("CONTENT-LENGTH", "5"))),
        refused("+5", post("+5")),
        refused("-1", post("-1")),
        refused("5x", post("5x")),
        refused("leading space", post(" 5")),
        refused("empty", post("")),
        refused("null", get().field([vec![0xA0, LENGTH], null()].concat())),
        refused("2^63", post("9223372036854775808")),
        refused("2^64 + 5", post("18446744073709551621")),
        refused("list", post("5, 5")),
        encoded("chunked and a length", chunked("chunked").field(length("5"))),
        encoded("chunked and length 0", chunked("chunked").field(length("0"))),
        encoded("chunked, chunked", chunked("chunked, chunked")),
        encoded("chunked twice", chunked("chunked").field(field("transfer-encoding", "chunked"))),
        encoded("identity", chunked("identity")),
        encoded("gzip, chunked", chunked("gzip, chunked")),
        encoded("empty", chunked("")),
        row("S27", "chunked in any case", [chunked("Chunked").packet(), data(b"")].concat(),
            Serve(&["POST", "end"], 0)),
        served("S27", "length 0", post(0).packet()),
    ]
}

#[rustfmt::skip]
fn attributes() -> Vec<Row> {
    let refused = |number, what, bytes: Vec<u8>, token| {
        row(number, what, get().attribute(bytes).packet(), Refuse(400, token))
    };
    let forbidden = |name: &str| {
        let input = get().attribute(named(name, "/WEB-INF/web.xml")).packet();
        row("S30", "CVE-2020-1938", input, Refuse(403, "ajp-forbidden-attribute"))
    };
    let ok = |number, what, bytes: Vec<u8>| served(number, what, get().attribute(bytes).packet());
    let mut rows = vec![
        ok("S28", "key size as integer", vec![0x0B, 0, 128]),
        ok("S28", "key size 8 as integer", vec![0x0B, 0, 8]),
        ok("S28", "key size as digits", attribute(0x0B, "256")),
        refused("S28", "key size of 16 digits", attribute(0x0B, "0000000000000128"),
            "ajp-malformed-request"),
        refused("S28", "key size of 15 nines", attribute(0x0B, "9".repeat(15)),
            "ajp-malformed-request"),
        refused("S28", "key size 12x", attribute(0x0B, "12x"), "ajp-malformed-request"),
        ok("S29", "unknown name: the connector's policy", named("anything", "v")),
        ok("S29", "value null", [vec![0x0A], text("a"), null()].concat()),
        refused("S29", "name null", [vec![0x0A], null(), text("v")].concat(), "ajp-attribute-name"),
        refused("S29", "name empty", named("", "v"), "ajp-attribute-name"),
        refused("S29", "name with control", named("a\nb", "v"), "ajp-control-character"),
        ok("S30", "context and servlet path are not heeded",
            [attribute(1, "/x"), attribute(2, "/y")].concat()),
    ];
    for code in [0x00, 0x0E, 0x20, 0xFE] {
        rows.push(refused("S28", "attribute code", attribute(code, "v"), "ajp-malformed-request"));
    }
    for name in ["request_uri", "path_info", "servlet_path"] {
        rows.push(forbidden(&format!("javax.servlet.include.{name}")));
        rows.push(forbidden(&format!("jakarta.servlet.include.{name}")));
    }
    rows
}

/// A DATA packet whose first bytes look like a request, because its inner length is 0x0202.
fn disguised() -> Vec<u8> {
    let mut inside = get().payload()[2..].to_vec();
    inside.resize(0x0202, 0);
    data(&inside)
}

#[rustfmt::skip]
fn bodies() -> Vec<Row> {
    let after = |head: Forward, rest: &[u8]| [&head.packet()[..], rest].concat();
    let body = |number, what, rest: &[u8], token| {
        row(number, what, after(post(5), rest), Refuse(400, token))
    };
    let early = |number, what, rest: &[u8], token| {
        row_with(App::Early, number, what, after(post(5), rest), Abort(token))
    };
    let whole = |number, what, rest: &[u8]| {
        row(number, what, after(post(5), rest), Serve(&["POST", "body 5", "end"], 0))
    };
    vec![
        body("S31", "wrong magic", &to_web_server(b"\0\x05hello"), "ajp-magic"),
        body("S31", "payload of one byte", &to_container(&[0]), "ajp-body-shape"),
        body("S31", "CPING as body", &to_container(&[0x0A]), "ajp-body-shape"),
        body("S31", "inner length too long", &data_of(6, b"hello"), "ajp-body-shape"),
        body("S31", "inner length FFFF", &data_of(0xFFFF, b"hello"), "ajp-body-shape"),
        body("S31", "payload too large", &[0x12, 0x34, 0x1F, 0xFD], "ajp-packet-too-large"),
        body("S31", "5 bytes of slack", &data_of(5, b"hello\0\0\0\0\xFF"), "ajp-body-shape"),
        whole("S31", "4 bytes of slack", &data_of(5, b"hello\0\0\0\xFF")),
        whole("S31", "whole", &data(b"hello")),
        body("S32", "more than the length", &data(b"hello!"), "ajp-request-body-too-long"),
        body("S32", "end before the length", &[data(b"he"), data(b"")].concat(),
            "ajp-request-body-too-short"),
        body("S32", "aborted before the first byte", &data(b""), "ajp-request-body-too-short"),
        body("S32", "aborted, other form", &to_container(&[]), "ajp-request-body-too-short"),
        row("S32", "in pieces", after(post(5), &[data(b"he"), data(b"l"), data(b"lo")].concat()),
            Serve(&["POST", "body 2", "body 1", "body 2", "end"], 0)),
        early("S34", "owed packet of one byte", &to_container(&[0]), "ajp-body-shape"),
        early("S34", "owed packet is a request", &get().packet(), "ajp-body-shape"),
        early("S34", "owed packet is a CPING", &to_container(&[0x0A]), "ajp-body-shape"),
        early("S34", "owed packet has wrong magic", b"GET /", "ajp-magic"),
        row_with(App::Early, "S34", "owed packet is swallowed", after(post(5), &data(b"hello")),
            Serve(&["POST", "end"], 0)),
        // CVE-2011-3190: a refused request's body must not become the next request.
        row_with(App::Early, "S34", "body in disguise is swallowed",
            after(post(0x0202), &disguised()), Serve(&["POST", "end"], 0)),
        // CVE-2022-26377: a body that nobody announced must not become a request.
        row_with(App::Late, "S35", "body in disguise, no length",
            after(get().method(4), &disguised()), Serve(&["POST"], 0)),
        row_with(App::Late, "S35", "body in disguise, chunked",
            after(get().method(4).field(field("Transfer-Encoding", "chunked")), &disguised()),
            Serve(&["POST"], 0)),
        row_with(App::Late, "S35", "pipelined request", after(get(), &get().packet()),
            Serve(&["GET"], 0)),
        row("S35", "read, it answers the first ask",
            [get().method(4).packet(), disguised(), data(b"")].concat(), Serve(&["POST", "body 514",
            "end"], 0)),
    ]
}
