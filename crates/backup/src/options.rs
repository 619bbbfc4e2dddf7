//! What the user wants.

use std::path::PathBuf;

use lab::bench::{redis_address, unknown_option};
use lab::load::{Address, Encryption};

use crate::moment::{Moment, parse_duration_ms};
use crate::position::Position;
use crate::retention::Retention;
use crate::storage::Access;

pub(crate) const BACKUP_USAGE: &str = "\
Takes backups of a running Dunlin, Redis or Valkey without stopping it: all data once, and then the
stream of writes behind it, so that `dunlin restore` can go to any position or time in between.

Usage: dunlin backup --from URL --to STORE [OPTIONS]
       dunlin backup --from FILE.rdb --to STORE
       dunlin backup --to STORE --list [--json] | --verify | --keep N | --keep-days N

  --from URL          the primary or a replica, as redis://user:password@host:port; rediss:// encrypts.
                      Its user needs +psync +replconf +ping +info. The password may be in the variable
                      REDISCLI_AUTH, the whole URL in DUNLIN_BACKUP_FROM
  --to STORE          where the backup lies: a directory, or s3://BUCKET/PREFIX. The first run takes
                      all data (a base), later ones go on where the last one ended, if the server
                      still has the stream after it
  --follow            stays, and backs up all the time, until SIGTERM or SIGINT
  --full              takes a new base in any case
  --base-every TIME   takes a new base when the newest one is older: 12h, 7d
  --segment-seconds N writes what has arrived each N seconds at least; 10 if not given
  --segment-mb N      and whenever it is so long; 16 if not given
  --keep N            keeps the newest N bases with the stream behind them
  --keep-days N       keeps each point of the last N days; what one of both wants is kept
  --list, --json      shows what there is, as a table or as JSON
  --verify            reads everything, and checks lengths, sums, checksums and gaps
  --tls               encrypts; --cacert FILE has the authorities that are believed, --cert FILE and
                      --key FILE are this client's certificate, --sni NAME is the name that the
                      server's certificate is for, --insecure believes any server
  --endpoint URL      a server of S3 that is not AWS's, as in AWS_ENDPOINT_URL; --region NAME is the
                      bucket's region, as in AWS_REGION. Keys come from AWS_ACCESS_KEY_ID and
                      AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials
  --path-style, --virtual-host   where the name of the bucket stands: in the path, as is usual with
                      --endpoint, or before the host, as is usual without it

The exit code is 0 if all is well, 1 after a failure, which leaves earlier backups as they were, and 2
if an option is wrong.
";

pub(crate) const RESTORE_USAGE: &str = "\
Writes the data of a backup as it was at a position or a time, for a server to load when it starts.

Usage: dunlin restore --from STORE --to DATA-DIRECTORY [--at TIME|POSITION] [OPTIONS]
       dunlin restore --from STORE --rdb FILE [--at TIME|POSITION]

  --from STORE        where the backup lies: a directory, or s3://BUCKET/PREFIX
  --to DATA-DIRECTORY the directory (`dir`) of the server; it is made, or has to be empty
                      but for what a restore that was killed has left
  --at TIME           as 2026-11-27T20:00:00Z, or a Unix time in seconds or milliseconds
  --at POSITION       as HISTORY:OFFSET, which INFO has as master_replid and master_repl_offset;
                      without --at it is the newest point
  --rdb FILE          writes the newest base at or before the point as an RDB file instead
  --appenddirname NAME, --appendfilename NAME
                      if the server's settings of these names are not the default
  --endpoint URL      a server of S3 that is not AWS's, as in AWS_ENDPOINT_URL; --region NAME is the
                      bucket's region, as in AWS_REGION. Keys come from AWS_ACCESS_KEY_ID and
                      AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials
  --path-style, --virtual-host   where the name of the bucket stands: in the path, as is usual with
                      --endpoint, or before the host, as is usual without it

Nothing is written before all files that are needed were read and their sums compared. The last whole
command or transaction at or before the point is the last one that is restored, and the position that
was reached is shown. Start the server with `appendonly yes`.
";

/// What is taken.
#[derive(Debug)]
pub(crate) enum Source {
    Server(Box<Address>),
    File(PathBuf),
}

/// What `dunlin backup` is to do.
#[derive(Debug)]
pub(crate) enum Task {
    Take(Source),
    List { json: bool },
    Verify,
    Prune,
}

