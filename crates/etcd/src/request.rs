//! Requests for a node.

use base::limits;

use crate::error::{Code, Error};
use crate::form::{Field, Form};
use crate::path;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// The action on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// It is read.
    Get,
    /// It is written.
    Put,
    /// Adds a child with a name that counts up to it.
    Post,
    /// It is deleted.
    Delete,
}

impl Method {
    /// Reads the method of a request.
    pub fn parse(text: &[u8]) -> Option<Method> {
        match text {
            b"GET" | b"HEAD" => Some(Method::Get),
            b"PUT" => Some(Method::Put),
            b"POST" => Some(Method::Post),
            b"DELETE" => Some(Method::Delete),
            _ => None,
        }
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request<'r> {
    /// The action.
    pub method: Method,
    /// The node.
    pub path: &'r [u8],
    /// The new value.
    pub value: &'r [u8],
    /// A directory is meant.
    pub dir: bool,
    /// On condition that it exists, or does not.
    pub prev_exist: Option<bool>,
    /// The condition that the present value is this, if it is not empty.
    pub prev_value: &'r [u8],
    /// On condition that it was last changed at this index, if it is not 0.
    pub prev_index: u64,
    /// With all that is below.
    pub recursive: bool,
    /// Children by their names.
    pub sorted: bool,
    /// Seconds until it goes.
    pub ttl: Option<u64>,
    /// Nothing but the time to live is changed.
    pub refresh: bool,
    /// The stored value is not returned.
    pub no_value: bool,
    /// The answer is a future event.
    pub wait: Option<Wait>,
}

/// Which events are waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// From this index on; from now on if it is 0.
    pub since: u64,
    /// All, one after the other.
    pub stream: bool,
}

/// The operations that are counted apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A read.
    Get,
    /// PUT without a condition.
    Set,
    /// DELETE without a condition.
    Delete,
    /// PUT of an existing node.
    Update,
    /// POST, and PUT of a new node.
    Create,
    /// PUT of a node that is as expected.
    CompareAndSwap,
    /// DELETE of a node that is as expected.
    CompareAndDelete,
}

fn refused(code: Code, cause: &str) -> Error {
    Error::of_request(code, cause)
}

/// A number in a field; 0 if the field is missing.
fn number(form: &Form<'_>, field: Field, code: Code) -> Result<u64, Error> {
    let Some(text) = form.get(field) else { return Ok(0) };
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits);
    let wrong = || refused(code, &format!("invalid value for \"{}\"", field.name()));
    text.and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

/// A truth value in a field.
fn truth(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"t" | b"T" | b"TRUE" | b"true" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"FALSE" | b"false" | b"False" => Some(false),
        _ => None,
    }
}

/// A truth value; false if the field is missing.
fn flag(form: &Form<'_>, field: Field) -> Result<bool, Error> {
    let wrong = || refused(Code::InvalidField, &format!("invalid value for \"{}\"", field.name()));
    form.get(field).map_or(Ok(false), |text| truth(text).ok_or_else(wrong))
}

/// A truth value that may be absent.
fn optional_flag(form: &Form<'_>, field: Field) -> Result<Option<bool>, Error> {
    let wrong = || refused(Code::InvalidField, &format!("invalid value for {}", field.name()));
    form.get(field).map(|text| truth(text).ok_or_else(wrong)).transpose()
}

