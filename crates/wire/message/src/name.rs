//! Names of fields: well-known ones as numbers of a table, all others as bytes.
//!
//! The table has every name that a protocol abbreviates (AJP13's codes, the static tables of HPACK and QPACK), every
//! name that most requests or responses have, and every name that the front treats specially. The row of a name also
//! has its [`Traits`], so that deciding about a field needs only its number.

use std::fmt;

use crate::field::is_token_text;

/// The number of a field name in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Id(u8);

/// The traits of a field name, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// The empty set of traits.
    pub const NONE: Self = Self(0);
    /// Concerns one connection only (RFC 9110, section 7.6.1), apart from the names in Connection itself.
    pub const HOP_BY_HOP: Self = Self(1);
    /// Says where a body ends.
    pub const FRAMING: Self = Self(1 << 1);
    /// Is never forwarded with a request: harmful or useless behind a front.
    pub const NOT_FORWARDED: Self = Self(1 << 2);
    /// Is never stored with a response.
    pub const NOT_STORED: Self = Self(1 << 3);
    /// Says who the client is, or which certificate it showed.
    pub const CLAIM: Self = Self(1 << 4);
    /// Says which certificate the client showed; such a name has [`Self::CLAIM`] too.
    pub const CERTIFICATE: Self = Self(1 << 9);
    /// Makes a request depend on the copy that the client has.
    pub const CONDITION: Self = Self(1 << 5);
    /// Is written only by the codec in a request over HTTP/1.1.
    pub const OF_CODEC: Self = Self(1 << 6);
    /// Is not in the table: callers with rules for further names look at its bytes.
    pub const UNKNOWN: Self = Self(1 << 7);
    /// Is named by `Connection`, so it concerns one connection only.
    pub const NOMINATED: Self = Self(1 << 8);
    /// Says that the body has a content coding, or describes its exact bytes, such as `Content-Range` or
    /// `Content-Digest`. The front must not compress such a body.
    pub const EXACT_BODY: Self = Self(1 << 12);
    /// Says how long a response is fresh, for whom it is, or which version it is. The front removes such fields if it
    /// sends a page of its own instead of the response.
    pub const OF_CONTENT: Self = Self(1 << 13);
    /// Has a secret value, which must not be in a table of HPACK or QPACK (RFC 7541, section 7.1.3).
    pub const SECRET: Self = Self(1 << 10);
    /// Has a different value in most messages, so that it is useless in a table of HPACK or QPACK.
    pub const UNIQUE: Self = Self(1 << 11);
    /// Has one value that is no list, and decides what a request is answered: readers of a request in which it stands
    /// twice disagree on the one that counts (RFC 9110, section 5.3). Names that say where a body ends, and `Host`, have
    /// checks of their own.
    pub const SINGLETON: Self = Self(1 << 14);

    /// All traits of fields that no other connection gets: they concern one alone, or say where a body ends.
    pub const OF_CONNECTION: Self = Self::HOP_BY_HOP.with(Self::FRAMING).with(Self::NOMINATED);

    /// The union of both sets of traits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets have a trait in common.
    #[must_use]
    #[inline]
    pub const fn has_any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }
}

/// A field name to look for.
#[derive(Clone, Copy, Debug)]
pub enum NameRef<'n> {
    /// A name in the table.
    Known(Id),
    /// Any other name, in any case of letters.
    Other(&'n [u8]),
}

impl<'n> NameRef<'n> {
    /// Looks up a name in the table, in any case of letters. Accepts any bytes.
    #[inline]
    #[must_use]
    pub fn read(text: &'n [u8]) -> Self {
        find(text).map_or(Self::Other(text), Self::Known)
    }

    /// The text of the name: as in the RFCs for a name in the table, else as it was given.
    #[inline]
    #[must_use]
    pub fn as_bytes(self) -> &'n [u8] {
        match self {
            Self::Known(id) => id.spelling().as_bytes(),
            Self::Other(text) => text,
        }
    }

    /// Whether both are the same name, in any case of letters.
    #[must_use]
    pub fn is<'o>(self, other: impl Into<NameRef<'o>>) -> bool {
        match (self, other.into()) {
            (Self::Known(one), NameRef::Known(other)) => one == other,
            (Self::Other(one), NameRef::Other(other)) => one.eq_ignore_ascii_case(other),
            _ => false,
        }
    }

    /// The traits of the name.
    #[inline]
    #[must_use]
    pub fn traits(self) -> Traits {
        match self {
            Self::Known(id) => id.traits(),
            Self::Other(_) => Traits::UNKNOWN,
        }
    }
}

