//! What figures of web servers allow to conclude.
//!
//! - [`judge`](judge::judge()): what a text of ab or wrk, or a report of `bench --json`, cannot carry;
//! - [`gate`]: the checks behind it, on one run and on two that are compared;
//! - [`published`]: texts of other tools, read into figures.
//!
//! ```
//! let text = include_str!("../published/002-bio-1.txt").to_owned();
//! let judgements = catamaran_lab::judge::judge(&[("bio".to_owned(), text)])?;
//! assert!(judgements[0].to_string().contains("5,000 of 5,000 answers were not 2xx"));
//! # Ok::<(), catamaran_lab::judge::JudgeFault>(())
//! ```
#![forbid(unsafe_code)]

pub mod gate;
pub mod judge;
pub mod published;
