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

/// What is known of a request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// etcd has refused it. Nothing was changed, and the same request would be refused again.
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
            // A proposal may be carried out after the member has stopped waiting for it.
            (UNAVAILABLE, _) | (1 | 2 | 4 | 13, _) => Failure::Unknown(said),
            _ => Failure::Refused { code, text: said },
        }
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