impl From<Id> for NameRef<'_> {
    #[inline]
    fn from(id: Id) -> Self {
        Self::Known(id)
    }
}

impl<'n> From<&'n FieldName> for NameRef<'n> {
    #[inline]
    fn from(name: &'n FieldName) -> Self {
        match name {
            FieldName::Known(id) => Self::Known(*id),
            FieldName::Other(text) => Self::Other(text.as_bytes()),
        }
    }
}

impl<'n> From<&'n str> for NameRef<'n> {
    #[inline]
    fn from(name: &'n str) -> Self {
        Self::read(name.as_bytes())
    }
}

/// An owned field name, for a configuration or a store.
#[derive(Clone, Debug)]
pub enum FieldName {
    /// A name in the table.
    Known(Id),
    /// Any other name, as it was written.
    Other(Box<str>),
}

impl FieldName {
    /// Parses a name, in any case of letters; `None` if it is not a token (RFC 9110, section 5.1).
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        match find(text) {
            Some(id) => Some(Self::Known(id)),
            None if text.is_empty() || !is_token_text(text) => None,
            None => std::str::from_utf8(text)
                .ok()
                .map(|text| Self::Other(text.into())),
        }
    }

    /// Parses a name given in the code.
    ///
    /// # Panics
    /// If it is not a token.
    #[must_use]
    pub fn from_static(text: &'static str) -> Self {
        Self::parse(text.as_bytes()).expect("the name of a field")
    }

    /// The text of the name: as in the RFCs for a name in the table, else as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(id) => id.spelling(),
            Self::Other(text) => text,
        }
    }
}

impl From<Id> for FieldName {
    fn from(id: Id) -> Self {
        Self::Known(id)
    }
}

impl PartialEq for FieldName {
    /// Whether both are the same name, in any case of letters.
    fn eq(&self, other: &Self) -> bool {
        NameRef::from(self).is(other)
    }
}

impl Eq for FieldName {}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Id {
    /// All names in the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..COUNT).map(|index| Self(u8::try_from(index).unwrap_or(u8::MAX)))
    }

    /// The number of names in the table.
    pub const COUNT: u8 = COUNT as u8;

    /// The number of the name, below [`Self::COUNT`].
    #[inline]
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    #[inline]
    fn row(self) -> &'static Row {
        &ROWS[usize::from(self.0)]
    }

    /// The name as the RFCs write it.
    #[inline]
    #[must_use]
    pub fn spelling(self) -> &'static str {
        self.row().spelling
    }

    /// The traits of the name.
    #[inline]
    #[must_use]
    pub fn traits(self) -> Traits {
        self.row().traits
    }

    /// The name's number in a protocol: the low byte of its code in AJP13, or its first index in the static table of
    /// HPACK (RFC 7541, appendix A); `None` if it has none.
    #[inline]
    #[must_use]
    pub fn code(self, of: Protocol) -> Option<u8> {
        self.row().codes[of as usize]
    }

    /// The bit of the name in a 64-bit set. Only names at the front of the table have a bit of their own.
    #[inline]
    pub(crate) fn bit(self) -> u64 {
        1 << (self.0 & 63)
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        self.spelling()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spelling())
    }
}

/// The row of a name in the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    spelling: &'static str,
    traits: Traits,
    /// The codes in each [`Protocol`].
    codes: [Option<u8>; PROTOCOLS],
}

impl Row {
    const fn new(spelling: &'static str) -> Self {
        Self {
            spelling,
            traits: Traits::NONE,
            codes: [None; PROTOCOLS],
        }
    }

    const fn is(mut self, traits: Traits) -> Self {
        self.traits = self.traits.with(traits);
        self
    }

    const fn request(self, code: u8) -> Self {
        self.code(Protocol::AjpRequest, code)
    }

    const fn response(self, code: u8) -> Self {
        self.code(Protocol::AjpResponse, code)
    }

    const fn hpack(self, index: u8) -> Self {
        self.code(Protocol::Hpack, index)
    }

    const fn code(mut self, of: Protocol, code: u8) -> Self {
        self.codes[of as usize] = Some(code);
        self
    }
}

