//! Experiments on whole web tiers, and the conclusions that their figures support.
//!
//! - [`experiment`]: what varies, what is started and claimed, as data;
//! - [`builtin`]: the experiments of this project;
//! - [`drive`]: makes one run; [`rounds`]: makes all runs, in mirrored random orders;
//! - [`screen`]: chooses the cells of each round; [`store`]: keeps the runs in a directory;
//! - [`plan`](plan::plan()): estimates how long an experiment takes;
//! - [`claim`]: ratios within rounds, their intervals, and the words for them;
//! - [`result`] and [`report`]: the result as JSON, and for people;
//! - [`compare`](compare::compare()): the changes between two results;
//! - [`nmon`](nmon::nmon()) and [`strace`]: samples and system calls in the forms of these tools;
//! - [`extra`]: small programs that take part in runs;
//! - [`up`]: starts one cell, to be watched;
//! - [`reproduce`](reproduce::reproduce()): figures of published tests, with the software that they had;
//! - [`doctor`]: finds what a machine lacks for an experiment;
//! - [`judge`](judge::judge()): conclusions that the output of ab, wrk and others does not support;
//! - [`gate`]: the checks of single runs and of two that are compared;
//! - [`facts`] and [`sample`]: the facts of a run that gates check, and its samples of each second;
//! - [`published`]: reads the output of other tools into figures.
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
pub mod reproduce;
pub mod result;
pub mod rounds;
pub mod run;
pub mod sample;
pub mod screen;
pub mod store;
pub mod strace;
pub mod up;

pub use catamaran_tier::then;
