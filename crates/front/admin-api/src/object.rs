//! How an object is declared: a struct, and the texts of its members for the reference.

/// An object, as the reference shows it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectDoc {
    /// Its name, which is that of its type.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static [&'static str],
    /// Its members, in the order in which they are declared.
    pub members: &'static [MemberDoc],
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct MemberDoc {
    /// Its name in JSON; of an object whose members belong to this one, too, the name of the field.
    pub name: &'static str,
    /// Its type as it is declared.
    pub declared: &'static str,
    /// What it says.
    pub meaning: &'static [&'static str],
    /// Whether the members of its object are those of this object.
    pub is_flat: bool,
}

/// Declares objects: structs that are JSON objects, and `OBJECTS`, their texts. A member has a meaning. It may
/// have another name in JSON (`serde(rename)`), be left out (`serde(skip_serializing_if)`), or be an object whose
/// members belong to this one (`flat(flatten)`).
macro_rules! objects {
    ($(
        $(#[doc = $meaning:literal])+
        pub struct $name:ident {$(
            $(#[doc = $member_meaning:literal])+
            $(#[serde(rename = $json:literal)])?
            $(#[flat($flat:ident)])?
            $(#[serde(skip_serializing_if = $skip:literal)])?
            pub $member:ident: $type:ty,
        )+}
    )+) => {
        $(
            $(#[doc = $meaning])+
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(default)]
            pub struct $name {$(
                $(#[doc = $member_meaning])+
                $(#[serde(rename = $json)])?
                $(#[serde($flat)])?
                $(#[serde(skip_serializing_if = $skip)])?
                pub $member: $type,
            )+}
        )+

        /// The objects of this module.
        pub(crate) const OBJECTS: &[$crate::ObjectDoc] = &[$(
            $crate::ObjectDoc {
                name: stringify!($name),
                meaning: &[$($meaning),+],
                members: &[$(
                    $crate::MemberDoc {
                        name: $crate::object::name(stringify!($member), &[$($json)?]),
                        declared: stringify!($type),
                        meaning: &[$($member_meaning),+],
                        is_flat: !$crate::object::is_empty(&[$(stringify!($flat))?]),
                    },
                )+],
            },
        )+];
    };
}

/// The name in JSON: another one, if there is one.
pub(crate) const fn name(member: &'static str, other: &[&'static str]) -> &'static str {
    match other {
        [] => member,
        [other, ..] => other,
    }
}

pub(crate) const fn is_empty(texts: &[&str]) -> bool {
    texts.is_empty()
}