/// How a backup is taken.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    pub(crate) follow: bool,
    pub(crate) full: bool,
    pub(crate) base_every_ms: Option<u64>,
    pub(crate) segment_ms: u64,
    pub(crate) segment_bytes: usize,
    pub(crate) retention: Retention,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct BackupOptions {
    pub(crate) task: Task,
    pub(crate) to: String,
    pub(crate) access: Access,
    pub(crate) take: Take,
}

fn number<N: std::str::FromStr + PartialOrd + From<u8>>(
    option: &str,
    text: &str,
) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number >= N::from(1));
    number.ok_or_else(|| format!("{option} takes a whole number above 0, not '{text}'"))
}

fn source(
    text: &str,
    encryption: Encryption,
    encrypts: bool,
    password: Option<String>,
) -> Result<Source, String> {
    let given = encryption != Encryption::default();
    if !text.contains("://") {
        // What is shown of a file may be all of it, and this has a password, most likely.
        if text.contains('@') || ["redis:", "rediss:"].iter().any(|begin| text.starts_with(begin)) {
            return Err("--from is no URL: redis://user:password@host:port".to_owned());
        }
        return match given || encrypts {
            true => Err("--tls and certificates are for servers".to_owned()),
            false => Ok(Source::File(text.into())),
        };
    }
    let mut address = redis_address(text)?;
    if address.database != 0 {
        return Err("a backup takes all databases: the URL names none".to_owned());
    }
    if given && !encrypts && address.encryption.is_none() {
        return Err("certificates are for --tls, or a URL with rediss://".to_owned());
    }
    if encrypts || address.encryption.is_some() {
        address.encryption = Some(encryption);
    }
    address.password = address.password.or(password);
    Ok(Source::Server(Box::new(address)))
}

impl BackupOptions {
    pub(crate) fn parse(words: &[String]) -> Result<BackupOptions, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        BackupOptions::parse_with(words, &variable)
    }

    fn parse_with(
        words: &[String],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<BackupOptions, String> {
        let (mut from, mut to) = (None, None);
        let (mut list, mut json, mut verify) = (false, false, false);
        let mut take = Take {
            follow: false,
            full: false,
            base_every_ms: None,
            segment_ms: 10_000,
            segment_bytes: 16 << 20,
            retention: Retention::default(),
        };
        let (mut encryption, mut encrypts) = (Encryption::default(), false);
        let mut access = Access::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: what?"));
            match word.as_str() {
                "--follow" => take.follow = true,
                "--full" => take.full = true,
                "--list" => list = true,
                "--json" => json = true,
                "--verify" => verify = true,
                "--tls" => encrypts = true,
                "--from" => from = Some(value()?.clone()),
                "--to" => to = Some(value()?.clone()),
                "--base-every" => {
                    let text = value()?;
                    let every = parse_duration_ms(text);
                    take.base_every_ms =
                        Some(every.ok_or_else(|| format!("--base-every: '{text}' is no time"))?);
                }
                "--segment-seconds" => {
                    let seconds: u32 = number(word, value()?)?;
                    take.segment_ms = u64::from(seconds) * 1000;
                }
                "--segment-mb" => {
                    let most: u16 = number(word, value()?)?;
                    take.segment_bytes = usize::from(most) << 20;
                }
                "--keep" => {
                    take.retention.bases = Some(usize::from(number::<u16>(word, value()?)?))
                }
                "--keep-days" => {
                    let days: u16 = number(word, value()?)?;
                    take.retention.age_ms = Some(u64::from(days) * 24 * 60 * 60 * 1000);
                }
                option if encryption.take_option(option, &mut value)? => {}
                option if access.take_option(option, &mut value)? => {}
                _ => return Err(unknown_option(word)),
            }
        }
        let to = to.ok_or("--to is missing")?;
        if json && !list {
            return Err("--json is for --list".to_owned());
        }
        let keeps = take.retention != Retention::default();
        let takes = take.follow || take.full || take.base_every_ms.is_some();
        // The environment names a server as well as the line does: a unit's only way is that one.
        let from = match list || verify {
            true => from,
            false => from.or_else(|| variable("DUNLIN_BACKUP_FROM")),
        };
        let task = match (list, verify, from) {
            (true, true, _) => return Err("--list and --verify are two commands".to_owned()),
            (true, _, None) => Task::List { json },
            (_, true, None) => Task::Verify,
            (true, ..) | (_, true, _) => {
                return Err("--list and --verify look at --to alone, without --from".to_owned());
            }
            (_, _, None) if keeps && !takes => Task::Prune,
            (_, _, None) => return Err("--from is missing".to_owned()),
            (_, _, Some(from)) => {
                let password = variable("REDISCLI_AUTH");
                Task::Take(source(&from, encryption, encrypts, password)?)
            }
        };
        let is_file = matches!(task, Task::Take(Source::File(_)));
        if is_file && (take.follow || take.full || take.base_every_ms.is_some()) {
            return Err("--follow, --full and --base-every are for servers".to_owned());
        }
        access.check(&to)?;
        Ok(BackupOptions { task, to, access, take })
    }
}

