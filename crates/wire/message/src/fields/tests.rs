use super::*;
use crate::name::{CONNECTION, COOKIE, DATE, EXPECT, HOST, SET_COOKIE, VIA};

fn written(fields: &Fields, without: Traits) -> String {
    let mut lines = BytesMut::new();
    fields.write_lines(without, &mut lines);
    String::from_utf8(lines.to_vec()).unwrap()
}

/// The fields of a head with these lines, as a codec reads them. A line without a space after its colon counts as
/// one that cannot be copied.
fn received(head: &'static str) -> Fields {
    let mut fields = Fields::new();
    let mut at = 0;
    for line in head.split_inclusive("\r\n") {
        let colon = line.find(':').unwrap();
        let text = line[colon + 1..].trim();
        let value = at + line.find(text).unwrap();
        let is_line = line[colon + 1..].starts_with(' ');
        let id = name::find(&line.as_bytes()[..colon]);
        fields.push(id, at..at + colon, value..value + text.len(), is_line);
        at += line.len();
    }
    fields.keep(Bytes::from_static(head.as_bytes()));
    fields
}

#[test]
fn fields_are_in_the_order_received_and_found_in_any_case() {
    let fields = received("HOST: a\r\nx-A: 1\r\ncookie: b=c\r\nX-a:2\r\n");
    let names: Vec<_> = fields.iter().map(Field::lower_name).collect();
    assert_eq!(names, ["host", "x-a", "cookie", "x-a"]);
    assert_eq!(fields.get(HOST), Some(&b"a"[..]));
    assert_eq!(fields.get("hOsT"), Some(&b"a"[..]));
    assert_eq!(fields.text_of("X-A"), Some("1"));
    assert_eq!(fields.get_all("X-A").collect::<Vec<_>>(), [&b"1"[..], b"2"]);
    assert!(fields.contains(COOKIE) && !fields.contains(DATE) && !fields.contains("x-b"));
    let coded = fields.iter().map(Field::id).collect::<Vec<_>>();
    assert_eq!(coded, [Some(HOST), None, Some(COOKIE), None]);
}

#[test]
fn what_came_is_written_as_it_came_and_ours_as_rfcs_have_it() {
    let mut fields = received("hOsT: a\r\nx-A:1\r\ncookie: b=c\r\nTE: d\r\n");
    fields.append("date", "now");
    fields.append(VIA, "1.1 a");
    let whole = "hOsT: a\r\nx-A: 1\r\ncookie: b=c\r\nTE: d\r\nDate: now\r\nVia: 1.1 a\r\n";
    assert_eq!(written(&fields, Traits::NONE), whole);
    assert_eq!(
        written(&fields, Traits::HOP_BY_HOP),
        whole.replace("TE: d\r\n", "")
    );
    fields.insert(COOKIE, "e");
    assert!(fields.remove("X-a") && !fields.remove("X-a"));
    let changed = "hOsT: a\r\nCookie: e\r\nTE: d\r\nDate: now\r\nVia: 1.1 a\r\n";
    assert_eq!(written(&fields, Traits::NONE), changed);
    assert_eq!(written(&fields.clone(), Traits::NONE), changed);
}

#[test]
fn several_of_a_name_are_joined_set_and_changed() {
    let mut fields = received("Cookie: a\r\nVia: 1\r\ncookie: b\r\nVIA: 2\r\n");
    assert!(fields.join_cookies() && !fields.join_cookies());
    fields.add_element(VIA, "3");
    fields.add_element(DATE, "4");
    assert_eq!(
        written(&fields, Traits::NONE),
        "Cookie: a; b\r\nVia: 1, 2, 3\r\nDate: 4\r\n"
    );
    let elements: Vec<_> = fields.elements(VIA).rev().collect();
    assert_eq!(elements, [b"3", b"2", b"1"]);
    for value in ["x", "y"] {
        fields.append(SET_COOKIE, value);
    }
    fields.change(SET_COOKIE, |value| {
        (value == b"y").then(|| [value, b"; Secure"].concat())
    });
    let cookies: Vec<_> = fields.get_all(SET_COOKIE).collect();
    assert_eq!(cookies, [&b"x"[..], b"y; Secure"]);
    fields.insert(SET_COOKIE, "z");
    assert_eq!(fields.get_all(SET_COOKIE).count(), 1);
}

