//! Experiments on whole web tiers, and what their figures allow to conclude.
//!
//! - [`experiment`]: what varies, what is started and claimed, as data; [`builtin`]: those of ours;
//! - [`drive`] makes a run, [`rounds`] makes all of them in mirrored random orders, those of a [`screen`]
//!   first; [`store`] keeps them;
//! - [`plan`](plan::plan()): how long an experiment takes;
//! - [`claim`]: ratios within rounds, their intervals, and words; [`result`] and [`report`];
//! - [`compare`](compare::compare()): what has changed between two results; [`nmon`](nmon::nmon()) and
//!   [`strace`]: what was sampled and counted, in the forms of these tools;
//! - [`extra`]: small programs that take part in runs;
//! - [`up`]: one cell, up to be looked at;
//! - [`doctor`]: what a machine lacks for an experiment;
//! - [`judge`](judge::judge()): what texts of ab, wrk and others, whole pages with them, or reports of
//!   `bench --json` cannot carry;
//! - [`gate`]: the checks behind it, on one run and on two that are compared, of [`facts`] and each second's [`sample`];
//! - [`published`]: texts of other tools, read into figures.
//!
//! ```
//! let text = include_str!("../published/002-bio-1.txt").to_owned();
//! let judgements = catamaran_lab::judge::judge(&[("bio".to_owned(), text)])?;
//! assert!(judgements[0].to_string().contains("5,000 of 5,000 answers were not 2xx"));
//! # Ok::<(), catamaran_lab::judge::JudgeFault>(())
//! ```
#![forbid(unsafe_code)]

pub mod builtin;
pub mod claim;
pub mod compare;
pub mod doctor;
pub mod drive;
pub mod experiment;
pub mod extra;
pub mod facts;
pub mod gate;
pub mod host;
pub mod judge;
pub mod measure;
pub mod nmon;
pub mod plan;
pub mod published;
pub mod report;
pub mod result;
pub mod rounds;
pub mod run;
pub mod sample;
pub mod screen;
pub mod store;
pub mod strace;
pub mod up;
