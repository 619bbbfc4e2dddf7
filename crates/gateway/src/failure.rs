//! Why a request has not been answered as it should.

use std::fmt;

use cluster::store::Failure as NoAnswer;

/// The codes of gRPC that etcd answers with, as far as this client goes by them.
/// <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>
pub(crate) const INVALID_ARGUMENT: i64 = 3;
pub(crate) const NOT_FOUND: i64 = 5;
pub(crate) const FAILED_PRECONDITION: i64 = 9;
const UNAVAILABLE: i64 = 14;
const UNAUTHENTICATED: i64 = 16;
/// Codes of answers that say that nothing was done, but for [`RESOURCE_EXHAUSTED`]: etcd looks at
/// its space after a transaction, too.
const OF_REFUSALS: [i64; 9] = [
    INVALID_ARGUMENT,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
    UNAUTHENTICATED,
];
const ALREADY_EXISTS: i64 = 6;
const PERMISSION_DENIED: i64 = 7;
const RESOURCE_EXHAUSTED: i64 = 8;
const OUT_OF_RANGE: i64 = 11;
const UNIMPLEMENTED: i64 = 12;

/// What is known of a request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// etcd has refused it, and would refuse the same request again. Nothing was changed, unless it
    /// has no space.
    Refused {
        /// The code of gRPC.
        code: i64,
        /// etcd's words.
        text: String,
    },
    /// It was certainly not carried out.
    Unsent(String),
    /// It may have been carried out: what is stored has to be read again.
    Unknown(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused { text, .. } | Failure::Unsent(text) | Failure::Unknown(text) => {
                formatter.write_str(text)
            }
        }
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> NoAnswer {
        match failure {
            Failure::Refused { code: RESOURCE_EXHAUSTED, text } => NoAnswer::NoSpace(text),
            Failure::Refused { text, .. } | Failure::Unsent(text) => NoAnswer::NotDone(text),
            Failure::Unknown(text) => NoAnswer::Unknown(text),
        }
    }
}

impl Failure {
    /// What an error of etcd means. `place` is the member that has answered.
    pub(crate) fn of_answer(place: &str, code: i64, text: &str) -> Failure {
        let said = format!("{place}: {text}");
        match (code, text) {
            // A member without a leader refuses before it proposes anything.
            (UNAVAILABLE, "etcdserver: no leader") => Failure::Unsent(said),
            // Somebody else's gateway, which has no such address.
            (NOT_FOUND | UNIMPLEMENTED, text) if !text.starts_with("etcdserver: ") => {
                Failure::Unsent(said)
            }
            (code, _) if OF_REFUSALS.contains(&code) => Failure::Refused { code, text: said },
            // A proposal may be carried out after the member has stopped waiting for it.
            _ => Failure::Unknown(said),
        }
    }

    /// Whether etcd refuses whoever asks. A member that is another etcd has other users.
    pub(crate) fn is_of_rights(&self) -> bool {
        let codes = [INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED];
        matches!(self, Failure::Refused { code, .. } if codes.contains(code))
    }

    /// Whether a new token would help.
    pub(crate) fn is_of_token(&self) -> bool {
        match self {
            Failure::Refused { code: UNAUTHENTICATED, .. } => true,
            Failure::Refused { code: INVALID_ARGUMENT, text } => {
                text.contains("revision of auth store is old")
                    || text.contains("user name is empty")
            }
            _ => false,
        }
    }
}
