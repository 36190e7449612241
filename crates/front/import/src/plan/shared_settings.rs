//! Settings that many rules share.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::plan::{Access, AuthSettings, Fields, Keys, Settings};

/// The settings of a rule. Rules with the same settings share them until one of them changes, because a configuration
/// may have very many rules and only few different settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedSettings(Option<Rc<Settings>>);

impl SharedSettings {
    /// Adds the settings of a section that comes later in the file, or lies deeper.
    pub(crate) fn merge(&mut self, later: &Self) {
        match (&self.0, &later.0) {
            (_, None) => {}
            (None, Some(_)) => self.clone_from(later),
            (Some(_), Some(later)) => Settings::merge(self, later),
        }
    }

    /// The settings of `last` if they are equal to `settings`. Otherwise `last` becomes the new ones.
    pub(crate) fn like(settings: Settings, last: &mut Self) -> Self {
        if settings != **last {
            *last = Self::from(settings);
        }
        last.clone()
    }
}

impl PartialEq for SharedSettings {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) if Rc::ptr_eq(one, two) => true,
            _ => **self == **other,
        }
    }
}

impl Eq for SharedSettings {}

impl Deref for SharedSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.0.as_deref().unwrap_or(&NO_SETTINGS)
    }
}

impl DerefMut for SharedSettings {
    fn deref_mut(&mut self) -> &mut Settings {
        Rc::make_mut(self.0.get_or_insert_with(Rc::default))
    }
}

impl From<Settings> for SharedSettings {
    fn from(settings: Settings) -> Self {
        Self((settings != NO_SETTINGS).then(|| Rc::new(settings)))
    }
}

/// The settings of a rule that changes nothing.
static NO_SETTINGS: Settings = Settings {
    access: Access::Open,
    compat: Access::Open,
    methods: Access::Open,
    satisfy: None,
    auth: AuthSettings::NONE,
    has_require: false,
    tls_only: false,
    is_strange: false,
    redirects_late: false,
    sent_host: None,
    keys: Keys::new(),
    limits: Vec::new(),
    sign_on: None,
    pages: Keys::new(),
    request_fields: Fields::NONE,
    response_fields: Fields::NONE,
    success_fields: Fields::NONE,
    always_fields: Fields::NONE,
};
