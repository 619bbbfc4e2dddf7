//! What the user wants.

use std::fs;
use std::time::Duration;

use lab::bench::redis_address;
use lab::load::{Address, Encryption, name_of_option};

use crate::server::LONG_PAUSE;

/// So many digits of a history are enough to tell two of them apart.
pub(crate) const LENGTH_OF_NAME: usize = 12;

pub(crate) const USAGE: &str = "\
Moves all data from one server to another while clients go on, and then promotes the new one.

Usage: dunlin move --from URL [--to URL] [OPTIONS]

  --from URL          the old server, as redis://user:password@host:port; rediss:// encrypts
  --to URL            the new one; redis://127.0.0.1:6379 if not given
  --from-password-file FILE, --to-password-file FILE   the password, which others of the machine could
                      see in a URL
  --check             only says what will not move, and changes nothing
  --yes               does not ask
  --replace NAME      the new server may have data, which is lost: those of this name, as the check
                      says it. They have another one after a promotion or a restart
  --unpause           no other server leads in place of an old one whose writes are held: they go on
  --after replica     makes the old server a replica of the new one, which is the way back (default)
  --after paused      leaves its writes paused, for an hour
  --compare all       compares all data before the promotion, while clients go on (default)
  --compare sample    compares the numbers of keys, and 200 keys of each database
  --pause SECONDS     how long writes may be held at most, up to 3600; 10 if not given
  --begin SECONDS     how long the new server may take to begin to follow, or to follow again; 60 if
                      not given
  --from-address HOST:PORT   where the new server finds the old one, if not as in the URL
  --to-address HOST:PORT     where the old server finds the new one, if not as in the URL
  --cacert FILE       the authorities that are believed where a URL is rediss://; --cert FILE and
                      --key FILE are this client's certificate; --sni NAME is the name that the
                      servers' certificates are for, if not the host's; --insecure believes any
                      server

The exit code is 0 if the data has moved (or, with --check, could move), 1 after a failure, after
which the new server does not lead, 2 if an option is wrong, 3 if something stands in the way, and 4
if a last step is missing: the new server leads, or may lead, or the old one holds its writes. The
same command, given again, takes the step. Where it does not ask, it ends a pause of the old server
that it has not begun only with --unpause.
";

/// What becomes of the old server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    Replica,
    Paused,
}

/// What is compared before the promotion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compared {
    All,
    Sample,
}

/// See the module's text.
pub(crate) struct Options {
    pub(crate) from: Address,
    pub(crate) to: Address,
    /// Host and port of the old server, as the new one sees it, and the other way round.
    pub(crate) seen_from: (String, u16),
    pub(crate) seen_to: (String, u16),
    pub(crate) check_only: bool,
    pub(crate) yes: bool,
    /// The name of the data at the new server that may be lost.
    pub(crate) replace: Option<String>,
    /// No other server leads in place of an old one that holds its writes.
    pub(crate) unpause: bool,
    pub(crate) after: After,
    pub(crate) compared: Compared,
    pub(crate) pause: Duration,
    /// How long the new server may take to begin.
    pub(crate) begin: Duration,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Options, String> {
        let (mut from, mut to) = (None, Address::default());
        let (mut seen_from, mut seen_to) = (None, None);
        let (mut check_only, mut yes, mut replace) = (false, false, None);
        let mut unpause = false;
        let mut compared = Compared::All;
        let (mut after, mut pause) = (After::Replica, Duration::from_secs(10));
        let mut begin = Duration::from_secs(60);
        let (mut from_password, mut to_password) = (None, None);
        let mut encryption = Encryption::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = name_of_option(word);
            let mut value = || words.next().ok_or_else(|| format!("{name}: what?"));
            match word.as_str() {
                "--check" => check_only = true,
                "--yes" => yes = true,
                "--unpause" => unpause = true,
                "--replace" => replace = Some(name_of_data(words.next())?),
                option if encryption.take_option(option, &mut value)? => {}
                _ => {
                    let value = value()?;
                    match word.as_str() {
                        "--from" => from = Some(redis_address(value)?),
                        "--to" => to = redis_address(value)?,
                        "--from-password-file" => from_password = Some(password(word, value)?),
                        "--to-password-file" => to_password = Some(password(word, value)?),
                        "--from-address" => seen_from = Some(place(value)?),
                        "--to-address" => seen_to = Some(place(value)?),
                        "--after" if value == "replica" => after = After::Replica,
                        "--after" if value == "paused" => after = After::Paused,
                        "--compare" if value == "all" => compared = Compared::All,
                        "--compare" if value == "sample" => compared = Compared::Sample,
                        "--pause" => {
                            pause = seconds(word, value)?;
                            if pause > LONG_PAUSE {
                                return Err("--pause takes 3600 seconds at most".to_owned());
                            }
                        }
                        "--begin" => begin = seconds(word, value)?,
                        _ => {
                            return Err(format!(
                                "there is no option {name}, or not with this value"
                            ));
                        }
                    }
                }
            }
        }
        let mut from: Address = from.ok_or("--from is missing")?;
        from.password = from_password.or(from.password);
        to.password = to_password.or(to.password);
        if [&from, &to].iter().any(|end| end.database != 0) {
            return Err("a move takes all databases: a URL names none".to_owned());
        }
        let ends = [&mut from.encryption, &mut to.encryption];
        if encryption != Encryption::default() && ends.iter().all(|end| end.is_none()) {
            return Err("certificates are for URLs with rediss://".to_owned());
        }
        ends.into_iter().flatten().for_each(|end| end.clone_from(&encryption));
        let own = |address: &Address| (address.host.clone(), address.port);
        if own(&from) == own(&to) {
            return Err("both are the same server".to_owned());
        }
        let seen_from = seen_from.unwrap_or_else(|| own(&from));
        let seen_to = seen_to.unwrap_or_else(|| own(&to));
        let own = Options {
            from,
            to,
            seen_from,
            seen_to,
            check_only,
            yes,
            replace,
            unpause,
            after,
            compared,
            pause,
            begin,
        };
        Ok(own)
    }
}

