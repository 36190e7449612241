//! Hostile bytes against the built binary, row by row of the hardening catalogue.
//!
//! A row is bytes in and the required reaction; its number is that of the catalogue and begins the
//! name of its test. The codecs have these rows too; here they prove that nothing between the
//! socket and the codec softens them, over each protocol to the backend, over TCP and Unix sockets,
//! however the bytes are cut, and that no byte of a refused request reaches a backend.

mod ajp_response_rows;
mod backend;
mod chunk_ends;
mod dialogues;
mod failing;
mod http_response_rows;
mod over_http2;
mod request_rows;
mod requests;
mod response_row;
mod responses;
mod row;
mod site;
mod wire;

/// `docs/hardening.md` compares with other servers, row by row; its head says how to write it anew.
#[test]
fn the_page_has_every_row() {
    let page = include_str!("../../../../docs/hardening.md");
    let requests = request_rows::ROWS.iter().map(|row| row.name);
    let over_http = http_response_rows::ROWS.iter().map(|row| row.name);
    let over_ajp = ajp_response_rows::ROWS.iter().map(|row| row.name);
    for name in requests.chain(over_http).chain(over_ajp) {
        let title = row::title(name);
        assert!(page.contains(&format!("| {title} ")), "no {title}");
    }
}
