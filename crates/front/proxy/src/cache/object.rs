//! A stored response with its body, and compressed copies of the body, as the cache keeps it in memory.
//!
//! There may be a million of them. So parts that few of them have are allocated apart, and a short body shares the
//! memory of the fields.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use catamaran_cache::object::ObjectHead;
use catamaran_coding::{CodedBodies, Coding};
use catamaran_message::Fields;

/// A stored response. It is never changed, only replaced by another.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) head: ObjectHead,
    body: Body,
    /// Compressed copies of the body; made when the first one is asked for.
    coded: OnceLock<Box<CodedBodies>>,
}

/// The whole body of a response.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The blocks of the body; `None` for a short body, which follows the fields in their memory.
    blocks: Option<Arc<[Bytes]>>,
    len: u64,
}

impl Body {
    /// Packs the fields of a response as they are stored, and the body from the blocks that were received.
    pub(crate) fn store(headers: &Fields, blocks: Vec<Bytes>) -> (Fields, Self) {
        let len = blocks.iter().map(|block| block.len() as u64).sum();
        if len < SHORT_MAX as u64 {
            return (headers.packed(&blocks), Self { blocks: None, len });
        }
        let blocks = Some(blocks.into());
        (headers.packed::<Bytes>(&[]), Self { blocks, len })
    }
}

impl Object {
    /// A stored response of these parts, without compressed copies.
    pub(crate) fn new(head: ObjectHead, body: Body) -> Self {
        Self {
            head,
            body,
            coded: OnceLock::new(),
        }
    }

    /// This response with the compressed copies of `other`, which has the same body.
    pub(crate) fn with_codings_of(self, other: &Self) -> Self {
        Self {
            coded: other.coded.clone(),
            ..self
        }
    }

    /// This response with a further compressed copy of its body.
    pub(super) fn with_coding(&self, coding: Coding, bytes: Bytes) -> Self {
        Self {
            head: self.head.clone(),
            body: self.body.clone(),
            coded: Box::new(self.codings().with(coding, bytes)).into(),
        }
    }

    /// The compressed copy of the body in that coding; `None`: it is not kept.
    pub(crate) fn coded(&self, coding: Coding) -> Option<&Bytes> {
        self.coded.get()?.get(coding)
    }

    /// The compressed copies of the body; none at first.
    pub(crate) fn codings(&self) -> &CodedBodies {
        self.coded.get_or_init(Box::default)
    }

    /// Whether `other` is this response, perhaps with other compressed copies.
    pub(super) fn is_same_response(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.head.fields.shares_memory(&other.head.fields)
    }

    /// The parts of a new response with the same body but these fields.
    pub(crate) fn with_fields(&self, headers: &Fields) -> (Fields, Body) {
        let fields = match self.body.blocks {
            Some(_) => headers.packed::<Bytes>(&[]),
            // The memory of the fields ends with the body.
            None => headers.packed(&[self.head.fields.rest()]),
        };
        (fields, self.body.clone())
    }

    /// The length of the body, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.body.len
    }

    /// The block of the body at this index; `None` beyond its end.
    pub(crate) fn block(&self, index: usize) -> Option<Bytes> {
        match &self.body.blocks {
            Some(blocks) => blocks.get(index).cloned(),
            None if index == 0 && self.body.len > 0 => Some(self.head.fields.rest()),
            None => None,
        }
    }

    /// The blocks of the body.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Bytes> {
        (0..).map_while(|index| self.block(index))
    }

    /// The bytes of memory that the object takes, as counted for the cache's limit. The number never changes:
    /// asking for a coding adds nothing.
    pub(super) fn weight(&self) -> u64 {
        // A short body is counted with the fields.
        let blocks = self.body.blocks.as_ref().map_or(0, |blocks| {
            let list = blocks.len() * (size_of::<Bytes>() + ALLOCATION);
            self.body.len + list as u64
        });
        let coded = match self.coded.get() {
            Some(coded) if !coded.is_empty() => size_of::<CodedBodies>() + coded.len(),
            _ => 0,
        };
        blocks + (size_of::<Self>() + self.head.weight() + coded + OVERHEAD) as u64
    }
}

/// Bodies with fewer bytes than this are stored with the fields.
pub(super) const SHORT_MAX: usize = 16 * 1024;

/// The bytes that the allocator adds to a piece of memory on average: a word, and half of what it rounds up to.
pub(super) const ALLOCATION: usize = 16;

/// The memory of an object beside itself and its parts: its reference counts, the reference count of the body, and
/// what the allocator adds to these, to the bytes of the fields and to their list.
const OVERHEAD: usize = 16 + 24 + 4 * ALLOCATION;

#[cfg(test)]
mod tests {
    use catamaran_cache::freshness::LifetimeSource;
    use catamaran_cache::storable::Terms;
    use catamaran_message::name::{AGE, DATE};
    use http::StatusCode;

    use super::*;

    fn object(lens: &[usize]) -> Object {
        let headers = Fields::from_iter([(DATE, "now")]);
        let blocks = lens.iter().map(|len| Bytes::from(vec![b'x'; *len]));
        let (fields, body) = Body::store(&headers, blocks.collect());
        let head = ObjectHead {
            status: StatusCode::OK,
            fields,
            terms: Terms {
                lifetime: 1,
                source: LifetimeSource::Explicit,
                stale_while_revalidate: 0,
                stale_if_error: 0,
                no_cache: false,
                never_stale: false,
                for_sessions: false,
                for_authorization: false,
            },
            made: 0,
            validated: 0,
            began: 0,
            details: None,
        };
        Object::new(head, body)
    }

    fn body(object: &Object) -> usize {
        object.blocks().map(|block| block.len()).sum()
    }

    #[test]
    fn a_body_is_whole_whether_it_is_short_or_long() {
        for lens in [
            &[][..],
            &[0],
            &[100],
            &[100, 200],
            &[SHORT_MAX - 1],
            &[SHORT_MAX],
            &[SHORT_MAX, SHORT_MAX, 5],
        ] {
            let object = object(lens);
            let len = lens.iter().sum::<usize>();
            assert_eq!((object.len(), body(&object)), (len as u64, len), "{lens:?}");
            let headers = Fields::from_iter([(AGE, "5")]);
            let (fields, stored) = object.with_fields(&headers);
            let head = ObjectHead {
                fields,
                ..object.head.clone()
            };
            let other = Object::new(head, stored);
            assert_eq!((other.len(), body(&other)), (len as u64, len), "{lens:?}");
            assert_eq!(other.head.fields, headers);
            assert!(object.weight() >= len as u64);
        }
    }

    #[test]
    fn a_coding_takes_memory_once_it_is_kept() {
        let plain = object(&[100]);
        let before = plain.weight();
        assert!(plain.codings().is_empty() && plain.weight() == before);
        let coded = plain.with_coding(Coding::Gzip, Bytes::from_static(b"coded"));
        assert!(coded.weight() >= before + 5 && plain.weight() == before);
        let more = coded.with_coding(Coding::Brotli, Bytes::from_static(b"br"));
        assert_eq!(more.weight(), coded.weight() + 2);
        assert_eq!(more.coded(Coding::Brotli).unwrap(), "br");
        assert!(
            coded.coded(Coding::Brotli).is_none() && object(&[5]).coded(Coding::Gzip).is_none()
        );
        assert!(coded.is_same_response(&plain) && plain.is_same_response(&coded));
        assert!(!plain.is_same_response(&object(&[100])));
        let later = object(&[100]).with_codings_of(&coded);
        assert_eq!(later.codings().get(Coding::Gzip).unwrap(), "coded");
    }
}
