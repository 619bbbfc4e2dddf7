//! Places: sorted sets whose scores are positions on Earth. Searching is in `search`; the
//! arithmetic is [`crate::geo::earth`].

mod earth;
mod rows;
mod search;

use crate::geo::earth::{self as geo, Point, Unit};

use engine::command::args::Args;
use engine::command::error::{CommandError, CommandResult};
use engine::engine::Context;
use engine::handler::scored::{Conditions, ScoredMembers};

pub(crate) use rows::FAMILY;

/// The next two arguments as a longitude and a latitude that a score can encode.
fn point(args: &mut Args<'_>) -> Result<Point, CommandError> {
    let point = Point { longitude: args.f64()?, latitude: args.f64()? };
    if geo::encode(point).is_none() {
        return Err(CommandError::owned(format!(
            "ERR invalid longitude,latitude pair {:.6},{:.6}",
            point.longitude, point.latitude
        )));
    }
    Ok(point)
}

/// The next argument as a unit of length.
fn unit(args: &mut Args<'_>) -> Result<Unit, CommandError> {
    const UNKNOWN: CommandError =
        CommandError::text("ERR unsupported unit provided. please use M, KM, FT, MI");
    Unit::parse(args.bytes()?).ok_or(UNKNOWN)
}

/// GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]
fn geoadd(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let (mut conditions, mut count_changed) = (Conditions::default(), false);
    let first_option = args.position();
    loop {
        if args.word("nx") {
            conditions.only_new = true;
        } else if args.word("xx") {
            conditions.only_present = true;
        } else if args.word("ch") {
            count_changed = true;
        } else {
            break;
        }
    }
    let contradictory = conditions.only_new && conditions.only_present;
    if args.is_empty() || !args.len().is_multiple_of(3) || contradictory {
        return Err(CommandError::SYNTAX);
    }
    let options = first_option..args.position();
    let mut members = ScoredMembers::new();
    while !args.is_empty() {
        let score = geo::encode(point(args)?).expect("points are checked when they are read");
        members.push((score as f64, args.bytes()?));
    }
    let additions = cx.add_scored(&key, conditions, &members)?;
    if cx.is_journaling() && additions.added + additions.updated > 0 {
        let options: Vec<_> = options.map(|index| args.argv().at(index)).collect();
        propagate_zadd(cx, key.bytes, &options, &members);
    }
    let updated = if count_changed { additions.updated } else { 0 };
    cx.reply.integer((additions.added + updated) as i64);
    Ok(())
}

/// The journal receives scores, so that positions are not computed again.
fn propagate_zadd(cx: &mut Context<'_>, key: &[u8], options: &[&[u8]], members: &[(f64, &[u8])]) {
    let scores: Vec<String> =
        members.iter().map(|(score, _)| (*score as u64).to_string()).collect();
    let mut argv: Vec<&[u8]> = vec![b"ZADD", key];
    argv.extend(options);
    for (score, (_, member)) in scores.iter().zip(members) {
        argv.extend([score.as_bytes(), *member]);
    }
    cx.propagate(&argv);
}

/// GEOPOS key [member [member ...]]
fn geopos(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let zset = cx.db.zset(&key)?;
    let members = args.rest();
    cx.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => search::reply_point(&mut cx.reply, geo::decode(score)),
            None => cx.reply.null_array(),
        }
    }
    Ok(())
}

/// GEOHASH key [member [member ...]]
fn geohash(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let key = args.key()?;
    let zset = cx.db.zset(&key)?;
    let members = args.rest();
    cx.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => cx.reply.bulk(&geo::geohash(geo::decode(score))),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// GEODIST key member1 member2 [M|KM|FT|MI]
fn geodist(cx: &mut Context<'_>, args: &mut Args<'_>) -> CommandResult {
    let (key, from, to) = (args.key()?, args.bytes()?, args.bytes()?);
    if args.len() > 1 {
        return Err(CommandError::SYNTAX);
    }
    let unit = if args.is_empty() { Unit::Metre } else { unit(args)? };
    let zset = cx.db.zset(&key)?;
    match zset.and_then(|zset| zset.score(from).zip(zset.score(to))) {
        Some((from, to)) => {
            let metres = geo::distance(geo::decode(from), geo::decode(to));
            search::reply_distance(&mut cx.reply, metres / unit.in_metres());
        }
        None => cx.reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {

    #[test]
    fn the_journal_gets_scores() {
        let mut server = crate::testing::server();
        server.text("GEOADD g NX CH 13.361389 38.115556 Palermo");
        server.text("GEOADD g NX 1 1 Palermo");
        let effects = server.journal.take();
        let words: Vec<_> = effects.iter().map(|effect| effect.argv.join(&b' ')).collect();
        assert_eq!(words, [b"ZADD g NX CH 3479099956230698 Palermo"]);
    }

    #[test]
    fn the_last_of_several_targets_counts() {
        let mut server = crate::testing::server();
        server.text("GEOADD g 13.361389 38.115556 Palermo");
        assert_eq!(server.text("GEORADIUS g 13 38 99 km STORE one STORE two"), ":1\r\n");
        assert_eq!(server.text("EXISTS one"), ":0\r\n");
        assert_eq!(server.text("ZCARD two"), ":1\r\n");
    }
}
