//! What a GET or HEAD of a key asks for.

use http::tag::{Tag, Tags, Variant};

/// What a GET or HEAD of a key asks for besides its address.
pub(in crate::net::http) enum GetRequest {
    /// The value in its usual form.
    Plain(PlainGet),
    /// Other options.
    With(Box<GetOptions>),
}

/// A question for a value in its usual form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net::http) struct PlainGet {
    /// The client has this version, and asks for another one.
    pub(in crate::net::http) unless: Option<Tag>,
}

impl GetRequest {
    /// What these options ask for.
    pub(in crate::net::http) fn of(get: Option<Box<GetOptions>>) -> GetRequest {
        match get {
            None => GetRequest::Plain(PlainGet { unless: None }),
            Some(get) => match get.only_version() {
                Some(version) => GetRequest::Plain(PlainGet { unless: Some(version) }),
                None => GetRequest::With(get),
            },
        }
    }

    /// The version that the client has, if that is all, or the options.
    pub(super) fn parts(&self) -> (Option<Tag>, Option<&GetOptions>) {
        match self {
            GetRequest::Plain(question) => (question.unless, None),
            GetRequest::With(get) => (None, Some(get)),
        }
    }
}

/// The options of a GET of a key besides its address.
pub(in crate::net::http) struct GetOptions {
    pub(in crate::net::http) none_match: Option<Tags>,
    pub(in crate::net::http) matches: Option<Tags>,
    pub(in crate::net::http) range: Option<(Option<u64>, Option<u64>)>,
    pub(in crate::net::http) if_range: Option<Tags>,
    /// Absent if the client accepts none of the forms.
    pub(in crate::net::http) form: Option<Variant>,
}

impl GetOptions {
    /// The version that the client has, if it names one and nothing else.
    fn only_version(&self) -> Option<Tag> {
        let Some(Tags::Listed(tags)) = &self.none_match else { return None };
        let is_all = self.matches.is_none() && self.range.is_none() && self.if_range.is_none();
        match tags[..] {
            [tag] if is_all && self.form == Some(Variant::Plain) => Some(tag),
            _ => None,
        }
    }
}
