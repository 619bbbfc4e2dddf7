//! DEBUG HTSTATS, HTSTATS-KEY, LISTPACK and OBJECT: how keys and values are stored in memory.

use std::fmt::Write;
use std::io;

use store::pack::{Element, INTEGER_TEXT_BYTES};
use store::{Entry, List, ValueRef, evict};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::host::LogLevel;

/// DEBUG HTSTATS database
pub(super) fn of_database(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let database = usize::try_from(args.i64()?).ok();
    let known = database.filter(|&database| database < cx.engine.keyspace.databases());
    let database = known.ok_or(CommandError::text("ERR Out of range database"))?;
    let slots: Vec<u16> = cx.engine.keyspace.occupied(database).collect();
    let mut all = Buckets { tables: slots.len(), ..Buckets::default() };
    for slot in slots {
        let own = cx.with_slot(slot, |locked, _| {
            locked.table(database, slot).map(|table| table.chain_histogram())
        })?;
        all.add(&own.unwrap_or_default());
    }
    let expires = cx.engine.keyspace.expires(database);
    let text = format!(
        "[Dictionary HT]\n{all}[Expires HT]\nExpiry lies in the entries: {expires} of them have \
         one.\n"
    );
    cx.reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// DEBUG HTSTATS-KEY key
pub(super) fn of_key(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let database = cx.db.index;
    let chains = cx.with_slot(key.slot, |locked, _| {
        let entry = locked.find(database, &key).ok_or(CommandError::NO_SUCH_KEY)?;
        let chains = match entry.value() {
            ValueRef::Set(set) => set.chain_histogram(),
            ValueRef::Hash(hash) => hash.chain_histogram(),
            ValueRef::Zset(zset) => zset.chain_histogram(),
            ValueRef::String(_) | ValueRef::List(_) | ValueRef::Stream(_) => None,
        };
        chains.ok_or(CommandError::text(
            "ERR The value stored at the specified key is not represented using an hash table",
        ))
    })??;
    let mut buckets = Buckets { tables: 1, ..Buckets::default() };
    buckets.add(&chains);
    cx.reply.verbatim(b"txt", buckets.to_string().as_bytes());
    Ok(())
}

/// How the buckets of some tables are filled.
#[derive(Default)]
struct Buckets {
    tables: usize,
    /// How many chains of buckets have this many elements.
    chains: Vec<usize>,
}

impl Buckets {
    fn add(&mut self, chains: &[usize]) {
        self.chains.resize(self.chains.len().max(chains.len()), 0);
        self.chains.iter_mut().zip(chains).for_each(|(sum, own)| *sum += own);
    }
}

impl std::fmt::Display for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let buckets: usize = self.chains.iter().sum();
        let elements: usize =
            self.chains.iter().enumerate().map(|(locked, count)| locked * count).sum();
        if elements == 0 {
            return f.write_str("No stats available for empty dictionaries\n");
        }
        writeln!(f, " tables: {}\n buckets: {buckets}\n elements: {elements}", self.tables)?;
        writeln!(f, " elements per bucket: {:.2}", elements as f64 / buckets as f64)?;
        writeln!(f, " buckets by the number of their elements:")?;
        for (locked, &count) in self.chains.iter().enumerate().filter(|(_, count)| **count > 0) {
            writeln!(f, "   {locked}: {count} ({:.2}%)", 100.0 * count as f64 / buckets as f64)?;
        }
        Ok(())
    }
}

/// DEBUG LISTPACK key
pub(super) fn listpack(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let database = cx.db.index;
    let text = cx.with_slot(key.slot, |locked, _| {
        let entry = locked.find(database, &key).ok_or(CommandError::NO_SUCH_KEY)?;
        packed_elements(entry).ok_or(CommandError::text("ERR Not a listpack encoded object."))
    })??;
    if !cx.db.config.hide_user_data_from_log {
        cx.engine.host.log(LogLevel::Notice, &text);
    }
    cx.reply.simple(b"Listpack structure printed on stdout");
    Ok(())
}

/// The elements of a listpack in a line.
fn packed_elements(entry: Entry<'_>) -> Option<String> {
    let mut elements: Vec<Element<'_>> = Vec::new();
    match entry.value() {
        ValueRef::Hash(hash) if hash.is_packed() => {
            elements.extend(hash.as_listpack().into_iter().flat_map(|own| own.elements()));
        }
        ValueRef::Zset(zset) if zset.is_packed() => {
            elements.extend(zset.iter().map(|(member, _)| member));
        }
        ValueRef::Set(set) if set.as_listpack().is_some() => elements.extend(set.iter()),
        ValueRef::List(list) if list.is_listpack() => {
            list.iter().for_each(|item| elements.push(item.as_element()));
        }
        _ => return None,
    }
    let mut text = format!("Listpack of {} elements:", elements.len()).into_bytes();
    for element in elements {
        text.push(b' ');
        engine::clients::monitor::quote(element.as_bytes(&mut [0; INTEGER_TEXT_BYTES]), &mut text);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// DEBUG OBJECT key
pub(super) fn object(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let (database, compress) = (cx.db.index, cx.db.config.rdbcompression);
    let (seconds, fill) = ((cx.db.now / 1000) as u32, cx.db.config.list_max_listpack_size);
    let text = cx.with_slot(key.slot, |locked, _| {
        let entry = locked.find(database, &key).ok_or(CommandError::NO_SUCH_KEY)?;
        let mut text = format!(
            "Value at:{:p} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
            entry.key().as_ptr(),
            entry.value().encoding(),
            serialized_length(entry.value(), compress),
            entry.clock(),
            evict::idle_seconds(entry.clock(), seconds)
        );
        if let ValueRef::List(list) = entry.value()
            && !list.is_listpack()
        {
            describe_nodes(list, fill, &mut text);
        }
        Ok::<_, CommandError>(text)
    })??;
    cx.reply.simple(text.as_bytes());
    Ok(())
}

/// Bytes of a value in a snapshot, without its type and key.
fn serialized_length(value: ValueRef<'_>, compress: bool) -> usize {
    /// Counts the bytes that are written.
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // Counting cannot fail.
    let _ = rdb::Writer::new(&mut count, compress).value(value);
    count.0
}

fn describe_nodes(list: &List, fill: i32, text: &mut String) {
    use store::list::NodeRef;
    let bytes: usize = list
        .nodes()
        .map(|node| match node {
            NodeRef::Packed(bytes) | NodeRef::Plain(bytes) => bytes.len(),
        })
        .sum();
    let nodes = list.node_count();
    // Writing into a string cannot fail.
    let _ = write!(
        text,
        " ql_nodes:{nodes} ql_avg_node:{:.2} ql_listpack_max:{fill} ql_compressed:0 \
         ql_uncompressed_size:{bytes}",
        list.len() as f64 / nodes.max(1) as f64
    );
}