/// Defines the table and a constant for each of its rows.
macro_rules! names {
    ($($constant:ident $spelling:literal $(.$method:ident($argument:expr))*;)*) => {
        const TABLE: [Row; COUNT] = [$(Row::new($spelling)$(.$method($argument))*),*];

        #[allow(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "named as the constants"
        )]
        #[derive(Clone, Copy)]
        enum Position { $($constant),* }

        const COUNT: usize = [$(Position::$constant),*].len();

        $(
            #[doc = concat!("`", $spelling, "`")]
            pub const $constant: Id = Id(Position::$constant as u8);
        )*
    };
}

// The first 64 are those that most heads have.
names! {
    HOST "Host".hpack(38).request(0x0B).is(Traits::OF_CODEC);
    USER_AGENT "User-Agent".hpack(58).request(0x0E);
    ACCEPT "Accept".hpack(19).request(0x01);
    ACCEPT_LANGUAGE "Accept-Language".hpack(17).request(0x04);
    ACCEPT_ENCODING "Accept-Encoding".hpack(16).request(0x03);
    ACCEPT_CHARSET "Accept-Charset".hpack(15).request(0x02);
    AUTHORIZATION "Authorization".hpack(23).request(0x05).is(Traits::SECRET).is(Traits::SINGLETON);
    CONNECTION "Connection".request(0x06).is(HOP_BY_HOP);
    CONTENT_TYPE "Content-Type".hpack(31).request(0x07).response(0x01);
    CONTENT_LENGTH "Content-Length".hpack(28).request(0x08).response(0x03).is(Traits::FRAMING).is(Traits::UNIQUE);
    COOKIE "Cookie".hpack(32).request(0x09).is(Traits::SECRET);
    PRAGMA "Pragma".request(0x0C).is(Traits::OF_CONTENT);
    REFERER "Referer".hpack(51).request(0x0D).is(Traits::UNIQUE);
    CACHE_CONTROL "Cache-Control".hpack(24);
    ORIGIN "Origin";
    RANGE "Range".hpack(50).is(Traits::UNIQUE);
    IF_NONE_MATCH "If-None-Match".hpack(41).is(Traits::CONDITION).is(Traits::UNIQUE);
    IF_MODIFIED_SINCE "If-Modified-Since".hpack(40).is(Traits::CONDITION).is(Traits::UNIQUE).is(Traits::SINGLETON);
    UPGRADE_INSECURE_REQUESTS "Upgrade-Insecure-Requests";
    DNT "DNT";
    SEC_GPC "Sec-GPC";
    SEC_FETCH_DEST "Sec-Fetch-Dest";
    SEC_FETCH_MODE "Sec-Fetch-Mode";
    SEC_FETCH_SITE "Sec-Fetch-Site";
    SEC_FETCH_USER "Sec-Fetch-User";
    SEC_CH_UA "Sec-CH-UA";
    SEC_CH_UA_MOBILE "Sec-CH-UA-Mobile";
    SEC_CH_UA_PLATFORM "Sec-CH-UA-Platform";
    PRIORITY "Priority";
    X_REQUESTED_WITH "X-Requested-With";
    TRANSFER_ENCODING "Transfer-Encoding".hpack(57).is(HOP_BY_HOP).is(Traits::FRAMING);
    KEEP_ALIVE "Keep-Alive".is(HOP_BY_HOP);
    VIA "Via".hpack(60);
    X_FORWARDED_FOR "X-Forwarded-For".is(Traits::CLAIM);
    X_FORWARDED_HOST "X-Forwarded-Host".is(Traits::CLAIM);
    X_FORWARDED_PORT "X-Forwarded-Port".is(Traits::CLAIM);
    X_FORWARDED_PROTO "X-Forwarded-Proto".is(Traits::CLAIM);
    X_REQUEST_ID "X-Request-Id".is(Traits::UNIQUE);
    DATE "Date".hpack(33).response(0x04);
    SERVER "Server".hpack(54);
    SET_COOKIE "Set-Cookie".hpack(55).response(0x07).is(Traits::SECRET).is(Traits::OF_CONTENT);
    LAST_MODIFIED "Last-Modified".hpack(44).response(0x05).is(Traits::UNIQUE).is(Traits::OF_CONTENT);
    ETAG "ETag".hpack(34).is(Traits::UNIQUE).is(Traits::OF_CONTENT);
    LOCATION "Location".hpack(46).response(0x06).is(Traits::UNIQUE);
    VARY "Vary".hpack(59);
    EXPIRES "Expires".hpack(36).is(Traits::OF_CONTENT);
    AGE "Age".hpack(21).is(Traits::NOT_STORED).is(Traits::UNIQUE).is(Traits::OF_CONTENT);
    ACCEPT_RANGES "Accept-Ranges".hpack(18).is(Traits::OF_CONTENT);
    CONTENT_ENCODING "Content-Encoding".hpack(26).is(Traits::EXACT_BODY);
    CONTENT_LANGUAGE "Content-Language".hpack(27).response(0x02);
    CONTENT_RANGE "Content-Range".hpack(30).is(Traits::UNIQUE).is(Traits::EXACT_BODY).is(Traits::SINGLETON);
    CONTENT_DISPOSITION "Content-Disposition".hpack(25);
    CONTENT_LOCATION "Content-Location".hpack(29).is(Traits::UNIQUE).is(Traits::OF_CONTENT);
    CONTENT_SECURITY_POLICY "Content-Security-Policy";
    STRICT_TRANSPORT_SECURITY "Strict-Transport-Security".hpack(56);
    X_CONTENT_TYPE_OPTIONS "X-Content-Type-Options";
    X_FRAME_OPTIONS "X-Frame-Options";
    X_XSS_PROTECTION "X-XSS-Protection";
    REFERRER_POLICY "Referrer-Policy";
    PERMISSIONS_POLICY "Permissions-Policy";
    LINK "Link".hpack(45);
    ALT_SVC "Alt-Svc";
    X_POWERED_BY "X-Powered-By";
    X_CACHE "X-Cache";
    ACCESS_CONTROL_ALLOW_CREDENTIALS "Access-Control-Allow-Credentials";
    ACCESS_CONTROL_ALLOW_HEADERS "Access-Control-Allow-Headers";
    ACCESS_CONTROL_ALLOW_METHODS "Access-Control-Allow-Methods";
    ACCESS_CONTROL_ALLOW_ORIGIN "Access-Control-Allow-Origin".hpack(20);
    ACCESS_CONTROL_EXPOSE_HEADERS "Access-Control-Expose-Headers";
    ACCESS_CONTROL_MAX_AGE "Access-Control-Max-Age";
    ACCESS_CONTROL_REQUEST_HEADERS "Access-Control-Request-Headers";
    ACCESS_CONTROL_REQUEST_METHOD "Access-Control-Request-Method";
    ALLOW "Allow".hpack(22);
    CACHE_STATUS "Cache-Status";
    CACHE_TAG "Cache-Tag".is(Traits::NOT_STORED);
    CDN_CACHE_CONTROL "CDN-Cache-Control";
    CLIENT_CERT "Client-Cert".is(CERTIFICATE);
    CLIENT_CERT_CHAIN "Client-Cert-Chain".is(CERTIFICATE);
    CONTENT_DIGEST "Content-Digest".is(Traits::UNIQUE).is(Traits::EXACT_BODY);
    CONTENT_MD5 "Content-MD5".is(Traits::UNIQUE).is(Traits::EXACT_BODY);
    CONTENT_SECURITY_POLICY_REPORT_ONLY "Content-Security-Policy-Report-Only";
    COOKIE2 "Cookie2".request(0x0A);
    CROSS_ORIGIN_EMBEDDER_POLICY "Cross-Origin-Embedder-Policy";
    CROSS_ORIGIN_OPENER_POLICY "Cross-Origin-Opener-Policy";
    CROSS_ORIGIN_RESOURCE_POLICY "Cross-Origin-Resource-Policy";
    DIGEST "Digest".is(Traits::UNIQUE).is(Traits::EXACT_BODY);
    EARLY_DATA "Early-Data";
    EXPECT "Expect".hpack(35).is(Traits::NOT_FORWARDED).is(Traits::OF_CODEC);
    EXPECT_CT "Expect-CT";
    FORWARDED "Forwarded".is(Traits::CLAIM);
    FROM "From".hpack(37);
    HTTP2_SETTINGS "HTTP2-Settings".is(Traits::NOT_FORWARDED).is(Traits::OF_CODEC);
    IF_MATCH "If-Match".hpack(39).is(Traits::CONDITION).is(Traits::UNIQUE);
    IF_RANGE "If-Range".hpack(42).is(Traits::UNIQUE).is(Traits::SINGLETON);
    IF_UNMODIFIED_SINCE "If-Unmodified-Since".hpack(43).is(Traits::CONDITION).is(Traits::UNIQUE).is(Traits::SINGLETON);
    LAST_EVENT_ID "Last-Event-ID".is(Traits::UNIQUE);
    MAX_FORWARDS "Max-Forwards".hpack(47);
    NEL "NEL";
    PROXY "Proxy".is(Traits::NOT_FORWARDED);
    PROXY_AUTHENTICATE "Proxy-Authenticate".hpack(48).is(Traits::NOT_STORED);
    PROXY_AUTHENTICATION_INFO "Proxy-Authentication-Info".is(Traits::NOT_STORED);
    PROXY_AUTHORIZATION "Proxy-Authorization".hpack(49).is(Traits::NOT_FORWARDED).is(Traits::NOT_STORED).is(Traits::SECRET);
    PROXY_CONNECTION "Proxy-Connection".is(HOP_BY_HOP);
    PURPOSE "Purpose";
    REFRESH "Refresh".hpack(52);
    REPORT_TO "Report-To";
    REPR_DIGEST "Repr-Digest".is(Traits::UNIQUE).is(Traits::EXACT_BODY);
    RETRY_AFTER "Retry-After".hpack(53);
    SAVE_DATA "Save-Data";
    SEC_WEBSOCKET_ACCEPT "Sec-WebSocket-Accept".is(Traits::UNIQUE);
    SEC_WEBSOCKET_EXTENSIONS "Sec-WebSocket-Extensions";
    SEC_WEBSOCKET_KEY "Sec-WebSocket-Key".is(Traits::UNIQUE);
    SEC_WEBSOCKET_PROTOCOL "Sec-WebSocket-Protocol";
    SEC_WEBSOCKET_VERSION "Sec-WebSocket-Version";
    SERVER_TIMING "Server-Timing".is(Traits::UNIQUE);
    SERVLET_ENGINE "Servlet-Engine".response(0x09);
    SET_COOKIE2 "Set-Cookie2".response(0x08);
    STATUS "Status".response(0x0A);
    SURROGATE_CONTROL "Surrogate-Control".is(Traits::OF_CONTENT);
    SURROGATE_KEY "Surrogate-Key".is(Traits::NOT_STORED);
    TE "TE".is(HOP_BY_HOP);
    TIMING_ALLOW_ORIGIN "Timing-Allow-Origin";
    TRACEPARENT "traceparent".is(Traits::UNIQUE);
    TRACESTATE "tracestate";
    TRAILER "Trailer".is(HOP_BY_HOP);
    UPGRADE "Upgrade".is(HOP_BY_HOP);
    WARNING "Warning";
    WWW_AUTHENTICATE "WWW-Authenticate".hpack(61).response(0x0B);
    X_FORWARDED_PREFIX "X-Forwarded-Prefix".is(Traits::CLAIM);
    X_REAL_IP "X-Real-IP".is(Traits::CLAIM);
}

