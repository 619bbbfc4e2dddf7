//! Publish and subscribe: channels, patterns and shard channels.
//!
//! SUBSCRIBE and the like reply with a message per name, which has the number of subscriptions at
//! that time. There is one node, so shard channels are channels in a namespace of their own.

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::command::{
    ArgumentKind, DEPENDS_ON_SUBCOMMAND, Docs, FAST, Flags, Group, KeySpec, LOADING, MAY_REPLICATE,
    NO_KEYS, NOSCRIPT, NOT_KEY, NamesChannels, OF_CONNECTION, PUBSUB, STALE, WHILE_SUBSCRIBED,
    argument, docs, docs_of_help,
};
use engine::engine::{Command, Context, Family, row};
use engine::handler::help::{container, help};
use engine::session::pubsub::Kind;

/// The word that begins the reply to subscribing, and the one for unsubscribing.
fn words(kind: Kind) -> (&'static [u8], &'static [u8]) {
    match kind {
        Kind::Channel => (b"subscribe", b"unsubscribe"),
        Kind::Pattern => (b"psubscribe", b"punsubscribe"),
        Kind::Shard => (b"ssubscribe", b"sunsubscribe"),
    }
}

/// Subscribes to all names that are left.
fn subscribe_to(cx: &mut Context<'_>, args: &mut Args<'_>, kind: Kind) -> CommandResult {
    while let Ok(name) = args.bytes() {
        if cx.session.subscriptions_mut().add(kind, name) {
            cx.engine.pubsub.subscribe(kind, name, &cx.session.client);
        }
        // From its first subscription on, it is in another class.
        cx.session.limit_output(cx.db.config, cx.reply.output());
        reply(cx, words(kind).0, Some(name), kind);
    }
    cx.session.publish_state();
    Ok(())
}

/// Unsubscribes from all remaining names; without a name, from all names of the kind.
fn unsubscribe_from(cx: &mut Context<'_>, args: &mut Args<'_>, kind: Kind) -> CommandResult {
    let word = words(kind).1;
    if args.is_empty() {
        let names: Vec<Vec<u8>> = cx.session.subscriptions_mut().of(kind).iter().cloned().collect();
        names.iter().for_each(|name| unsubscribe_one(cx, kind, name));
        if names.is_empty() {
            reply(cx, word, None, kind);
        }
    }
    while let Ok(name) = args.bytes() {
        unsubscribe_one(cx, kind, name);
    }
    if !cx.session.subscriptions_mut().any() {
        cx.session.subscriptions = None;
    }
    cx.session.publish_state();
    Ok(())
}

fn unsubscribe_one(cx: &mut Context<'_>, kind: Kind, name: &[u8]) {
    if cx.session.subscriptions_mut().remove(kind, name) {
        cx.engine.pubsub.unsubscribe(kind, name, &cx.session.client);
        // No message of the channel may come after the word that the subscription is over.
        cx.write_messages();
    }
    reply(cx, words(kind).1, Some(name), kind);
}

/// One message of the reply: the word, the name, and how many subscriptions there are.
fn reply(cx: &mut Context<'_>, word: &[u8], name: Option<&[u8]>, kind: Kind) {
    let own = cx.session.subscriptions_mut();
    let count = if kind == Kind::Shard { own.shard_channels.len() } else { own.count() };
    cx.session.pushes = true;
    cx.reply.push(3);
    cx.reply.bulk(word);
    match name {
        Some(name) => cx.reply.bulk(name),
        None => cx.reply.null(),
    }
    cx.reply.integer(count as i64);
}

/// SUBSCRIBE channel [channel ...]
fn subscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    subscribe_to(cx, args, Kind::Channel)
}

/// UNSUBSCRIBE [channel [channel ...]]
fn unsubscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    unsubscribe_from(cx, args, Kind::Channel)
}

/// PSUBSCRIBE pattern [pattern ...]
fn psubscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    subscribe_to(cx, args, Kind::Pattern)
}

/// PUNSUBSCRIBE [pattern [pattern ...]]
fn punsubscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    unsubscribe_from(cx, args, Kind::Pattern)
}