/// What is to be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Newest,
    Time(Moment),
    Position(Position),
}

impl Point {
    fn parse(text: &str) -> Result<Point, String> {
        if let Some(position) = Position::parse(text) {
            return Ok(Point::Position(position));
        }
        let time = Moment::parse(text).map(Point::Time);
        time.ok_or_else(|| {
            format!(
                "'{text}' is neither a time such as 2026-11-27T20:00:00Z nor a position \
                 HISTORY:OFFSET"
            )
        })
    }
}

/// Where the data goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Directory { path: PathBuf, folder: String, prefix: String },
    Rdb(PathBuf),
}

/// What `dunlin restore` is to do.
#[derive(Debug)]
pub(crate) struct RestoreOptions {
    pub(crate) from: String,
    pub(crate) access: Access,
    pub(crate) to: Destination,
    pub(crate) at: Point,
}

impl RestoreOptions {
    pub(crate) fn parse(words: &[String]) -> Result<RestoreOptions, String> {
        let (mut from, mut to, mut rdb, mut at) = (None, None, None, Point::Newest);
        let (mut folder, mut prefix) = (None, None);
        let mut access = Access::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: what?"));
            match word.as_str() {
                "--from" => from = Some(value()?.clone()),
                "--to" => to = Some(PathBuf::from(value()?)),
                "--rdb" => rdb = Some(PathBuf::from(value()?)),
                "--at" => at = Point::parse(value()?)?,
                "--appenddirname" => folder = Some(file_name(word, value()?)?),
                "--appendfilename" => prefix = Some(file_name(word, value()?)?),
                option if access.take_option(option, &mut value)? => {}
                _ => return Err(unknown_option(word)),
            }
        }
        let to = match (to, rdb) {
            (Some(_), Some(_)) => return Err("either --to or --rdb, not both".to_owned()),
            (None, None) => return Err("--to is missing".to_owned()),
            (None, Some(_)) if folder.is_some() || prefix.is_some() => {
                return Err("--appenddirname and --appendfilename are for --to".to_owned());
            }
            (None, Some(file)) => Destination::Rdb(file),
            (Some(path), None) => Destination::Directory {
                path,
                folder: folder.unwrap_or_else(|| "appendonlydir".to_owned()),
                prefix: prefix.unwrap_or_else(|| "appendonly.aof".to_owned()),
            },
        };
        let from = from.ok_or("--from is missing")?;
        access.check(&from)?;
        Ok(RestoreOptions { from, access, to, at })
    }
}

/// A name without a folder, which needs no quotes in a manifest.
fn file_name(option: &str, text: &str) -> Result<String, String> {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !text.is_empty() && text.chars().all(known) && text != "." && text != ".." {
        true => Ok(text.to_owned()),
        false => Err(format!("{option} takes a name of letters, digits, '-', '_' and '.'")),
    }
}

#[cfg(test)]
mod tests {
    use lab::targets::Interrupt;

    use super::*;