/// The protocols that abbreviate names by numbers.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// A request of AJP13.
    AjpRequest,
    /// A response of AJP13.
    AjpResponse,
    /// The static table of HPACK (RFC 7541, appendix A).
    Hpack,
}

impl Protocol {
    /// The names by their [codes](Id::code).
    #[must_use]
    pub const fn names(self) -> &'static [Option<Id>; CODES_END] {
        &NAMES[self as usize]
    }
}

static NAMES: [[Option<Id>; CODES_END]; PROTOCOLS] = {
    let mut names = [[None; CODES_END]; PROTOCOLS];
    let mut index = 0;
    while index < COUNT * PROTOCOLS {
        let (row, protocol) = (index / PROTOCOLS, index % PROTOCOLS);
        if let Some(code) = TABLE[row].codes[protocol] {
            let slot = &mut names[protocol][code as usize];
            assert!(slot.is_none(), "two names have the same code");
            *slot = Some(Id(row as u8));
        }
        index += 1;
    }
    names
};

/// Finds a name in the table, in any case of letters.
#[inline]
#[must_use]
pub fn find(text: &[u8]) -> Option<Id> {
    let slot = SLOTS[slot(text, SEED)?];
    // Slots that no name has are beyond the table.
    let row = ROWS.get(usize::from(slot))?;
    is_spelt(row.spelling.as_bytes(), text).then_some(Id(slot))
}

