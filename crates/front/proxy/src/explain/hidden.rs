//! Hides secrets in an explanation: values from environment variables and files are replaced by their names.

use catamaran_admin_api::{
    AuthOutlook, BackendRequest, CacheOutlook, Explanation, FrontAnswer, LimitOutlook, PathForms,
};

use crate::config::HiddenValue;

/// Replaces each hidden value in an explanation by its name. Every field of [`Explanation`] is listed, so that a new
/// one does not compile until somebody decides whether it may contain a text of the file.
pub(crate) fn hide(explanation: &mut Explanation, hidden: &[HiddenValue]) {
    let Explanation {
        summary,
        path,
        answer,
        rewrite,
        cache,
        limits,
        auth,
        sent,
        then,
        generation: _,
        request: _,
        outcome: _,
        route: _,
        others: _,
        upstream: _,
        affinity: _,
        backend: _,
        by: _,
        members: _,
    } = explanation;
    let mut texts: Vec<&mut String> = vec![summary];
    texts.extend(rewrite);
    texts.extend(then);
    if let Some(PathForms {
        forwarded,
        received: _,
        normal: _,
        compared: _,
    }) = path
    {
        texts.push(forwarded);
    }
    if let Some(FrontAnswer {
        text,
        location,
        status: _,
        reason: _,
    }) = answer
    {
        texts.push(text);
        texts.extend(location);
    }
    for LimitOutlook {
        key,
        name: _,
        enforced: _,
        exceeded: _,
        left: _,
    } in limits
    {
        texts.extend(key);
    }
    if let Some(CacheOutlook {
        key,
        name: _,
        bypass: _,
        stored: _,
        age: _,
        ttl: _,
    }) = cache
    {
        texts.push(key);
    }
    texts.extend(auth.iter_mut().flat_map(texts_asked));
    texts.extend(sent.iter_mut().flat_map(texts_sent));
    put_names(texts, hidden);
}

/// Replaces each hidden value in `texts` by its name.
fn put_names(texts: Vec<&mut String>, hidden: &[HiddenValue]) {
    // The longest first: a value may be a part of another one.
    let mut longest_first: Vec<&HiddenValue> = hidden.iter().collect();
    longest_first.sort_by_key(|it| std::cmp::Reverse(it.value.as_bytes().len()));
    for text in texts {
        for hidden_value in &longest_first {
            put_name(text, hidden_value);
        }
    }
}

/// The texts in the request to a sign-on that may contain a text of the configuration file.
fn texts_asked(auth: &mut AuthOutlook) -> Vec<&mut String> {
    let AuthOutlook {
        request,
        fields,
        users_file,
        user,
        name: _,
        upstream: _,
        supposed: _,
    } = auth;
    let values = fields.iter_mut().map(|(_, value)| value);
    let of_users = users_file.iter_mut().chain(user);
    std::iter::once(request)
        .chain(values)
        .chain(of_users)
        .collect()
}

/// The texts in a backend's request that may contain a text of the configuration file.
fn texts_sent(sent: &mut BackendRequest) -> Vec<&mut String> {
    let BackendRequest {
        request,
        fields,
        attributes,
        set_cookie,
        backend: _,
        protocol: _,
        address: _,
        tunnel: _,
        timeouts: _,
        retries: _,
    } = sent;
    let mut texts = vec![request];
    texts.extend(fields.iter_mut().map(|(_, value)| value));
    texts.extend(attributes.iter_mut().map(|(_, value)| value));
    texts.extend(set_cookie);
    texts
}

/// Replaces a value by its name. A value shorter than [`PART_MIN`] may be a part of any word, so it is replaced only
/// if it is the whole text.
fn put_name(text: &mut String, HiddenValue { value, name }: &HiddenValue) {
    let Ok(value) = std::str::from_utf8(value.as_bytes()) else {
        return;
    };
    if value.len() >= PART_MIN {
        *text = text.replace(value, name);
    } else if text == value && !value.is_empty() {
        text.clone_from(name);
    }
}

/// The length in bytes from which a value is also hidden inside a longer text.
const PART_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn values_are_hidden_wherever_the_file_may_put_them() {
        let value = |value: &str, name: &str| HiddenValue {
            value: Secret::new(value.to_owned()),
            name: name.to_owned(),
        };
        let hidden = [
            value("hunter", "${PART}"),
            value("hunter2", "${SECRET}"),
            value("7", "${N}"),
            value("", "${E}"),
        ];
        let text = || "x hunter2 7".to_owned();
        let mut explanation = Explanation {
            summary: text(),
            rewrite: Some(text()),
            then: vec![text()],
            path: Some(PathForms {
                forwarded: text(),
                ..PathForms::default()
            }),
            answer: Some(FrontAnswer {
                text: text(),
                location: Some(text()),
                ..FrontAnswer::default()
            }),
            cache: Some(CacheOutlook {
                key: text(),
                ..CacheOutlook::default()
            }),
            sent: Some(BackendRequest {
                request: text(),
                fields: vec![
                    ("hunter2".to_owned(), text()),
                    (String::new(), "7".to_owned()),
                ],
                attributes: vec![(String::new(), text())],
                set_cookie: Some(text()),
                ..BackendRequest::default()
            }),
            ..Explanation::default()
        };
        hide(&mut explanation, &hidden);
        let shown = format!("{explanation:?}");
        assert_eq!(shown.matches("x ${SECRET} 7").count(), 11, "{shown}");
        // Names of fields are never variables.
        assert_eq!(shown.matches("hunter").count(), 1, "{shown}");
        assert!(shown.contains("(\"\", \"${N}\")"), "{shown}");
    }
}
