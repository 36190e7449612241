//! The head of a request, in both directions (RFC 9113, section 8.3.1).

use catamaran_message::field::is_token_text;
use catamaran_message::name::UPGRADE;
use catamaran_message::{
    Authority, BodyLength, RequestHead, Scheme, TargetFault, decode_target, host,
};
use http::{Method, Version};

use crate::block::ReceivedBlock;
use crate::error::StreamFault;
use crate::hpack::Pseudo;
use crate::limits::Limits;

/// Reads a block into `head`. Returns the length of the body that follows; `None` if it is not known.
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
    if method.len() > METHOD_MAX {
        return Err(StreamFault::Method);
    }
    head.method = Method::from_bytes(method).map_err(|_| StreamFault::Method)?;
    let scheme_word = block.pseudo(Pseudo::Scheme).unwrap_or_default();
    let scheme = Scheme::of_word(scheme_word).ok_or(StreamFault::Scheme)?;
    let path = block.pseudo(Pseudo::Path).unwrap_or_default();
    if path.len() > limits.target_bytes {
        return Err(StreamFault::TargetTooLong);
    }
    let is_whole_server = path == b"*" && head.method == Method::OPTIONS;
    if path.first() != Some(&b'/') && !is_whole_server {
        return Err(TargetFault::Form.into());
    }
    (head.target, _) = decode_target(&block.bytes, path, &head.method)?;
    head.target.scheme = Some(scheme);
    head.authority = Some(authority(block)?);
    head.version = Version::HTTP_2;
    if block.fields.repeats_singleton() {
        return Err(StreamFault::FieldDuplicate);
    }
    let length = block.take_content_length()?;
    head.body = body_length(length, ends, is_tunnel)?;
    let expects_continue = block
        .fields
        .expects_continue()
        .ok_or(StreamFault::Expectation)?;
    // Without a body there is nothing to continue with.
    head.expect_continue = expects_continue && head.body != BodyLength::Known(0);
    std::mem::swap(&mut head.headers, &mut block.fields);
    if is_tunnel {
        head.headers
            .insert(UPGRADE, block.pseudo(Pseudo::Protocol).unwrap_or_default());
    }
    Ok(length)
}

/// The length of a request's body; `announced` is its Content-Length.
fn body_length(
    announced: Option<u64>,
    ends: bool,
    is_tunnel: bool,
) -> Result<BodyLength, StreamFault> {
    match announced {
        // The bytes after the head belong to the tunnel.
        Some(_) if is_tunnel => Err(StreamFault::ContentLength),
        Some(1..) if ends => Err(StreamFault::LengthMismatch),
        _ if ends || is_tunnel => Ok(BodyLength::Known(0)),
        Some(length) => Ok(BodyLength::Known(length)),
        None => Ok(BodyLength::Unknown),
    }
}

/// Checks which pseudo-fields there are. Returns whether the request asks for a tunnel (RFC 8441, section 4).
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

/// The host that the request is for: `:authority`, or else Host. If both are there, they must be equal.
fn authority(block: &ReceivedBlock) -> Result<Authority, StreamFault> {
    let parse = |text: &[u8]| host::read(text, &block.bytes).map_err(|_| StreamFault::HostSyntax);
    let (pseudo, host) = (block.pseudo(Pseudo::Authority), block.host()?);
    let authority = parse(pseudo.or(host).ok_or(StreamFault::HostMissing)?)?;
    if let (Some(pseudo), Some(host)) = (pseudo, host)
        && pseudo != host
        && parse(host)? != authority
    {
        return Err(StreamFault::HostMismatch);
    }
    Ok(authority)
}

/// The longest method in bytes, as in HTTP/1.1.
const METHOD_MAX: usize = 32;
