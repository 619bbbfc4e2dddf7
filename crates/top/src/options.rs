//! What the user wants.

use std::time::Duration;

use lab::bench::{redis_address, unknown_option};
use lab::load::{Address, Encryption};

use crate::view::View;

/// What `dunlin top --help` prints.
pub const USAGE: &str = "\
Shows what a server does just now: Dunlin, Redis or Valkey.

Usage: dunlin top [OPTIONS]

  -h HOST            the server's name or address (127.0.0.1)
  -p PORT            its port (6379)
  -u URI             redis://user:password@host:port, or rediss://
  -a PASSWORD        the password, or --pass; better in the environment as REDISCLI_AUTH
  --user NAME        the user of the password
  --tls              encrypts the connections; --cacert FILE, --cert FILE, --key FILE, --sni NAME
                     and --insecure are those of dunlin cli
  --http URL         asks over HTTP alone, as http://host:port or https://host:port
  --no-http          does not ask over HTTP what the Redis protocol does not have
  -i SECONDS         the time between two looks (1)
  --view NAME        begins with: commands, latency, clients, memory, keys, replication
  --once             prints one look as text, and ends
  --json             prints one look as JSON, and ends
  --count N          with --once or --json: this many looks (1)
  --no-color         no colours; nor with NO_COLOR in the environment

Keys: 1 to 6 or Tab change the view, s the order, r turns it round, arrows and PgUp/PgDn scroll,
+ and - change the time between looks, Space pauses, ? explains, q ends.

The time of a command in the queue, in execution, in the commit and in the flush, the memory by prefix,
and hot keys come over HTTP, from the port that CONFIG GET http-port names. Redis and Valkey do not have
them: their views have the rest.

Exit code: 0; 1 if the server cannot be asked; 2 for a wrong command line.
";

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) address: Address,
    /// The server is asked over HTTP alone.
    pub(crate) http: Option<Address>,
    pub(crate) finds_http: bool,
    pub(crate) interval: Duration,
    pub(crate) view: View,
    pub(crate) once: bool,
    pub(crate) json: bool,
    pub(crate) count: u64,
    pub(crate) colors: bool,
}

/// Parses a command line; `None` if only help is wanted.
pub(crate) fn parse(arguments: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options {
        address: Address::default(),
        http: None,
        finds_http: true,
        interval: Duration::from_secs(1),
        view: View::Commands,
        once: false,
        json: false,
        count: 1,
        colors: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let mut encryption = Encryption::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_last = words.len() == 0;
        let mut value = || words.next().ok_or_else(|| format!("{word}: what?"));
        let address = &mut options.address;
        match word.as_str() {
            "--help" => return Ok(None),
            "-h" if is_last => return Ok(None),
            "-h" => address.host.clone_from(value()?),
            "-p" => address.port = number(word, value()?)?,
            "-a" | "--pass" => address.password = Some(value()?.clone()),
            "--user" => address.user = Some(value()?.clone()),
            "-u" => *address = redis_address(value()?)?,
            "--tls" => drop(address.encryption.get_or_insert_default()),
            "--http" => options.http = Some(http_address(value()?)?),
            "--no-http" => options.finds_http = false,
            "-i" | "--interval" => {
                let seconds: f64 = number(word, value()?)?;
                let interval = Duration::try_from_secs_f64(seconds).ok();
                let interval = interval.filter(|interval| *interval >= SHORTEST);
                options.interval = interval.ok_or("-i: at least 0.1 seconds")?;
            }
            "--view" => {
                let name = value()?;
                let view = View::named(name);
                options.view = view.ok_or_else(|| format!("there is no view '{name}'"))?;
            }
            "--once" => options.once = true,
            "--json" => options.json = true,
            "--count" => options.count = number(word, value()?)?,
            "--no-color" => options.colors = false,
            option if encryption.take_option(option, &mut value)? => {}
            unknown => return Err(unknown_option(unknown)),
        }
    }
    settle(&mut options, encryption)?;
    Ok(Some(options))
}

/// The shortest time between two looks.
pub(crate) const SHORTEST: Duration = Duration::from_millis(100);

fn settle(options: &mut Options, encryption: Encryption) -> Result<(), String> {
    let address = &mut options.address;
    if address.password.is_none() {
        address.password = std::env::var("REDISCLI_AUTH").ok();
    }
    let is_encrypted = |address: &Address| address.encryption.is_some();
    let is_any = is_encrypted(address) || options.http.as_ref().is_some_and(is_encrypted);
    if !is_any && encryption != Encryption::default() {
        return Err("certificates need --tls, rediss:// or https://".to_owned());
    }
    if let Some(http) = &mut options.http {
        http.user.clone_from(&address.user);
        http.password.clone_from(&address.password);
        if let Some(own) = &mut http.encryption {
            own.clone_from(&encryption);
        }
    }
    if let Some(own) = &mut address.encryption {
        *own = encryption;
    }
    if options.count == 0 || (options.count > 1 && !options.once && !options.json) {
        return Err("--count needs --once or --json, and at least one look".to_owned());
    }
    Ok(())
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: '{text}' is no number for it"))
}

/// Understands `http://host:port`, and the same with `https`.
fn http_address(url: &str) -> Result<Address, String> {
    let plain = url.strip_prefix("http://").map(|rest| format!("redis://{rest}"));
    let encrypted = || url.strip_prefix("https://").map(|rest| format!("rediss://{rest}"));
    let same = plain.or_else(encrypted);
    let same = same.ok_or_else(|| format!("'{url}' begins neither with http:// nor https://"))?;
    let same = same.trim_end_matches('/');
    let place = same.rsplit_once("//").map_or("", |(_, place)| place);
    if place.contains(['/', '@', '?']) {
        return Err(format!("'{url}' is more than a host and a port"));
    }
    let mut address = redis_address(same)?;
    if !place.rsplit_once(']').map_or(place, |(_, port)| port).contains(':') {
        address.port = HTTP_PORT;
    }
    Ok(address)
}

/// The port of HTTP if nobody names another.
const HTTP_PORT: u16 = 8379;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|options| options.expect("it is no question for help"))
    }

    #[test]
    fn options_are_understood() {
        let options = parsed("-h there -p 7 -i 0.5 --view memory --json --count 3").unwrap();
        assert_eq!((&*options.address.host, options.address.port), ("there", 7));
        assert_eq!((options.interval, options.view), (Duration::from_millis(500), View::Memory));
        assert_eq!((options.json, options.once, options.count), (true, false, 3));
        let http = parsed("--http https://h:1 --insecure").unwrap().http.unwrap();
        assert!(http.encryption.unwrap().insecure);
        assert_eq!(parsed("--http http://h").unwrap().http.unwrap().port, HTTP_PORT);
        for wrong in [
            "--view x",
            "-i 0",
            "-p x",
            "--http h:1",
            "--http http://h/p",
            "--count 2",
            "--cacert f",
            "word",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        let said = parsed("--password=secret").unwrap_err();
        assert_eq!(said, "there is no option --password");
    }
}