    fn backup(line: &str) -> Result<BackupOptions, String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        BackupOptions::parse_with(&words, &|name| {
            (name == "REDISCLI_AUTH").then(|| "of the environment".to_owned())
        })
    }

    /// As a service has it: its unit's line has no server.
    fn backup_of_environment(line: &str) -> Result<BackupOptions, String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        BackupOptions::parse_with(&words, &|name| {
            (name == "DUNLIN_BACKUP_FROM").then(|| "redis://h:7000".to_owned())
        })
    }

    fn restore(line: &str) -> Result<RestoreOptions, String> {
        RestoreOptions::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_environment_names_the_server() {
        for line in ["--to d", "--to d --keep 3", "--to d --follow --base-every 1d --keep-days 7"] {
            let task = backup_of_environment(line).unwrap().task;
            let Task::Take(Source::Server(address)) = &task else { panic!("{line}: {task:?}") };
            assert_eq!((&*address.host, address.port), ("h", 7000));
        }
        assert!(matches!(backup_of_environment("--to d --verify").unwrap().task, Task::Verify));
    }

    #[test]
    fn options_of_a_backup_are_understood() {
        let line = "--from redis://h:7000 --to d --follow --segment-seconds 2 --keep-days 3";
        let options = backup(line).unwrap();
        let Task::Take(Source::Server(address)) = &options.task else { panic!("{options:?}") };
        assert_eq!((&*address.host, address.port), ("h", 7000));
        assert_eq!(address.password.as_deref(), Some("of the environment"));
        assert_eq!((options.take.segment_ms, options.take.follow), (2000, true));
        assert_eq!(options.take.retention.age_ms, Some(3 * 86_400_000));
        let options = backup("--from redis://:pw@h --to d --tls --insecure").unwrap();
        let Task::Take(Source::Server(address)) = &options.task else { panic!("{options:?}") };
        assert_eq!(address.password.as_deref(), Some("pw"));
        assert!(address.encryption.as_ref().is_some_and(|own| own.insecure));
        assert!(matches!(backup("--to d --list --json").unwrap().task, Task::List { json: true }));
        assert!(matches!(backup("--to d --verify").unwrap().task, Task::Verify));
        assert!(matches!(backup("--to d --keep 3").unwrap().task, Task::Prune));
        let options = backup("--from redis://h --to s3://b/p --endpoint http://e --path-style");
        let access = options.unwrap().access;
        assert_eq!((access.endpoint.as_deref(), access.path_style), (Some("http://e"), Some(true)));
        let file = backup("--from dump.rdb --to d").unwrap().task;
        assert!(matches!(file, Task::Take(Source::File(_))));
        for wrong in [
            "--to d",
            "--to d --follow --keep 3",
            "--from redis://h",
            "--from redis://h --to d --json",
            "--from redis://h --to d --list",
            "--to d --list --verify",
            "--from redis://h/1 --to d",
            "--from redis://h --to d --insecure",
            "--from dump.rdb --to d --follow",
            "--from dump.rdb --to d --tls",
            "--from redis://h --to d --keep 0",
            "--from redis://h --to d --base-every soon",
            "--from redis://h --to d --segment-mb 99999999",
            "--from redis://h --to d --other",
            "--from redis://h --to d --endpoint http://e",
            "--from redis://h --to",
        ] {
            assert!(backup(wrong).is_err(), "{wrong}");
        }
        let said = backup("--from redis://h --password=secret").unwrap_err();
        assert_eq!(said, "there is no option --password");
    }

    /// Wherever a URL has landed by mistake.
    #[test]
    fn no_message_shows_a_secret() {
        for line in [
            "--from redis:/user:s3cret@h --to d",
            "--from user:s3cret@h --to d",
            "--from http://user:s3cret@h --to d",
            "--from=redis://user:s3cret@h --to d",
            "redis://user:s3cret@h --to d",
        ] {
            let problem = backup(line).map(drop).unwrap_err();
            assert!(!problem.contains("s3cret"), "{problem}");
        }
        for line in ["redis://user:s3cret@h", "--from=https://key:s3cret@h/own"] {
            let problem = restore(line).map(drop).unwrap_err();
            assert!(!problem.contains("s3cret"), "{problem}");
        }
        let access =
            |endpoint: &str| Access { endpoint: Some(endpoint.to_owned()), ..Access::default() };
        for (place, access) in [
            ("https://key:s3cret@h/own", Access::default()),
            ("s3://own/../key:s3cret@h", Access::default()),
            ("s3://own", access("https//key:s3cret@h")),
            ("s3://own", access("data:key:s3cret@h")),
        ] {
            let problem =
                crate::storage::open(place, &access, &Interrupt::default()).map(drop).unwrap_err();
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn options_of_a_restore_are_understood() {
        let history = "0123456789abcdef0123456789abcdef01234567";
        let options = restore(&format!("--from d --to e --at {history}:12")).unwrap();
        assert_eq!(options.at, Point::Position(Position::parse(&format!("{history}:12")).unwrap()));
        assert_eq!(restore("--from d --to e").unwrap().at, Point::Newest);
        let at = restore("--from d --rdb f --at 1790000000").unwrap().at;
        assert_eq!(at, Point::Time(Moment(1_790_000_000_000)));
        for wrong in [
            "--from d",
            "--to e",
            "--from d --to e --rdb f",
            "--from d --to e --at soon",
            "--from d --to e --at abc:1",
            "--from d --rdb f --appenddirname x",
            "--from d --to e --appendfilename a/b",
        ] {
            assert!(restore(wrong).is_err(), "{wrong}");
        }
        let said = restore("--from d --secret-key=secret").unwrap_err();
        assert_eq!(said, "there is no option --secret-key");
    }
}