fn name_of_data(word: Option<&String>) -> Result<String, String> {
    let is_name = |word: &&String| {
        word.len() == LENGTH_OF_NAME && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let name = word.filter(is_name).ok_or("--replace takes the name that the check says")?;
    Ok(name.clone())
}

fn seconds(option: &str, value: &str) -> Result<Duration, String> {
    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| format!("{option} takes whole seconds"))
}

/// Reads a password. Who gives it instead of the file finds it in no error.
fn password(option: &str, file: &str) -> Result<String, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{option}: the file cannot be read: {error}"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn place(text: &str) -> Result<(String, u16), String> {
    let wrong = || "--from-address and --to-address take HOST:PORT".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), port.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_understood() {
        let line = "--from redis://ann:pw@old:7000 --after paused --pause 3 --to-address [::1]:9";
        let options = parse(line).expect("it is right");
        assert_eq!((&*options.from.host, options.from.port), ("old", 7000));
        assert_eq!(options.seen_from, ("old".to_owned(), 7000));
        assert_eq!(options.seen_to, ("::1".to_owned(), 9));
        assert_eq!((options.after, options.pause.as_secs()), (After::Paused, 3));
        assert_eq!(options.compared, Compared::All);
        let some = parse("--from redis://h:1 --compare sample").map(|options| options.compared);
        assert_eq!(some, Ok(Compared::Sample));
        assert!(!options.yes && !options.check_only && options.replace.is_none());
        let options = parse("--from rediss://h --cacert ca.pem").expect("it is right");
        let encryption = options.from.encryption.expect("it is encrypted");
        assert_eq!(encryption.authority.as_deref(), Some("ca.pem"));
        assert_eq!(options.to.encryption, None);
        for wrong in [
            "--to redis://h",
            "--from http://h",
            "--from",
            "--from redis://127.0.0.1:6379",
            "--from redis://h --after gone",
            "--from redis://h --pause 0",
            "--from redis://h --pause 3601",
            "--from redis://h --compare nothing",
            "--from redis://h --to-address h",
            "--from redis://h --other",
            "--from redis://h --replace",
            "--from redis://h --replace --yes",
            "--from redis://h --cacert ca.pem",
            "--from redis://h/3",
            "--from redis://h --to redis://i/1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--from redis://h --unpause").expect("it is right").unpause);
    }

    #[test]
    fn no_error_repeats_what_may_be_a_secret() {
        for wrong in [
            "--from=redis://:secret@h",
            "--to-password=secret",
            "secret",
            "--from redis://h --to-address redis://:secret@h",
            "--from redis://h --pause secret",
            "--from redis://:a/secret@h",
            "--from redis://h --to-password-file secret",
        ] {
            let problem = parse(wrong).map(drop).expect_err(wrong);
            assert!(!problem.contains("secret"), "{problem}");
        }
    }
}
