//! The declaration of objects: a struct, and the texts of its members for the reference.

/// The documentation of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectDoc {
    /// The object's name, which is that of its type.
    pub name: &'static str,
    /// The lines that say what the object is.
    pub meaning: &'static [&'static str],
    /// The object's members, in the order of their declaration.
    pub members: &'static [MemberDoc],
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct MemberDoc {
    /// The member's name in JSON; for a flattened object, the name of the field.
    pub name: &'static str,
    /// The member's type, as declared.
    pub declared: &'static str,
    /// The lines that say what the member means.
    pub meaning: &'static [&'static str],
    /// Whether the member is an object whose members appear in this object instead.
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

/// The name in JSON: `other` if there is one, else the member's own.
pub(crate) const fn name(member: &'static str, other: &[&'static str]) -> &'static str {
    match other {
        [] => member,
        [other, ..] => other,
    }
}

pub(crate) const fn is_empty(texts: &[&str]) -> bool {
    texts.is_empty()
}
