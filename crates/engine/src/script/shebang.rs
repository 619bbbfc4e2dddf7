//! The first line of a script, which may name its language and what it needs.

use crate::command::error::CommandError;

/// What a script declares about itself: a set of bits.
pub type ScriptFlags = u32;
/// It writes nothing.
pub const NO_WRITES: ScriptFlags = 1 << 0;
/// It may run when memory is short.
pub const ALLOW_OOM: ScriptFlags = 1 << 1;
/// It may run on a replica with a broken link.
pub const ALLOW_STALE: ScriptFlags = 1 << 2;
/// It does not run in a cluster.
pub const NO_CLUSTER: ScriptFlags = 1 << 3;
/// It has no such line: its commands are checked one by one.
pub const COMPATIBLE: ScriptFlags = 1 << 4;
/// Its keys may be of several slots in a cluster.
pub const ALLOW_CROSS_SLOT: ScriptFlags = 1 << 5;

/// The flags by their names.
pub const NAMES: &[(ScriptFlags, &str)] = &[
    (NO_WRITES, "no-writes"),
    (ALLOW_OOM, "allow-oom"),
    (ALLOW_STALE, "allow-stale"),
    (NO_CLUSTER, "no-cluster"),
    (ALLOW_CROSS_SLOT, "allow-cross-slot-keys"),
];

/// Upstash lets a script that says so lock its keys alone. Here each script locks what it uses.
const ALLOW_KEY_LOCKING: &[u8] = b"allow-key-locking";

/// The flag of a name.
pub fn flag(name: &[u8]) -> Option<ScriptFlags> {
    NAMES.iter().find(|(_, own)| own.as_bytes() == name).map(|(flag, _)| *flag)
}

/// What a script declares about itself, and where its code begins: at the end of the first line, so
/// that lines keep their numbers.
pub fn parse(body: &[u8]) -> Result<(ScriptFlags, usize), CommandError> {
    if !body.starts_with(b"#!") {
        return Ok((COMPATIBLE, 0));
    }
    let invalid = CommandError::text("ERR Invalid script shebang");
    let end = line_length(body).ok_or(invalid)?;
    let mut words = words(&body[..end]);
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(CommandError::quoting("ERR Unexpected engine in script shebang: ", engine, ""));
    }
    let mut flags = 0;
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(CommandError::quoting("ERR Unknown lua shebang option: ", word, ""));
        };
        for name in names.split(|byte| *byte == b',').filter(|_| !names.is_empty()) {
            if name == ALLOW_KEY_LOCKING {
                continue;
            }
            let unknown =
                || CommandError::quoting("ERR Unexpected flag in script shebang: ", name, "");
            flags |= flag(name).ok_or_else(unknown)?;
        }
    }
    Ok((flags, end))
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// How long the first line is.
pub(crate) fn line_length(body: &[u8]) -> Option<usize> {
    body.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_a_script_needs() {
        assert_eq!(parse(b"return 1"), Ok((COMPATIBLE, 0)));
        assert_eq!(parse(b"#!lua\nreturn 1"), Ok((0, 5)));
        assert_eq!(parse(b"#!lua flags=\nreturn 1"), Ok((0, 12)));
        let both = b"#!lua flags=no-writes,allow-oom flags=allow-stale\n";
        assert_eq!(parse(both), Ok((NO_WRITES | ALLOW_OOM | ALLOW_STALE, both.len() - 1)));
        assert_eq!(parse(b"#!lua flags=no-writes,allow-key-locking\n").unwrap().0, NO_WRITES);
        for (body, error) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!js\n", "ERR Unexpected engine in script shebang: #!js"),
            ("#! lua\n", "ERR Unexpected engine in script shebang: #!"),
            ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
            ("#!lua flags=a,b\n", "ERR Unexpected flag in script shebang: a"),
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap_err().to_string(), error);
        }
    }
}
