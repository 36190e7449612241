//! How long chains of certificates may be, as sources count them.

use catamaran_proxy::config::DEPTH_MAX;
use x509_parser::pem::Pem;

use crate::ledger::{Id, Ledger};

/// What a source's number counts, besides the certificate itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepthCount {
    /// The authorities between the certificate and the trusted one: nginx, by `X509_VERIFY_PARAM_set_depth` of OpenSSL 1.1.
    Between,
    /// Those and the trusted one: httpd, which counts itself (`ssl_callback_SSLVerify`).
    WithTrusted,
}

/// The most authorities that a source allows between a certificate and one of its file of authorities. Without a number it
/// is 1 for both. The front's chains end at any certificate of the file, those of the source at one that is its own
/// issuer, so the others of the file count as authorities in between. `None`: the source accepts less than the front can
/// say.
pub(crate) fn depth(number: Option<&str>, count: DepthCount, authorities: &[u8]) -> Option<usize> {
    let limit: usize = number.unwrap_or("1").parse().ok()?;
    let between = match count {
        DepthCount::Between => limit,
        DepthCount::WithTrusted => limit.checked_sub(1)?,
    };
    between.checked_sub(subordinates(authorities))
}

/// The key `ca_depth` of a backend for [`depth`], with its value, unless the front allows no more anyway. Marks the
/// directive `of`.
pub(crate) fn depth_key(
    number: Option<&str>,
    count: DepthCount,
    authorities: &[u8],
    of: Id,
    ledger: &mut Ledger,
) -> Option<(String, String)> {
    let depth = depth(number, count, authorities);
    match depth {
        Some(_) => ledger.mapped(of),
        None => ledger.lost(of, BELOW_OTHERS),
    }
    let depth = depth.unwrap_or_default();
    (depth < DEPTH_MAX).then(|| ("ca_depth".to_owned(), depth.to_string()))
}

/// How many certificates of a PEM file have another one as their issuer. What is no certificate does not count: the front
/// refuses such a file.
fn subordinates(pem: &[u8]) -> usize {
    let blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok);
    let is_below = |block: &Pem| {
        let parsed = block.parse_x509();
        parsed.is_ok_and(|it| it.issuer().as_raw() != it.subject().as_raw())
    };
    blocks.filter(is_below).count()
}

/// The risk where the source accepts certificates of fewer authorities than the front.
pub(crate) const BELOW_OTHERS: &str = "the source accepts no chain through the authorities of this file that are below \
    others, or only certificates that are their own issuers: leave in the file what may issue certificates itself";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sources_are_counts_of_authorities_in_between() {
        use DepthCount::{Between, WithTrusted};
        for (number, count, expected) in [
            (None, Between, Some(1)),
            (None, WithTrusted, Some(0)),
            (Some("0"), Between, Some(0)),
            (Some("0"), WithTrusted, None),
            (Some("3"), Between, Some(3)),
            (Some("3"), WithTrusted, Some(2)),
            (Some("x"), Between, None),
        ] {
            assert_eq!(depth(number, count, b""), expected, "{number:?} {count:?}");
        }
    }
}