/// Whether `text` is the name `spelling` in any case of letters. Compares eight bytes at a time, for over HTTP/2 all
/// names differ in case from the table.
#[inline]
fn is_spelt(spelling: &[u8], text: &[u8]) -> bool {
    // Of letters, digits and hyphens only letters have the bit 0x40: where it is, the case does not count.
    let is_same = |spelling: u64, text: u64| {
        let case = (spelling >> 1) & 0x2020_2020_2020_2020;
        (spelling ^ text) & !case == 0
    };
    let is_block = |spelling: &[u8; 8], text: &[u8; 8]| {
        is_same(u64::from_le_bytes(*spelling), u64::from_le_bytes(*text))
    };
    if spelling.len() != text.len() {
        return false;
    }
    match (spelling.last_chunk(), text.last_chunk()) {
        (Some(spelling_end), Some(text_end)) => {
            let mut blocks = spelling.as_chunks().0.iter().zip(text.as_chunks().0);
            is_block(spelling_end, text_end) && blocks.all(|(one, other)| is_block(one, other))
        }
        _ => is_same(short_word(spelling), short_word(text)),
    }
}

/// A text of fewer than eight bytes as one number, in which some bytes occur twice.
#[inline]
fn short_word(text: &[u8]) -> u64 {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            u64::from(first) << 32 | u64::from(last)
        }
        _ => text
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The hash slot of a name, by its length and four of its bytes, without their case. `None` for an empty text.
const fn slot(text: &[u8], seed: u32) -> Option<usize> {
    let len = text.len();
    if len == 0 {
        return None;
    }
    let sample = u32::from_le_bytes([text[0], text[len / 2], text[len - 1], text[len * 7 / 8]]);
    let folded = (sample | 0x2020_2020) ^ (len as u32).wrapping_mul(0x0100_0193);
    Some((folded.wrapping_mul(seed) >> (32 - SLOTS_BITS)) as usize)
}

