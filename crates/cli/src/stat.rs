//! A line of figures again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use lab::targets::connection::info_fields;
use resp::client::Value;

use crate::bytes::human;
use crate::interrupt;
use crate::print::{complain, say};
use crate::session::{Failed, Session};

/// The lines between two headers.
const LINES: u64 = 20;
/// How often a line comes if nobody has said it.
const USUAL: Duration = Duration::from_secs(1);

/// Prints lines until Ctrl-C. A server that is away is waited for.
pub(crate) fn run(session: &mut Session) -> Result<(), Failed> {
    let interval = Some(session.options.interval).filter(|one| !one.is_zero()).unwrap_or(USUAL);
    session.connected()?;
    let (mut lines, mut requests) = (0, None);
    while !interrupt::is_asked() {
        let Some(info) = info(session)? else {
            pause(interval);
            continue;
        };
        if lines % LINES == 0 {
            say("------- data ------ --------------------- load -------------------- - child -");
            say("keys       mem      clients blocked requests            connections          ");
        }
        lines += 1;
        let (line, all) = line(&info, requests);
        requests = Some(all);
        say(&line);
        pause(interval);
    }
    Ok(())
}

fn pause(interval: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = interval;
    while !left.is_zero() && !interrupt::is_asked() {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
}

/// The fields of INFO; none while the server is away.
fn info(session: &mut Session) -> Result<Option<BTreeMap<String, String>>, Failed> {
    let Ok(connection) = session.connected() else { return Ok(None) };
    match connection.call(&["INFO"]) {
        Ok(Value::Error(text)) => {
            complain(&format!("ERROR: {}", String::from_utf8_lossy(&text)));
            Err(Failed)
        }
        Ok(page) => {
            let page = String::from_utf8_lossy(page.as_bytes().unwrap_or_default()).into_owned();
            let own = |(name, value): (&str, &str)| (name.to_owned(), value.trim().to_owned());
            Ok(Some(info_fields(&page).map(own).collect()))
        }
        Err(error) => {
            session.lose(&error);
            Ok(None)
        }
    }
}

fn line(info: &BTreeMap<String, String>, requests: Option<u64>) -> (String, u64) {
    let number = |name: &str| info.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let keys = |(name, value): (&String, &String)| {
        name.strip_prefix("db")?.parse::<u32>().ok()?;
        value.strip_prefix("keys=")?.split(',').next()?.parse::<u64>().ok()
    };
    let keys: u64 = info.iter().filter_map(keys).sum();
    let all = number("total_commands_processed");
    let new = all.saturating_sub(requests.unwrap_or(all));
    let child = match (number("rdb_bgsave_in_progress"), number("aof_rewrite_in_progress")) {
        (0, 0) => "",
        (_, 0) => "SAVE",
        (0, _) => "AOF",
        _ => "SAVE+AOF",
    };
    let line = format!(
        "{keys:<11}{:<8} {:<8}{:<8}{:<19} {:<12}{child}",
        human(number("used_memory")),
        number("connected_clients"),
        number("blocked_clients"),
        format!("{all} (+{new})"),
        number("total_connections_received"),
    );
    (line, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_redis_cli() {
        let fields = [
            ("db0", "keys=50,expires=1,avg_ttl=0"),
            ("db7", "keys=3"),
            ("used_memory", "1740636"),
            ("connected_clients", "1"),
            ("blocked_clients", "0"),
            ("total_commands_processed", "1010"),
            ("total_connections_received", "229"),
        ];
        let info = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let wanted = "53         1.66M    1       0       1010 (+0)           229         ";
        assert_eq!(line(&info, None), (wanted.to_owned(), 1010));
        assert!(line(&info, Some(1000)).0.contains("1010 (+10)"));
    }
}
