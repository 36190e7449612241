//! Code that the long runs share: namespaces of their own, and verdicts.
//!
//! The runs are the programs in `src/bin`. CI runs only `import_duel`, with few configurations.

pub mod namespaces;
mod verdict;

pub use verdict::Verdict;
