//! Sign-ons by password: what the `Auth…` directives of all sections say together, as a sign-on of the front.

use crate::directive::Directive;
use crate::files::Files;
use crate::httpd::fields;
use crate::httpd::files::Site;
use crate::ledger::{Id, Ledger, Weight};
use crate::passwords::{DIFFERENCES, PasswordSignOn};
use crate::plan::{Access, AuthSettings, ClientTests, Members, Networks, Plan, Rule, SignOn};
use crate::toml_text::quoted;

/// Gives rules the sign-ons that their sections ask for.
pub(super) struct SignOnReader<'a> {
    files: &'a dyn Files,
    /// Why the server's users are not those whom the front would tell.
    foreign: Option<String>,
    /// What was asked for last, with the result: most rules ask for the same.
    last: Option<(Question, Result<SignOn, String>)>,
}

/// What decides which sign-on a rule gets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    auth: AuthSettings,
    members: Members,
    /// The fields in which backends are told the user.
    fields: Vec<String>,
    passes_credentials: bool,
}

impl<'a> SignOnReader<'a> {
    pub(super) fn new(site: Site<'a>) -> Self {
        Self {
            files: site.files,
            foreign: site.all().find_map(foreign),
            last: None,
        }
    }

    /// Replaces users who have signed on, in the access of a rule, by a sign-on of the front. If there is none, the rule
    /// is closed.
    pub(super) fn settle(&mut self, rule: &mut Rule, plan: &mut Plan, ledger: &mut Ledger) {
        let asks = matches!(&rule.settings.access, Access::Clients(it) if it.members.is_some());
        // Settings that rules share are copied only if they change.
        let tells = fields::has_user(&rule.settings.request_fields);
        if !asks && !tells && rule.settings.auth == AuthSettings::NONE {
            return;
        }
        let told = fields::take_user(&mut rule.settings.request_fields, asks);
        let auth = std::mem::take(&mut rule.settings.auth);
        let access = std::mem::take(&mut rule.settings.access);
        let Access::Clients(ClientTests {
            members: Some(members),
            networks,
            certificate: false,
            tls: false,
        }) = access
        else {
            if access == Access::Unsaid
                && let Some(kind) = &auth.kind
                && ledger.is_open(kind.id)
            {
                let text = "clients must sign on here, which was not converted";
                ledger.kept_or_risk(kind.id, text);
                auth.ids().for_each(|it| ledger.part(it, kind.id));
            }
            for name in told {
                let text = format!("backends do not get `{name}` here: no password is asked for");
                ledger.say(Weight::Note, rule.place.clone(), text);
            }
            rule.settings.access = access;
            return;
        };
        let question = Question {
            auth,
            members,
            fields: told,
            passes_credentials: rule.settings.request_fields.mentions("authorization") == 0,
        };
        match self.answer(&question) {
            Ok(sign_on) => {
                question.ids().for_each(|it| ledger.mapped(it));
                if let Some(kind) = &question.auth.kind {
                    ledger.note(kind.id, DIFFERENCES);
                }
                rule.settings.sign_on = Some(plan.sign_ons.enter(sign_on));
                rule.settings.access = Access::from(networks);
                if let Some(upstream) = rule.action.upstream() {
                    tell_user(plan, upstream);
                }
            }
            Err(reason) => {
                let text = format!("clients sign on here, which was not converted: {reason}");
                let whole = question.members.asked[0];
                ledger.unmapped(whole, &text);
                question.ids().for_each(|it| ledger.part(it, whole));
                rule.settings.access = Access::Unsaid;
                if networks != Networks::default() {
                    ledger.address_guards.void_all();
                }
            }
        }
    }

    fn answer(&mut self, question: &Question) -> Result<SignOn, String> {
        if let Some(reason) = &self.foreign {
            return Err(reason.clone());
        }
        if let Some((known, answer)) = &self.last
            && known == question
        {
            return answer.clone();
        }
        let answer = question.sign_on(self.files);
        self.last = Some((question.clone(), answer.clone()));
        answer
    }
}