static ROWS: [Row; COUNT] = TABLE;

/// For each hash slot, the number of the name in it.
static SLOTS: [u8; 1 << SLOTS_BITS] = match slots(SEED) {
    Some(slots) => slots,
    None => panic!("two names have the same slot"),
};

/// The table of hash slots for a factor; `None` if two names have the same slot.
const fn slots(seed: u32) -> Option<[u8; 1 << SLOTS_BITS]> {
    let mut slots = [u8::MAX; 1 << SLOTS_BITS];
    let mut index = 0;
    while index < COUNT {
        let Some(slot) = slot(TABLE[index].spelling.as_bytes(), seed) else {
            return None;
        };
        if slots[slot] != u8::MAX {
            return None;
        }
        slots[slot] = index as u8;
        index += 1;
    }
    Some(slots)
}

const HOP_BY_HOP: Traits = Traits::HOP_BY_HOP.with(Traits::NOT_FORWARDED);
const CERTIFICATE: Traits = Traits::CERTIFICATE.with(Traits::CLAIM);

/// A hash factor with which each name has its own slot.
const SEED: u32 = {
    let mut seed = 0x9E37_79B1_u32;
    while slots(seed).is_none() {
        seed = seed.wrapping_add(0x6C07_8964);
    }
    seed
};

const SLOTS_BITS: u32 = 11;

const PROTOCOLS: usize = 3;

/// A number greater than every code of AJP13 and every index of HPACK's static table.
const CODES_END: usize = 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case() {
        for id in Id::all() {
            let name = id.spelling();
            for text in [
                name.to_owned(),
                name.to_ascii_lowercase(),
                name.to_ascii_uppercase(),
            ] {
                assert_eq!(find(text.as_bytes()), Some(id), "{text}");
            }
            assert_eq!(find(format!("{name}x").as_bytes()), None, "{name}");
            for at in 0..name.len() {
                for bit in 0..8 {
                    let mut text = name.as_bytes().to_vec();
                    text[at] ^= 1 << bit;
                    let is_same = name.as_bytes().eq_ignore_ascii_case(&text);
                    assert_eq!(is_spelt(name.as_bytes(), &text), is_same, "{text:?}");
                }
            }
        }
        for other in ["", "x", "hos\u{b4}", "x-forwarded-fox"] {
            assert_eq!(find(other.as_bytes()), None, "{other}");
        }
    }
}
