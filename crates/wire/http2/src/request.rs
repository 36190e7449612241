//! The head of a request, in both directions (RFC 9113, section 8.3.1).

use catamaran_message::field::is_token_text;
use catamaran_message::name::{EXPECT, UPGRADE};
use catamaran_message::{Authority, BodyLength, Fields, RequestHead, Scheme, decode_target, host};
use http::{Method, Version};

use crate::block::ReceivedBlock;
use crate::error::StreamFault;
use crate::hpack::Pseudo;
use crate::limits::Limits;

/// Reads the block into `head`. Returns the length of the body that is to come, if it is known.
pub(crate) fn read(
    block: &mut ReceivedBlock,
    ends: bool,
    takes_tunnels: bool,
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<Option<u64>, StreamFault> {
    block.check(limits)?;
    let method = block.pseudo(Pseudo::Method).ok_or(StreamFault::Pseudo)?;
    let is_tunnel = check_pseudo(block, method, takes_tunnels)?;
    head.method = read_method(method)?;
    let word = block.pseudo(Pseudo::Scheme).unwrap_or_default();
    let scheme = Scheme::of_word(word).ok_or(StreamFault::Scheme)?;
    let text = block.pseudo(Pseudo::Path).unwrap_or_default();
    if text.len() > limits.target_bytes {
        return Err(StreamFault::TargetTooLong);
    }
    let is_whole_server = text == b"*" && head.method == Method::OPTIONS;
    if text.first() != Some(&b'/') && !is_whole_server {
        return Err(catamaran_message::TargetFault::Form.into());
    }
    let (target, _) = decode_target(&block.bytes, text, &head.method)?;
    head.target = target;
    head.target.scheme = Some(scheme);
    head.authority = Some(authority(block)?);
    head.version = Version::HTTP_2;
    let length = block.take_content_length()?;
    let is_empty = ends || is_tunnel || length == Some(0);
    match length {
        // What follows belongs to the tunnel.
        Some(_) if is_tunnel => return Err(StreamFault::ContentLength),
        Some(1..) if ends => return Err(StreamFault::LengthMismatch),
        _ => {}
    }
    head.body = match length {
        _ if is_empty => BodyLength::Known(0),
        Some(length) => BodyLength::Known(length),
        None => BodyLength::Unknown,
    };
    head.expect_continue = expects_continue(&block.fields)? && !is_empty;
    std::mem::swap(&mut head.headers, &mut block.fields);
    if is_tunnel {
        head.headers
            .insert(UPGRADE, block.pseudo(Pseudo::Protocol).unwrap_or_default());
    }
    Ok(length)
}

/// Which pseudo-fields there must be. Returns whether it asks for a tunnel (RFC 8441, section 4).
fn check_pseudo(
    block: &ReceivedBlock,
    method: &[u8],
    takes_tunnels: bool,
) -> Result<bool, StreamFault> {
    let is_connect = method == b"CONNECT";
    let protocol = block.pseudo(Pseudo::Protocol);
    let path = block.pseudo(Pseudo::Path).unwrap_or_default();
    let has_target = block.pseudo(Pseudo::Scheme).is_some() && !path.is_empty();
    if block.pseudo(Pseudo::Status).is_some() {
        return Err(StreamFault::Pseudo);
    }
    match protocol {
        Some(protocol) if is_connect && has_target && takes_tunnels && is_token_text(protocol) => {
            Ok(true)
        }
        Some(_) => Err(StreamFault::Pseudo),
        None if is_connect => Err(StreamFault::Connect),
        None if has_target => Ok(false),
        None => Err(StreamFault::Pseudo),
    }
}

fn read_method(text: &[u8]) -> Result<Method, StreamFault> {
    let method = Method::from_bytes(text).map_err(|_| StreamFault::Method)?;
    match text.len() {
        0..=METHOD_MAX => Ok(method),
        _ => Err(StreamFault::Method),
    }
}

/// Whom the request is for: `:authority`, or else Host, which says the same if both are there.
fn authority(block: &ReceivedBlock) -> Result<Authority, StreamFault> {
    let parse = |text: &[u8]| host::read(text, &block.bytes).map_err(|_| StreamFault::HostSyntax);
    let named = block.pseudo(Pseudo::Authority);
    match (named, block.host()?) {
        (Some(named), Some(host)) if named == host => parse(named),
        (Some(named), Some(host)) => {
            let (named, host) = (parse(named)?, parse(host)?);
            (named == host)
                .then_some(named)
                .ok_or(StreamFault::HostMismatch)
        }
        (Some(one), None) | (None, Some(one)) => parse(one),
        (None, None) => Err(StreamFault::HostMissing),
    }
}

/// Whether the client waits for 100 (RFC 9110, section 10.1.1).
fn expects_continue(fields: &Fields) -> Result<bool, StreamFault> {
    let mut to_continue = false;
    let values = fields
        .get_all(EXPECT)
        .flat_map(|it| it.split(|byte| *byte == b','));
    for expectation in values.map(<[u8]>::trim_ascii) {
        match expectation {
            [] => {}
            text if text.eq_ignore_ascii_case(b"100-continue") => to_continue = true,
            _ => return Err(StreamFault::Expectation),
        }
    }
    Ok(to_continue)
}

/// The longest method, as in HTTP/1.1.
const METHOD_MAX: usize = 32;