/// SSUBSCRIBE shardchannel [shardchannel ...]
fn ssubscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    // Unlike SUBSCRIBE, within MULTI too.
    if cx.nested {
        let text = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client";
        return Err(CommandError::text(text));
    }
    subscribe_to(cx, args, Kind::Shard)?;
    cx.engine.look_again(&cx.session.client);
    Ok(())
}

/// SUNSUBSCRIBE [shardchannel [shardchannel ...]]
fn sunsubscribe(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    unsubscribe_from(cx, args, Kind::Shard)
}

/// PUBLISH channel message
fn publish(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    publish_to(cx, args, Kind::Channel)
}

/// SPUBLISH shardchannel message
fn spublish(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    publish_to(cx, args, Kind::Shard)
}

fn publish_to(cx: &mut Context<'_>, args: &mut Args<'_>, kind: Kind) -> CommandResult {
    let (channel, message) = (args.bytes()?, args.bytes()?);
    let receivers = cx.publish(kind, channel, message);
    cx.reply.integer(receivers as i64);
    Ok(())
}

/// Answers the names of a kind that have listeners and match a pattern.
fn reply_names(cx: &mut Context<'_>, args: &mut Args<'_>, kind: Kind) -> CommandResult {
    let subcommand = args.bytes()?;
    let pattern = args.bytes().ok();
    if !args.is_empty() {
        return Err(CommandError::subcommand_syntax("pubsub", subcommand));
    }
    let mut names = cx.engine.pubsub.names(kind);
    names.retain(|name| pattern.is_none_or(|pattern| base::glob::matches(pattern, name)));
    cx.reply.array(names.len());
    names.iter().for_each(|name| cx.reply.bulk(name));
    Ok(())
}

/// Answers how many clients listen to each of some names.
fn reply_counts(cx: &mut Context<'_>, args: &mut Args<'_>, kind: Kind) -> CommandResult {
    args.skip(1);
    // An array in RESP3 too, as in Redis.
    cx.reply.array(2 * args.len());
    while let Ok(name) = args.bytes() {
        cx.reply.bulk(name);
        cx.reply.integer(cx.engine.pubsub.count(kind, name) as i64);
    }
    Ok(())
}

/// PUBSUB CHANNELS [pattern]
fn channels(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_names(cx, args, Kind::Channel)
}

/// PUBSUB NUMSUB [channel [channel ...]]
fn numsub(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_counts(cx, args, Kind::Channel)
}

/// PUBSUB NUMPAT
fn numpat(cx: &mut Context<'_>, _args: &mut Args<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.pubsub.len(Kind::Pattern) as i64);
    Ok(())
}

/// PUBSUB SHARDCHANNELS [pattern]
fn shardchannels(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_names(cx, args, Kind::Shard)
}

/// PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]
fn shardnumsub(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    reply_counts(cx, args, Kind::Shard)
}

/// Flags of subscribing and unsubscribing.
const SUBSCRIBING: Flags = WHILE_SUBSCRIBED | OF_CONNECTION | PUBSUB | NOSCRIPT | LOADING | STALE;

/// All arguments are channels, which have slots as keys do.
const CHANNELS: &[KeySpec] = &[KeySpec::range(NOT_KEY, 1, -1, 1)];
/// A channel, which has a slot as a key does.
const CHANNEL: &[KeySpec] = &[KeySpec::at(NOT_KEY, 1)];

/// The commands of this family.
pub(crate) const FAMILY: Family = Family::new(COMMANDS, DOCS);

const COMMANDS: &[Command] = &Group::PubSub.rows([
    row("subscribe", subscribe, -2, SUBSCRIBING, NO_KEYS).channels(NamesChannels::All),
    row("unsubscribe", unsubscribe, -1, SUBSCRIBING, NO_KEYS),
    row("psubscribe", psubscribe, -2, SUBSCRIBING, NO_KEYS).channels(NamesChannels::AllPatterns),
    row("punsubscribe", punsubscribe, -1, SUBSCRIBING, NO_KEYS),
    row("ssubscribe", ssubscribe, -2, SUBSCRIBING, CHANNELS).channels(NamesChannels::All),
    row("sunsubscribe", sunsubscribe, -1, SUBSCRIBING, CHANNELS),
    row("publish", publish, 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE, NO_KEYS)
        .channels(NamesChannels::First),
    row("spublish", spublish, 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE, CHANNEL)
        .channels(NamesChannels::First),
    container("pubsub", SUBCOMMANDS),
]);

