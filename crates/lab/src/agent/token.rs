//! The secret that agents and coordinators share, and proofs of knowing it: HMAC-SHA256.

use std::path::Path;

use sha2::{Digest, Sha256};

/// The environment variable with the token when no file is named.
const VARIABLE: &str = "DUNLIN_LAB_TOKEN";
/// Shorter secrets are guessed.
const SHORTEST: usize = 8;
/// The block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// A shared secret.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// There is no usable token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// There is neither a file nor the variable.
    #[error("a token is needed: name a file with --token-file, or set {VARIABLE}")]
    Missing,
    /// It would be guessed.
    #[error("the token is shorter than {SHORTEST} bytes")]
    TooShort,
}

impl std::fmt::Debug for Token {
    /// Keeps the secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    /// The token in a file, without surrounding whitespace, or else in `DUNLIN_LAB_TOKEN`.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn find(file: Option<&Path>) -> Result<Token, TokenError> {
        let bytes = match file {
            Some(path) => std::fs::read(path)
                .map_err(|error| TokenError::File { path: path.display().to_string(), error })?,
            None => std::env::var(VARIABLE).map_err(|_| TokenError::Missing)?.into_bytes(),
        };
        Token::new(bytes.trim_ascii())
    }

    /// This token.
    ///
    /// # Errors
    /// [`TokenError::TooShort`].
    pub fn new(bytes: &[u8]) -> Result<Token, TokenError> {
        if bytes.len() < SHORTEST { Err(TokenError::TooShort) } else { Ok(Token(bytes.to_vec())) }
    }

    /// The proof that `who` knows the token, for these two challenges.
    pub(super) fn proof(&self, who: &str, first: &str, second: &str) -> String {
        let message = format!("dunlin lab {who}\n{first}\n{second}\n");
        hex(&hmac(&self.0, message.as_bytes()))
    }
}

/// Whether two proofs are the same, in a time that does not show where they differ.
pub(super) fn same(left: &str, right: &str) -> bool {
    let difference = left.bytes().zip(right.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    left.len() == right.len() && difference == 0
}

/// A challenge that was never used before.
///
/// # Errors
/// The system has no entropy.
pub(super) fn challenge() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    base::rng::entropy(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HMAC-SHA256, RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message);
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_rfc_4231() {
        let code = hmac(b"Jefe", b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&code), expected);
        let long = hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hex(&long), expected);
    }

    #[test]
    fn a_proof_is_for_one_side_and_one_pair_of_challenges() {
        let token = Token::new(b"a good secret").expect("long enough");
        let proof = token.proof("agent", "a", "b");
        assert!(same(&proof, &token.proof("agent", "a", "b")));
        assert!(!same(&proof, &token.proof("coordinator", "a", "b")));
        assert!(!same(&proof, &token.proof("agent", "b", "a")));
        assert!(!same(&proof, &proof[1..]));
        assert!(Token::new(b"short").is_err());
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_ne!(challenge().expect("entropy"), challenge().expect("entropy"));
    }
}
