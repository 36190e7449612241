//! Reloads the configuration of a front that serves.
//!
//! Each reload is applied whole or not at all, and its outcome is logged, except for two cases of `--watch`: files that
//! were written again as they were are not applied, and an attempt that fails as the one before it is only counted.

use std::fmt::Write as _;

use catamaran_config::ReadFiles;
use catamaran_proxy::Running;
use catamaran_proxy::tls::CertificateChanges;

use super::{ServeArgs, configuration};
use crate::failure::Failure;
use crate::notify::{Manager, News};
use crate::own_log;
use crate::watch::WatchEvent;

/// Who asks for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReloadCause {
    /// An operator, who gets an answer in any case.
    Operator,
    /// The thread that watches the files.
    Watch(WatchEvent),
}

/// Carries out reloads, and remembers the last one.
pub(super) struct Reloads<'a> {
    running: &'a Running,
    args: &'a ServeArgs,
    manager: &'a Manager,
    /// The digest of the files of the configuration in force.
    in_force: u64,
    /// Why the last reload failed; `None`: it did not.
    failed: Option<String>,
}

impl<'a> Reloads<'a> {
    /// For a front that was started with the configuration in `files`.
    pub(super) fn new(
        running: &'a Running,
        args: &'a ServeArgs,
        manager: &'a Manager,
        files: &ReadFiles,
    ) -> Self {
        Self {
            running,
            args,
            manager,
            in_force: files.content(),
            failed: None,
        }
    }

    /// Reads the configuration again and applies it. Returns what changed, or why nothing did.
    pub(super) fn reload(&mut self, cause: ReloadCause) -> Result<String, String> {
        self.manager.tell(News::Reloading);
        let mut files = ReadFiles::default();
        let outcome = self.reload_from(cause, &mut files);
        let versions = files.versions().clone();
        self.args.files.note_read(versions, outcome.is_err());
        self.manager.tell(News::Ready);
        outcome
    }

    fn reload_from(&mut self, cause: ReloadCause, files: &mut ReadFiles) -> Result<String, String> {
        let mut warnings = String::new();
        let loaded = configuration(self.args, files, &mut warnings);
        let is_change = cause == ReloadCause::Watch(WatchEvent::Changed);
        if is_change && self.failed.is_none() && files.content() == self.in_force {
            tracing::debug!("files of the configuration were written again as they were");
            return Ok(String::new());
        }
        if is_change {
            tracing::info!("files of the configuration changed: reloading");
        }
        let result = match loaded {
            Ok(config) => self
                .running
                .reload(config)
                .map_err(|error| (Failure::of(&error), error.to_string())),
            // The message shows lines of the file. Clients of the admin listener may not be allowed to read it, so they
            // get a hint instead.
            Err(failure) => Err((failure, "`catamaran check` shows what is wrong".to_owned())),
        };
        match result {
            Ok(report) => {
                say_warnings(&warnings);
                let certificates = report.certificates.as_ref();
                if certificates.is_some_and(CertificateChanges::are_doubtful) {
                    tracing::warn!("reloaded; {report}");
                } else {
                    tracing::info!("reloaded; {report}");
                }
                self.in_force = files.content();
                self.failed = None;
                Ok(report.to_string())
            }
            Err((failure, reason)) => {
                self.running.note_refused_reload(reason);
                let words = failure.words();
                let is_again = cause == ReloadCause::Watch(WatchEvent::TryAgain);
                if !is_again || self.failed.as_ref() != Some(&words) {
                    say_warnings(&warnings);
                    self.say_failure(&failure);
                }
                self.failed = Some(words.clone());
                Err(words)
            }
        }
    }

    fn say_failure(&self, failure: &Failure) {
        failure.say();
        let mut text = "cannot reload; the front keeps the configuration it has".to_owned();
        if self.args.watch {
            let further =
                " and tries again; further attempts are logged only if they fail otherwise";
            text.write_str(further).expect("a string takes all");
        }
        tracing::error!("{text}");
    }
}

/// Logs the warnings about a configuration; often there are none.
pub(super) fn say_warnings(warnings: &str) {
    if !warnings.is_empty() {
        // Nothing is left to be done when standard error is closed.
        own_log::say(warnings.trim_end()).ok();
    }
}