const SUBCOMMANDS: &[Command] = &Group::PubSub.under("pubsub").rows([
    row("channels", channels, -2, PUBSUB | LOADING | STALE, NO_KEYS),
    help(),
    row("numpat", numpat, 2, PUBSUB | LOADING | STALE, NO_KEYS),
    row("numsub", numsub, -2, PUBSUB | LOADING | STALE, NO_KEYS),
    row("shardchannels", shardchannels, -2, PUBSUB | LOADING | STALE, NO_KEYS),
    row("shardnumsub", shardnumsub, -2, PUBSUB | LOADING | STALE, NO_KEYS),
]);

// ---- Documentation ------------------------------------------------------------------------------

const DOCS: &[Docs] = &[
    docs("subscribe", "2.0.0", "Begins to listen to channels.")
        .cost("O(N) for N channels that are named.")
        .arguments(&[argument("channel", ArgumentKind::String).multiple()]),
    docs("unsubscribe", "2.0.0", "Stops listening to channels.")
        .cost("O(N) for N subscribers of a channel.")
        .arguments(&[argument("channel", ArgumentKind::String).optional().multiple()]),
    docs("psubscribe", "2.0.0", "Begins to listen to all channels that match patterns.")
        .cost("O(N) for N patterns that the client has.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern).multiple()]),
    docs("punsubscribe", "2.0.0", "Stops listening to the channels that match patterns.")
        .cost("O(N+M) for N patterns that the client has and M that all clients have.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern).optional().multiple()]),
    docs("ssubscribe", "7.0.0", "Begins to listen to shard channels.")
        .cost("O(N) for N channels that are named.")
        .arguments(&[argument("shardchannel", ArgumentKind::String).multiple()]),
    docs("sunsubscribe", "7.0.0", "Stops listening to shard channels.")
        .cost("O(N) for N subscribers of a channel.")
        .arguments(&[argument("shardchannel", ArgumentKind::String).optional().multiple()]),
    docs("publish", "2.0.0", "Sends a message to the subscribers of a channel.")
        .cost("O(N+M) for N subscribers of the channel and M patterns that all clients have.")
        .arguments(&[
            argument("channel", ArgumentKind::String),
            argument("message", ArgumentKind::String),
        ]),
    docs("spublish", "7.0.0", "Sends a message to the subscribers of a shard channel.")
        .cost("O(N) for N subscribers of the channel.")
        .arguments(&[
            argument("shardchannel", ArgumentKind::String),
            argument("message", ArgumentKind::String),
        ]),
    docs("pubsub", "2.8.0", "Commands about subscriptions.").cost(DEPENDS_ON_SUBCOMMAND),
    docs("pubsub|channels", "2.8.0", "Lists the channels that have subscribers.")
        .cost("O(N) for N channels that have subscribers, with short names.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern).optional()]),
    docs_of_help("pubsub|help", "6.2.0"),
    docs("pubsub|numpat", "2.8.0", "Counts the patterns that have subscribers.").cost("O(1)"),
    docs("pubsub|numsub", "2.8.0", "Counts the subscribers of channels.")
        .cost("O(N) for N channels that are named.")
        .arguments(&[argument("channel", ArgumentKind::String).optional().multiple()]),
    docs("pubsub|shardchannels", "7.0.0", "Lists the shard channels that have subscribers.")
        .cost("O(N) for N channels that have subscribers, with short names.")
        .arguments(&[argument("pattern", ArgumentKind::Pattern).optional()]),
    docs("pubsub|shardnumsub", "7.0.0", "Counts the subscribers of shard channels.")
        .cost("O(N) for N channels that are named.")
        .arguments(&[argument("shardchannel", ArgumentKind::String).optional().multiple()]),
];

#[cfg(test)]
mod tests {
    use crate::testing::messages;

    fn message(channel: &str, text: &str) -> String {
        format!(
            ">3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${}\r\n{text}\r\n",
            channel.len(),
            text.len()
        )
    }

    #[test]
    fn a_publisher_gets_its_own_message_after_the_reply_and_what_came_before() {
        let mut server = crate::testing::server();
        server.text("HELLO 3");
        server.text("SUBSCRIBE a");
        let mut other = server.connect();
        assert_eq!(server.text_as(&mut other, "PUBLISH a 1"), ":1\r\n");
        let expected = format!(":1\r\n{}{}", message("a", "1"), message("a", "2"));
        assert_eq!(server.text("PUBLISH a 2"), expected);
        assert_eq!(messages(&server.session), "");
    }

    #[test]
    fn inside_exec_ones_own_messages_follow_the_reply() {
        let mut server = crate::testing::server();
        for line in ["HELLO 3", "SUBSCRIBE a", "MULTI", "PUBLISH a 1"] {
            server.text(line);
        }
        assert_eq!(server.text("EXEC"), format!("*1\r\n:1\r\n{}", message("a", "1")));
        assert_eq!(messages(&server.session), "");
    }

    #[test]
    fn what_a_script_or_exec_publishes_follows_the_events_of_its_writes() {
        let mut server = crate::testing::server();
        server.text("CONFIG SET notify-keyspace-events EA");
        let mut subscriber = server.connect();
        server.text_as(&mut subscriber, "SUBSCRIBE a __keyevent@0__:set");
        for line in ["MULTI", "SET k v", "PUBLISH a 1", "SET k w", "EXEC"] {
            server.text(line);
        }
        let all = messages(&subscriber);
        let places = ["1\r\nk\r\n", "1\r\n1\r\n"].map(|text| all.find(text).unwrap());
        assert!(places.is_sorted(), "{all}");
        assert_eq!(all.matches("1\r\nk\r\n").count(), 2);
        assert!(all.ends_with("1\r\nk\r\n"), "{all}");
    }

    #[test]
    fn ones_own_events_follow_the_reply() {
        let mut server = crate::testing::server();
        for line in
            ["CONFIG SET notify-keyspace-events EA", "HELLO 3", "SUBSCRIBE __keyevent@0__:set"]
        {
            server.text(line);
        }
        let event = message("__keyevent@0__:set", "k");
        assert_eq!(server.text("SET k v"), format!("+OK\r\n{event}"));
        assert_eq!(messages(&server.session), "");
    }

    #[test]
    fn messages_are_not_lost_with_the_replies_that_are_not_sent() {
        let mut server = crate::testing::server();
        for line in ["HELLO 3", "SUBSCRIBE a", "CLIENT REPLY OFF"] {
            server.text(line);
        }
        assert_eq!(server.text("PUBLISH a 1"), "");
        assert_eq!(messages(&server.session), message("a", "1"));
    }

    #[test]
    fn no_message_follows_the_reply_of_unsubscribe() {
        let mut server = crate::testing::server();
        server.text("HELLO 3");
        server.text("SUBSCRIBE a");
        let mut other = server.connect();
        server.text_as(&mut other, "PUBLISH a 1");
        let over = ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n";
        assert_eq!(server.text("UNSUBSCRIBE"), format!("{}{over}", message("a", "1")));
        assert_eq!(messages(&server.session), "");
    }

    #[test]
    fn messages_come_before_the_reply_that_changes_the_protocol() {
        for (line, word) in [("RESET", "+RESET\r\n"), ("HELLO 2", "*14\r\n$6\r\nserver\r\n")] {
            let mut server = crate::testing::server();
            server.text("HELLO 3");
            server.text("SUBSCRIBE a");
            let mut other = server.connect();
            server.text_as(&mut other, "PUBLISH a 1");
            let expected = format!("{}{word}", message("a", "1"));
            let answer = server.text(line);
            assert!(answer.starts_with(&expected), "{line}: {answer}");
            assert_eq!(messages(&server.session), "");
        }
        let mut server = crate::testing::server();
        server.text("MONITOR");
        let mut other = server.connect();
        server.text_as(&mut other, "GET a");
        let answer = server.text("RESET");
        assert!(answer.contains("\"GET\" \"a\"\r\n") && answer.ends_with("+RESET\r\n"), "{answer}");
    }
}
