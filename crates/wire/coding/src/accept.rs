//! Content codings, and which of them a client accepts.

use arrayvec::ArrayVec;

/// A content coding. A body that is completely there can be coded in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
}

impl Coding {
    /// All content codings.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Gzip, Self::Zstd];

    /// The coding's name in `Content-Encoding`.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The ending that the name of a coded file has after that of the plain file.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    fn is_named(self, token: &[u8]) -> bool {
        let is_alias = self == Self::Gzip && token.eq_ignore_ascii_case(b"x-gzip");
        is_alias || token.eq_ignore_ascii_case(self.token().as_bytes())
    }
}

/// The codings that a client accepts, the best first (RFC 9110, section 12.5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedCodings(ArrayVec<Coding, { Coding::ALL.len() }>);

impl AcceptedCodings {
    /// The codings of `offered` that a request with these lines of `Accept-Encoding` accepts. Those that the
    /// client prefers equally are in the order of `offered`; those that it likes less than the plain body are
    /// left out.
    #[must_use]
    pub fn of<'l>(lines: impl Iterator<Item = &'l [u8]>, offered: &[Coding]) -> Self {
        // The weight that the client gives to each coding by name.
        let mut own_weights: ArrayVec<(Coding, Option<u16>), { Coding::ALL.len() }> =
            ArrayVec::new();
        for &coding in offered {
            if !own_weights.iter().any(|(known, _)| *known == coding) {
                own_weights.push((coding, None));
            }
        }
        let (mut identity, mut any) = (None, None);
        for element in lines.flat_map(|line| line.split(|&byte| byte == b',')) {
            let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let token = parts.next().unwrap_or_default();
            let mut codings = own_weights.iter_mut();
            let weight = match codings.find(|(coding, _)| coding.is_named(token)) {
                Some((_, weight)) => weight,
                None if token == b"*" => &mut any,
                None if token.eq_ignore_ascii_case(b"identity") => &mut identity,
                None => continue,
            };
            // The first element with a token counts.
            weight.get_or_insert_with(|| parts.find_map(quality).unwrap_or(1000));
        }
        let mut accepted: ArrayVec<(Coding, u16), { Coding::ALL.len() }> = ArrayVec::new();
        for (coding, own) in own_weights {
            let weight = own.or(any).unwrap_or(0);
            if weight > 0 && weight >= identity.unwrap_or(0) {
                accepted.push((coding, weight));
            }
        }
        // Stable: equal ones stay in the order of the offer.
        accepted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        Self(accepted.into_iter().map(|(coding, _)| coding).collect())
    }

    /// The codings, the best first.
    pub fn iter(&self) -> impl Iterator<Item = Coding> {
        self.0.iter().copied()
    }
}

/// The value of `q=`, in thousandths; 0 if it is malformed. `None`: the parameter is another one.
fn quality(parameter: &[u8]) -> Option<u16> {
    let (b'q' | b'Q', rest) = parameter.split_first()? else {
        return None;
    };
    let value = rest
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let text = std::str::from_utf8(value).ok()?;
    let number: f32 = text.parse().unwrap_or(0.0);
    let is_weight = (0.0..=1.0).contains(&number);
    Some(if is_weight {
        (number * 1000.0).round() as u16
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(lines: &[&str]) -> Vec<&'static str> {
        let lines = lines.iter().map(|line| line.as_bytes());
        let accepted = AcceptedCodings::of(lines, &[Coding::Brotli, Coding::Gzip]);
        accepted.iter().map(Coding::token).collect()
    }

    #[test]
    fn codings_are_taken_as_the_client_weighs_them() {
        for (line, expected) in [
            ("", &[][..]),
            ("gzip", &["gzip"]),
            ("gzip, deflate, br, zstd", &["br", "gzip"]),
            ("br;q=0, gzip", &["gzip"]),
            ("br;q=0.5, gzip;q=0.8", &["gzip", "br"]),
            ("gzip;q=0", &[]),
            ("gzip;q=0.000", &[]),
            ("*", &["br", "gzip"]),
            ("*;q=0", &[]),
            ("gzip, *;q=0", &["gzip"]),
            ("GZIP", &["gzip"]),
            ("x-gzip", &["gzip"]),
            ("brx", &[]),
            ("identity;q=0", &[]),
            ("identity, gzip;q=0.5", &[]),
            ("identity;q=0.5, gzip", &["gzip"]),
            ("gzip ; q = 0.5", &["gzip"]),
            ("gzip;q=2", &[]),
            ("gzip;q=x", &[]),
        ] {
            assert_eq!(accepted(&[line]), expected, "{line}");
        }
        assert_eq!(accepted(&[]), [""; 0]);
        assert_eq!(accepted(&["gzip;q=0.5", "br;q=0.4"]), ["gzip", "br"]);
    }
}