impl<'r> Request<'r> {
    /// Reads the fields of a request for a node. `method` is the request's own word.
    ///
    /// # Errors
    /// A field has an invalid value; the first one, in the order in which etcd looks at them.
    pub fn read(method: &[u8], path: &'r [u8], form: &'r Form<'r>) -> Result<Request<'r>, Error> {
        let prev_index = number(form, Field::PrevIndex, Code::IndexNotANumber)?;
        let since = number(form, Field::WaitIndex, Code::IndexNotANumber)?;
        let recursive = flag(form, Field::Recursive)?;
        let sorted = flag(form, Field::Sorted)?;
        let waits = flag(form, Field::Wait)?;
        let dir = flag(form, Field::Dir)?;
        let quorum = flag(form, Field::Quorum)?;
        let stream = flag(form, Field::Stream)?;
        if waits && method != b"GET" {
            let cause = "\"wait\" can only be used with GET requests";
            return Err(refused(Code::InvalidField, cause));
        }
        if form.get(Field::PrevValue) == Some(b"") {
            let cause = "\"prevValue\" cannot be empty";
            return Err(refused(Code::PreviousValueRequired, cause));
        }
        let no_value = flag(form, Field::NoValueOnSuccess)?;
        let ttl = match form.get(Field::Ttl) {
            None | Some(b"") => None,
            Some(_) => Some(number(form, Field::Ttl, Code::TtlNotANumber)?),
        };
        let prev_exist = optional_flag(form, Field::PrevExist)?;
        let refresh = optional_flag(form, Field::Refresh)?.unwrap_or(false);
        let value = form.get(Field::Value).unwrap_or_default();
        if refresh && !value.is_empty() {
            let cause = "A value was provided on a refresh";
            return Err(refused(Code::RefreshValue, cause));
        }
        if refresh && ttl.is_none() {
            return Err(refused(Code::RefreshTtlRequired, "No TTL value set"));
        }
        let method = Method::parse(method)
            .ok_or_else(|| refused(Code::InvalidForm, "the method is not known"))?;
        let makes_directories = matches!(method, Method::Put | Method::Post);
        if makes_directories && path::names(path).nth(limits::ETCD_DEPTH + 1).is_some() {
            let cause =
                format!("there are more than {} directories in the path", limits::ETCD_DEPTH);
            return Err(refused(Code::InvalidField, &cause));
        }
        Ok(Request {
            method,
            path,
            value,
            dir,
            prev_exist,
            prev_value: form.get(Field::PrevValue).unwrap_or_default(),
            prev_index,
            recursive,
            sorted,
            ttl,
            refresh,
            no_value,
            // A request with `quorum` is a read, even if it also waits.
            wait: (waits && !quorum).then_some(Wait { since, stream }),
        })
    }

    fn has_condition(&self) -> bool {
        self.prev_index > 0 || !self.prev_value.is_empty()
    }

    /// The operation as which it counts.
    pub fn operation(&self) -> Operation {
        match (self.method, self.prev_exist) {
            (Method::Get, _) => Operation::Get,
            (Method::Post, _) | (Method::Put, Some(false)) => Operation::Create,
            (Method::Put, _) if self.has_condition() => Operation::CompareAndSwap,
            (Method::Put, Some(true)) => Operation::Update,
            (Method::Put, None) => Operation::Set,
            (Method::Delete, _) if self.has_condition() => Operation::CompareAndDelete,
            (Method::Delete, _) => Operation::Delete,
        }
    }

    /// When the node goes if it is written at this millisecond of Unix time. A time to live that is
    /// longer than a number of nanoseconds can be wraps around, as etcd's does.
    pub(crate) fn expires(&self, now: i64) -> Option<i64> {
        let lifetime = self.ttl?.cast_signed().wrapping_mul(SECOND);
        let now = now.wrapping_mul(1_000_000);
        Some(now.wrapping_add(lifetime).div_euclid(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, query: &str) -> Result<Operation, (u64, String)> {
        let form = Form::read(query.as_bytes(), b"").unwrap();
        let request = Request::read(method.as_bytes(), b"/a", &form);
        request
            .map(|request| request.operation())
            .map_err(|error| (error.code as u64, String::from_utf8(error.cause).unwrap()))
    }

    #[test]
    fn conditions_say_which_operation_it_is() {
        for (method, query, expected) in [
            ("HEAD", "", Operation::Get),
            ("PUT", "value=1", Operation::Set),
            ("PUT", "prevExist=false&prevIndex=3", Operation::Create),
            ("PUT", "prevExist=1", Operation::Update),
            ("PUT", "prevExist=true&prevValue=x", Operation::CompareAndSwap),
            ("PUT", "prevIndex=0", Operation::Set),
            ("PUT", "prevIndex=7", Operation::CompareAndSwap),
            ("POST", "prevIndex=7", Operation::Create),
            ("DELETE", "prevExist=true", Operation::Delete),
            ("DELETE", "prevValue=x", Operation::CompareAndDelete),
        ] {
            assert_eq!(read(method, query), Ok(expected), "{method} {query}");
        }
    }

    #[test]
    fn the_first_wrong_field_is_named() {
        for (query, code, cause) in [
            ("recursive=x&prevIndex=+1", 203, "invalid value for \"prevIndex\""),
            ("waitIndex=", 203, "invalid value for \"waitIndex\""),
            ("prevIndex=18446744073709551616", 203, "invalid value for \"prevIndex\""),
            ("dir=yes&ttl=x", 209, "invalid value for \"dir\""),
            ("dir=", 209, "invalid value for \"dir\""),
            ("wait=true", 209, "\"wait\" can only be used with GET requests"),
            ("prevValue=", 201, "\"prevValue\" cannot be empty"),
            ("ttl=-1", 202, "invalid value for \"ttl\""),
            ("prevExist=", 209, "invalid value for prevExist"),
            ("refresh=maybe", 209, "invalid value for refresh"),
            ("refresh=true&value=1", 211, "A value was provided on a refresh"),
            ("refresh=true&ttl=", 212, "No TTL value set"),
        ] {
            assert_eq!(read("PUT", query), Err((code, cause.into())), "{query}");
        }
        assert_eq!(read("PUT", "ttl=&refresh=false&value=1"), Ok(Operation::Set));
    }
}