impl Question {
    /// The sign-on of the front.
    ///
    /// # Errors
    /// Why it has none.
    fn sign_on(&self, files: &dyn Files) -> Result<SignOn, String> {
        let text = |value: &'static str| format!("there is no `{value}`");
        let auth = &self.auth;
        if auth.other.is_some() {
            return Err("another module may decide who passes".to_owned());
        }
        let kind = auth.kind.as_ref().ok_or_else(|| text("AuthType"))?;
        if !kind.text.eq_ignore_ascii_case("basic") {
            return Err(format!("the front has no `AuthType {}`", kind.text));
        }
        let provider = auth.provider.as_ref();
        if let Some(provider) = provider.filter(|it| !it.text.eq_ignore_ascii_case("file")) {
            return Err(format!(
                "the front has no `AuthBasicProvider {}`",
                provider.text
            ));
        }
        let realm = auth.realm.as_ref().ok_or_else(|| text("AuthName"))?;
        if realm.text.contains("%{") {
            return Err("what it asks for depends on the request".to_owned());
        }
        let users_file = auth.users_file.as_ref();
        let users_file = users_file.ok_or_else(|| text("AuthUserFile"))?;
        let groups_file = match &auth.groups_file {
            _ if self.members.groups.is_empty() => None,
            Some(file) => Some(file.text.as_str()),
            None => return Err(text("AuthGroupFile")),
        };
        let asked = PasswordSignOn {
            realm: &realm.text,
            users_file: &users_file.text,
            groups_file,
            users: &self.members.users,
            groups: &self.members.groups,
            fields: self.fields.clone(),
            passes_credentials: self.passes_credentials,
            keeps_white_space: false,
        };
        asked.read(files)
    }

    /// The directives that it consists of.
    fn ids(&self) -> impl Iterator<Item = Id> {
        self.members.asked.iter().copied().chain(self.auth.ids())
    }
}

/// Why the users of passwords are others than those whom httpd lets in or tells its backends, by this directive or one
/// inside of it.
fn foreign(directive: &Directive) -> Option<String> {
    let mut words = directive.words.iter();
    let is_foreign = match directive.name.as_str() {
        "ssloptions" => words.any(|it| it.trim_start_matches('+').eq_ignore_ascii_case(FAKE)),
        "sslusername" | "jkremoteuserindicator" | "jkauthtypeindicator" => true,
        _ => words.any(|it| it.contains("JK_REMOTE_USER") || it.contains("JK_AUTH_TYPE")),
    };
    if is_foreign {
        let name = match directive.name.as_str() {
            "ssloptions" => FAKE,
            "sslusername" => "SSLUserName",
            _ => "JK_REMOTE_USER or JK_AUTH_TYPE",
        };
        return Some(format!("`{name}` decides who the user is"));
    }
    directive.inside().iter().find_map(foreign)
}

/// Has the backends of an upstream told the user, as mod_jk and mod_proxy_ajp tell theirs.
fn tell_user(plan: &mut Plan, upstream: usize) {
    let shares = plan.upstreams[upstream].shares.iter();
    let mut told: Vec<usize> = shares.map(|(it, _)| *it).collect();
    told.push(upstream);
    for index in told {
        let upstream = &mut plan.upstreams[index];
        let mut backends = upstream.backends.iter();
        if backends.any(|it| it.url.starts_with("ajp"))
            && !upstream.keys.contains_key("remote_user")
        {
            let pairs = [("remote_user", "auth"), ("auth_type", "text:Basic")];
            let keys = pairs.map(|(key, value)| (key.to_owned(), quoted(value)));
            upstream.keys.extend(keys);
        }
    }
}

/// Drops `Auth…` directives that no place was found to ask by, in sections of any kind. Sections whose `Require` was not
/// converted are closed.
pub(super) fn finish(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        if directive.name.starts_with("auth") && ledger.is_open(directive.id) {
            let text = "no place of the written file asks for a password by it";
            ledger.dropped_if_open(directive.id, text);
        }
        let inside = directive.inside();
        finish(inside, ledger);
        let mut requires = inside.iter().filter(|it| it.name.starts_with("require"));
        if requires.any(|it| ledger.is_lost(it.id)) {
            ledger.closed(directive.id);
        }
    }
}

/// The option of mod_ssl by which certificates count as passwords. All users have the same one, which is known.
const FAKE: &str = "FakeBasicAuth";
