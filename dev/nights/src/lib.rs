//! What the long runs share: namespaces of their own, and a verdict on what they found.
//!
//! The runs themselves are the programs in `src/bin`. Of these CI has `import_duel` alone, with few files.

pub mod namespaces;
mod verdict;

pub use verdict::Verdict;