#[test]
fn nothing_that_is_added_ends_its_line() {
    let mut fields = Fields::new();
    fields.append("x-a", "1\r\nx-b: 2\0\x7f\t\u{e9}");
    fields.append("x-c:\r\n \u{e9}", "3");
    assert_eq!(
        written(&fields, Traits::NONE),
        "x-a: 1  x-b: 2  \t\u{e9}\r\nx-c______: 3\r\n"
    );
}

#[test]
fn what_connection_names_is_marked() {
    let mut fields = received(
        "X-A: 1\r\nx-b: 1\r\nCookie: a\r\nConnection: close, x-a ,, x b, COOKIE\r\nconnection: vIa\r\nVia: 1\r\n",
    );
    fields.mark_nominated(&[COOKIE]);
    fields.remove_all(Traits::NOMINATED.with(Traits::HOP_BY_HOP));
    assert_eq!(written(&fields, Traits::NONE), "x-b: 1\r\nCookie: a\r\n");
    assert!(!fields.contains(CONNECTION));
}

#[test]
fn thousands_of_nominations_take_no_longer_than_one() {
    let options = "a,".repeat(100_000);
    let names: Vec<String> = (0..1000).map(|at| format!("x{at}")).collect();
    let mut fields: Fields = names.iter().map(|name| (&name[..], "1")).collect();
    fields.append(CONNECTION, format!("{options}x7"));
    fields.mark_nominated(&[]);
    fields.remove_all(Traits::NOMINATED);
    assert_eq!((fields.len(), fields.contains("x7")), (1000, false));
}

#[test]
fn a_field_has_a_name() {
    let mut fields = Fields::new();
    fields.append("", "1");
    assert_eq!(written(&fields, Traits::NONE), "_: 1\r\n");
}

#[test]
fn packed_fields_are_the_same_with_a_rest_behind_them() {
    let mut fields = received("HOST: a\r\nx-A:1\r\n");
    fields.append(DATE, "now");
    let packed = fields.packed(&["b", "ody"]);
    assert_eq!((&packed, packed.rest()), (&fields, Bytes::from("body")));
    assert_eq!(
        written(&packed, Traits::NONE),
        "HOST: a\r\nx-A: 1\r\nDate: now\r\n"
    );
    assert!(packed.clone().shares_memory(&packed));
    let own = packed.counted_anew();
    assert!(own == packed && own.shares_memory(&packed));
    assert_eq!(own.rest(), "body");
    let mut more = packed.clone();
    more.append("x-b", "2");
    assert_eq!(more.text_of("x-b"), Some("2"));
    assert_eq!(Fields::new().packed(&["x"]).rest(), "x");
}

#[test]
fn fields_weigh_all_memory_that_they_take() {
    let packed = received("a: 1\r\nb: 2\r\n").packed(&["body"]);
    let entries = 2 * size_of::<Entry>();
    assert_eq!(packed.weight(), "a: 1\r\nb: 2\r\nbody".len() + entries);
    let mut more = packed.clone();
    more.append("x-c", "3");
    let taken = more.added.capacity() + more.entries.capacity() * size_of::<Entry>();
    assert_eq!(more.weight(), more.received.len() + taken);
    assert!(more.weight() > packed.weight());
}

#[test]
fn what_may_be_there_once_is_told_from_what_is_there_twice() {
    let mut fields = received("x-a: 1\r\nHost: a\r\nx-a: 2\r\nExpect: 100-Continue,\r\n");
    assert_eq!(
        (fields.only(HOST), fields.only(DATE)),
        (Some(&b"a"[..]), None)
    );
    assert_eq!(
        (fields.only("x-a"), fields.get("x-a")),
        (None, Some(&b"1"[..]))
    );
    assert_eq!(fields.expects_continue(), Some(true));
    fields.append(EXPECT, "more");
    fields.keep_first("x-a");
    assert_eq!(
        (fields.only("x-a"), fields.expects_continue()),
        (Some(&b"1"[..]), None)
    );
    assert_eq!(Fields::new().expects_continue(), Some(false));
}

#[test]
fn only_little_memory_is_kept() {
    for count in [10, 1000] {
        let mut fields = Fields::new();
        for _ in 0..count {
            fields.append(DATE, "now");
        }
        fields.clear();
        assert!(fields.is_empty() && !fields.contains(DATE), "{count}");
        assert!((1..=KEPT_FIELDS_MAX).contains(&fields.entries.capacity()));
        assert!((1..=KEPT_BYTES_MAX).contains(&fields.added.capacity()));
    }
}
