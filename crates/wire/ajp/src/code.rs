//! The protocol's number tables: messages, methods and attributes.
//!
//! Numbers and spellings are those of the AJP13 reference and of every deployed peer. A method or
//! field without a number is sent as text: the method as attribute `stored_method`, the field name
//! as a string. The number of a field is in the table of its name ([`catamaran_message::name`]).

use http::Method;

/// Message code: one request head, from the web server.
pub const FORWARD_REQUEST: u8 = 2;
/// Message code: bytes of the response body, from the container.
pub const SEND_BODY_CHUNK: u8 = 3;
/// Message code: the response head, from the container.
pub const SEND_HEADERS: u8 = 4;
/// Message code: the response is complete, from the container.
pub const END_RESPONSE: u8 = 5;
/// Message code: the container asks for request body bytes.
pub const GET_BODY_CHUNK: u8 = 6;
/// Message code: the container answers a CPING.
pub const CPONG: u8 = 9;
/// Message code: the web server asks whether the container is there.
pub const CPING: u8 = 10;

/// Method code that means: attribute `stored_method` has the method.
pub const STORED_METHOD: u8 = 0xFF;

/// The byte that ends the attributes of a request.
pub const ATTRIBUTES_END: u8 = 0xFF;

/// The high byte of a field name that is a code instead of a string.
pub const FIELD_CODE: u8 = 0xA0;

/// The field name Content-Length in a request, as its two bytes.
pub const CONTENT_LENGTH_OF_REQUEST: [u8; 2] = [FIELD_CODE, 0x08];

/// The field name Content-Length in a response, as its two bytes.
pub const CONTENT_LENGTH_OF_RESPONSE: [u8; 2] = [FIELD_CODE, 0x03];

/// Methods by code, the first being 1.
pub static METHODS: [&str; 27] = [
    "OPTIONS",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "ACL",
    "REPORT",
    "VERSION-CONTROL",
    "CHECKIN",
    "CHECKOUT",
    "UNCHECKOUT",
    "SEARCH",
    "MKWORKSPACE",
    "UPDATE",
    "LABEL",
    "MERGE",
    "BASELINE-CONTROL",
    "MKACTIVITY",
];

/// The method with this code; `None` for [`STORED_METHOD`] and codes that do not exist.
pub fn method(code: u8) -> Option<Method> {
    let name = METHODS.get(usize::from(code).checked_sub(1)?)?;
    Method::from_bytes(name.as_bytes()).ok()
}

/// The code of `method`; [`STORED_METHOD`] if it has none of its own.
pub fn method_code(method: &Method) -> u8 {
    let name = method.as_str();
    let index = METHODS.iter().position(|known| *known == name);
    index
        .and_then(|index| u8::try_from(index + 1).ok())
        .unwrap_or(STORED_METHOD)
}

/// The number of an attribute of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AttributeCode {
    /// Servlet context; no web server sends it, and readers should ignore it.
    Context = 1,
    /// Servlet path; readers should ignore it, as they do the context.
    ServletPath = 2,
    /// The user whom the web server authenticated.
    RemoteUser = 3,
    /// How the web server authenticated the user.
    AuthType = 4,
    /// The query as the client sent it, without `?`.
    QueryString = 5,
    /// The route that a balancer chose.
    JvmRoute = 6,
    /// The client's certificate as PEM, possibly with its chain.
    SslCert = 7,
    /// The name of the TLS cipher.
    SslCipher = 8,
    /// The TLS session id in hexadecimal.
    SslSession = 9,
    /// A named attribute: two strings follow.
    ReqAttribute = 10,
    /// The cipher's key size in bits: an integer, or a string from lighttpd and Undertow.
    SslKeySize = 11,
    /// The shared secret.
    Secret = 12,
    /// The method's name, for a method without a code.
    StoredMethod = 13,
}

impl AttributeCode {
    /// All codes, in order.
    pub const ALL: [Self; 13] = [
        Self::Context,
        Self::ServletPath,
        Self::RemoteUser,
        Self::AuthType,
        Self::QueryString,
        Self::JvmRoute,
        Self::SslCert,
        Self::SslCipher,
        Self::SslSession,
        Self::ReqAttribute,
        Self::SslKeySize,
        Self::Secret,
        Self::StoredMethod,
    ];

    /// The attribute with this number; `None` if there is none.
    pub fn from_number(number: u8) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// The attribute's number on the wire.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_its_code_both_ways() {
        for (index, name) in METHODS.iter().enumerate() {
            let code = u8::try_from(index + 1).unwrap();
            let method = method(code).unwrap();
            assert_eq!(method.as_str(), *name);
            assert_eq!(method_code(&method), code);
        }
        for name in ["PATCH", "QUERY", "CONNECT", "get", "FOO"] {
            let method = Method::from_bytes(name.as_bytes()).unwrap();
            assert_eq!(method_code(&method), STORED_METHOD);
        }
        for code in [0, 28, 127, 128, 254, 255] {
            assert_eq!(method(code), None);
        }
    }

    #[test]
    fn the_numbers_that_peers_agree_on() {
        // Spot checks against the reference, so that a shifted table cannot pass unseen.
        assert_eq!(method(2), Some(Method::GET));
        assert_eq!(method(6), Some(Method::DELETE));
        assert_eq!(method(8).unwrap().as_str(), "PROPFIND");
        assert_eq!(method(13).unwrap().as_str(), "LOCK");
        assert_eq!(method(27).unwrap().as_str(), "MKACTIVITY");
        assert_eq!(CONTENT_LENGTH_OF_REQUEST, [0xA0, 8]);
        assert_eq!(CONTENT_LENGTH_OF_RESPONSE, [0xA0, 3]);
        assert_eq!(
            AttributeCode::from_number(5),
            Some(AttributeCode::QueryString)
        );
        assert_eq!(
            AttributeCode::from_number(13),
            Some(AttributeCode::StoredMethod)
        );
        for attribute in AttributeCode::ALL {
            assert_eq!(
                AttributeCode::from_number(attribute.number()),
                Some(attribute)
            );
        }
        for number in [0, 14, 0x20, 0xFE, 0xFF] {
            assert_eq!(AttributeCode::from_number(number), None);
        }
    }
}
