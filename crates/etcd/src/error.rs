//! The answers to requests that are refused.

use crate::json::Object;

/// An error as clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The kind.
    pub code: Code,
    /// The key or value that it concerns.
    pub cause: Vec<u8>,
    /// The tree's index.
    pub index: u64,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $status:literal, $message:literal;)*) => {
        /// Kinds of errors.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// The status of HTTP.
            pub fn status(self) -> u16 {
                match self {
                    $(Code::$name => $status,)*
                }
            }

            fn message(self) -> &'static str {
                match self {
                    $(Code::$name => $message,)*
                }
            }
        }
    };
}

codes! {
    /// The node does not exist.
    KeyNotFound = 100, 404, "Key not found";
    /// The value or the index differs.
    TestFailed = 101, 412, "Compare failed";
    /// A value is needed, and this is a directory.
    NotFile = 102, 403, "Not a file";
    /// A directory is needed, and this is a value.
    NotDirectory = 104, 400, "Not a directory";
    /// The node is there already.
    NodeExists = 105, 412, "Key already exists";
    /// The root stays as it is.
    RootReadOnly = 107, 400, "Root is read only";
    /// The directory has children.
    DirectoryNotEmpty = 108, 403, "Directory not empty";
    /// The password was not shown.
    Unauthorized = 110, 401, "The request requires user authentication";
    /// `prevValue` is empty.
    PreviousValueRequired = 201, 400, "PrevValue is Required in POST form";
    /// `ttl` is no number.
    TtlNotANumber = 202, 400, "The given TTL in POST form is not a number";
    /// An index is no number.
    IndexNotANumber = 203, 400, "The given index in POST form is not a number";
    /// A field has an invalid value.
    InvalidField = 209, 400, "Invalid field";
    /// The form cannot be read.
    InvalidForm = 210, 400, "Invalid POST form";
    /// A refresh leaves the value as it is.
    RefreshValue = 211, 400, "Value provided on refresh";
    /// A refresh is about the time to live.
    RefreshTtlRequired = 212, 400, "A TTL must be provided on refresh";
    /// The server cannot do it, for reasons outside of the tree.
    Internal = 300, 500, "Raft Internal Error";
    /// The events after the index are not kept any more.
    EventIndexCleared = 401, 400, "The event in requested index is outdated and cleared";
}

impl Error {
    /// An error of the tree.
    pub fn new(code: Code, cause: &[u8], index: u64) -> Error {
        Error { code, cause: cause.to_vec(), index }
    }

    /// An error in the request itself.
    pub fn of_request(code: Code, cause: &str) -> Error {
        Error { code, cause: cause.into(), index: 0 }
    }

    /// An error of the server's.
    pub fn internal(cause: &[u8]) -> Error {
        Error::new(Code::Internal, cause, 0)
    }

    /// Appends it as JSON, with the end of line that it is answered with.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        base::num::write_u64(object.member("errorCode"), self.code as u64);
        object.text("message", self.code.message().as_bytes());
        if !self.cause.is_empty() {
            object.text("cause", &self.cause);
        }
        base::num::write_u64(object.member("index"), self.index);
        object.end();
        out.push(b'\n');
    }
}
