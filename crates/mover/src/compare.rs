//! Whether both servers have the same keys. It runs while writes are held, so it is short: the
//! number of keys of each database, and some keys of each, with their types, lengths and times.

use resp::client::Value;

use crate::server::Server;

/// Keys of each database that are looked at.
const SAMPLE: usize = 200;

/// A database, and keys of it.
pub(crate) type Drawn = (usize, Vec<Vec<u8>>);

/// Keys of each database, drawn at random before writes are held.
pub(crate) fn draw(server: &mut Server) -> Result<Vec<Drawn>, String> {
    let mut drawn = Vec::new();
    for database in server.sizes()?.into_keys() {
        server.call(&["SELECT", &database.to_string()])?;
        let replies = server.call_all(&vec![vec![b"RANDOMKEY".to_vec()]; SAMPLE])?;
        let keys = replies.into_iter().filter_map(|reply| match reply {
            Value::Bulk(key) => Some(key),
            _ => None,
        });
        drawn.push((database, keys.collect()));
    }
    server.call(&["SELECT", "0"])?;
    Ok(drawn)
}

/// What is seen of keys without their values.
fn looks(server: &mut Server, database: usize, keys: &[Vec<u8>]) -> Result<Vec<Value>, String> {
    server.call(&["SELECT", &database.to_string()])?;
    let command = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect();
    let asked: Vec<Vec<Vec<u8>>> = keys
        .iter()
        .flat_map(|key| [command(&[b"TYPE", key]), command(&[b"PEXPIRETIME", key])])
        .collect();
    let mut found = server.call_all(&asked)?;
    let lengths: Vec<Vec<Vec<u8>>> = keys
        .iter()
        .zip(found.chunks_exact(2))
        .map(|(key, pair)| {
            let name: &[u8] = match &pair[0] {
                Value::Simple(name) => match &name[..] {
                    b"string" => b"STRLEN",
                    b"list" => b"LLEN",
                    b"set" => b"SCARD",
                    b"hash" => b"HLEN",
                    b"zset" => b"ZCARD",
                    b"stream" => b"XLEN",
                    _ => b"EXISTS",
                },
                _ => b"EXISTS",
            };
            command(&[name, key])
        })
        .collect();
    found.extend(server.call_all(&lengths)?);
    server.call(&["SELECT", "0"])?;
    Ok(found)
}

/// Why they differ; nothing if they do not.
pub(crate) fn difference(
    from: &mut Server,
    to: &mut Server,
    drawn: &[Drawn],
) -> Result<Option<String>, String> {
    let (here, there) = (from.sizes()?, to.sizes()?);
    if here != there {
        return Ok(Some(format!("the databases have {here:?} keys here and {there:?} there")));
    }
    for (database, keys) in drawn {
        let (one, other) = (looks(from, *database, keys)?, looks(to, *database, keys)?);
        if one != other {
            return Ok(Some(format!("keys of database {database} differ")));
        }
    }
    Ok(None)
}
