//! A connection with what redis-cli remembers of it: the database, a transaction, subscriptions.

use std::io;

use lab::load::Address;
use resp::client::Value;

use crate::connection::{Connection, Words};
use crate::format::{self, Form};
use crate::interrupt;
use crate::options::Options;
use crate::print::{complain, output, reason, say};

/// Something has failed, and the user has been told.
#[derive(Debug)]
pub(crate) struct Failed;

/// Why no reply was read.
enum Trouble {
    /// The connection is lost.
    Lost(io::Error),
    /// Ctrl-C was pressed.
    Interrupted,
    /// The command has failed, and the exit code is to say so. The user has been told.
    CommandFailed,
}

/// Where a cluster sends a command.
struct Redirection {
    asks: bool,
}

/// See the module's text.
pub(crate) struct Session {
    pub(crate) options: Options,
    connection: Option<Connection>,
    /// Commands are typed, or come from standard input.
    pub(crate) is_interactive: bool,
    /// The database of the connection.
    pub(crate) database: u32,
    /// The same when the transaction began.
    database_before: u32,
    pub(crate) in_transaction: bool,
    pub(crate) is_subscribed: bool,
    resp3: bool,
    /// The address is that of a node of the cluster, and not the one that was given.
    is_redirected: bool,
}

impl Session {
    /// A session without a connection.
    pub(crate) fn new(options: Options) -> Session {
        Session {
            options,
            connection: None,
            is_interactive: false,
            database: 0,
            database_before: 0,
            in_transaction: false,
            is_subscribed: false,
            resp3: false,
            is_redirected: false,
        }
    }

    /// What stands before the line that is typed.
    pub(crate) fn prompt(&self) -> String {
        if self.connection.is_none() {
            return "not connected> ".to_owned();
        }
        let mut prompt = self.name();
        if self.options.address.socket.is_some() && !self.is_redirected {
            prompt.insert_str(0, "redis ");
        }
        if self.database != 0 {
            prompt.push_str(&format!("[{}]", self.database));
        }
        if self.in_transaction {
            prompt.push_str("(TX)");
        }
        if self.is_subscribed {
            prompt.push_str("(subscribed mode)");
        }
        prompt + "> "
    }

    /// The server's address for people.
    fn name(&self) -> String {
        let Address { host, port, socket, .. } = &self.options.address;
        match socket {
            Some(path) if !self.is_redirected => path.clone(),
            _ if host.contains(':') => format!("[{host}]:{port}"),
            _ => format!("{host}:{port}"),
        }
    }

    /// The connection, if there is one.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// Opens the connection anew and enters. A server that refuses the password, the database or
    /// the protocol is told of, but the connection stays.
    pub(crate) fn connect(&mut self) -> Result<&mut Connection, Failed> {
        self.connection = None;
        self.database = 0;
        self.in_transaction = false;
        self.is_subscribed = false;
        self.resp3 = false;
        let Options { timeout, preference, .. } = self.options;
        let mut address = self.options.address.clone();
        if self.is_redirected {
            address.socket = None;
        }
        match Connection::open(&address, timeout, preference) {
            Ok(mut connection) => {
                if self.options.verbose {
                    complain(&format!("connected to {}", self.name()));
                }
                let entered = self.enter(&mut connection);
                if let Err(error) = entered {
                    complain(&format!("Error: {}", reason(&error)));
                    return Err(Failed);
                }
                Ok(self.connection.insert(connection))
            }
            Err(error) => {
                let (name, reason) = (self.name(), reason(&error));
                complain(&format!("Could not connect to Redis at {name}: {reason}"));
                Err(Failed)
            }
        }
    }

    /// Sends the password, the database and the protocol.
    fn enter(&mut self, connection: &mut Connection) -> io::Result<()> {
        let Address { user, password, database, .. } = self.options.address.clone();
        if let Some(password) = &password {
            let reply = match &user {
                Some(user) => connection.call(&["AUTH", user, password])?,
                None => connection.call(&["AUTH", password])?,
            };
            if let Value::Error(text) = reply {
                complain(&format!("AUTH failed: {}", String::from_utf8_lossy(&text)));
                return Ok(());
            }
        }
        if database != 0 {
            match connection.call(&["SELECT", &database.to_string()])? {
                Value::Error(text) => {
                    let text = String::from_utf8_lossy(&text);
                    complain(&format!("SELECT {database} failed: {text}"));
                    return Ok(());
                }
                _ => self.database = database,
            }
        }
        if let Some(protocol @ 3..) = self.options.protocol {
            match connection.call(&["HELLO", &protocol.to_string()])? {
                Value::Error(_) if self.options.protocol_is_implied => {}
                Value::Error(text) => {
                    let text = String::from_utf8_lossy(&text);
                    complain(&format!("HELLO {protocol} failed: {text}"));
                }
                _ => self.resp3 = true,
            }
        }
        Ok(())
    }

    /// The connection, opened if there is none.
    pub(crate) fn connected(&mut self) -> Result<&mut Connection, Failed> {
        // A server that was started again since has closed this end; nothing has been sent to it.
        let is_open = self.connection.as_mut().is_some_and(|connection| !connection.is_closed());
        if !is_open {
            return self.connect();
        }
        self.connection.as_mut().ok_or(Failed)
    }

    /// Asks for a reply to a command that the mode itself needs; errors of the server, too, end it.
    pub(crate) fn ask<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Result<Value, Failed> {
        let reply = self.connected()?.call(words);
        match reply {
            Ok(Value::Error(text)) => {
                let name = String::from_utf8_lossy(words[0].as_ref()).into_owned();
                complain(&format!("{name}: {}", String::from_utf8_lossy(&text)));
                Err(Failed)
            }
            Ok(value) => Ok(value),
            Err(error) => Err(self.lose(&error)),
        }
    }

    /// Tells of a connection that is lost.
    pub(crate) fn lose(&mut self, error: &io::Error) -> Failed {
        self.connection = None;
        if error.kind() != io::ErrorKind::Interrupted {
            complain(&format!("Error: {}", reason(error)));
        }
        Failed
    }

    /// Runs a command this many times and prints its replies; goes where a cluster sends it.
    pub(crate) fn issue(&mut self, words: &[Vec<u8>], repeat: i64) -> Result<(), Failed> {
        let mut left = repeat;
        while left != 0 {
            self.run_where_it_belongs(words)?;
            if interrupt::is_asked() && !self.is_interactive {
                return Err(Failed);
            }
            left -= 1;
            if left != 0 && !self.options.interval.is_zero() {
                std::thread::sleep(self.options.interval);
            }
        }
        Ok(())
    }

    fn run_where_it_belongs(&mut self, words: &[Vec<u8>]) -> Result<(), Failed> {
        loop {
            let connection = self.connected()?;
            let ended = connection.send(words).map_err(Trouble::Lost);
            let ended = ended.and_then(|()| self.follow(words));
            match ended {
                Ok(None) => return Ok(()),
                Ok(Some(Redirection { asks })) => {
                    self.connect()?;
                    if asks {
                        self.ask(&["ASKING"])?;
                    }
                }
                Err(Trouble::CommandFailed) => return Err(Failed),
                Err(Trouble::Interrupted) => {
                    interrupt::take();
                    // What the server does now is not known any more: this connection is of no use.
                    self.connect()?;
                    return Err(Failed);
                }
                Err(Trouble::Lost(_)) if is_shutdown(words) => {
                    self.connection = None;
                    return Ok(());
                }
                Err(Trouble::Lost(error)) => return Err(self.lose(&error)),
            }
        }
    }

    /// Reads what a command that was sent is answered with.
    fn follow(&mut self, words: &[Vec<u8>]) -> Result<Option<Redirection>, Trouble> {
        let name = words[0].to_ascii_lowercase();
        let verbatim = is_page(words);
        if name == b"monitor" {
            let mut reply = self.read_shown(verbatim, false)?.0;
            while !reply.is_error() {
                reply = self.read_shown(verbatim, false)?.0;
            }
            return Ok(None);
        }
        let subscribes = matches!(&name[..], b"subscribe" | b"psubscribe" | b"ssubscribe");
        let changes_subscriptions =
            subscribes || matches!(&name[..], b"unsubscribe" | b"punsubscribe" | b"sunsubscribe");
        let mut confirmations =
            if changes_subscriptions { words.len().saturating_sub(1).max(1) } else { 0 };
        loop {
            let keeps_pushes = self.is_subscribed || confirmations > 0;
            let (reply, redirection) = self.read_shown(verbatim, keeps_pushes)?;
            if redirection.is_some() {
                return Ok(redirection);
            }
            if keeps_pushes {
                if let Some(kind) = self.subscription_kind(&reply) {
                    if confirmations == 0 || !kind.eq_ignore_ascii_case(&name) {
                        continue;
                    }
                    self.is_subscribed |= subscribes;
                    confirmations -= 1;
                    if confirmations > 0 {
                        continue;
                    }
                    let is_last = matches!(elements(&reply).last(), Some(Value::Integer(0)));
                    if !subscribes && is_last {
                        self.is_subscribed = false;
                    }
                } else if matches!(reply, Value::Push(_)) {
                    continue;
                }
            }
            self.remember(&name, words, &reply);
            return Ok(None);
        }
    }

    /// The kind of a message of a subscription, such as `message` or `unsubscribe`.
    fn subscription_kind<'v>(&self, reply: &'v Value) -> Option<&'v [u8]> {
        let list = match reply {
            Value::Push(list) => list,
            Value::Array(list) if !self.resp3 => list,
            _ => return None,
        };
        let Some(Value::Bulk(kind)) = list.first().filter(|_| list.len() >= 3) else { return None };
        (kind.ends_with(b"message") || kind.ends_with(b"subscribe")).then_some(kind)
    }

    /// What a command that has been answered changes of the connection.
    fn remember(&mut self, name: &[u8], words: &[Vec<u8>], reply: &Value) {
        let has_failed = reply.is_error();
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        match (name, words.len()) {
            (b"select", 2) if !has_failed => {
                self.database = text(&words[1]).parse().unwrap_or(0);
                if !self.in_transaction {
                    self.options.address.database = self.database;
                }
            }
            (b"auth", 2 | 3) if !has_failed => {
                // A new connection is to be the same user's.
                self.options.address.user = (words.len() == 3).then(|| text(&words[1]));
                self.options.address.password = words.last().map(|word| text(word));
            }
            (b"multi", 1) if !has_failed => {
                self.in_transaction = true;
                self.database_before = self.database;
            }
            (b"exec", 1) if self.in_transaction => {
                self.in_transaction = false;
                if has_failed || matches!(reply, Value::Null | Value::NullArray) {
                    self.database = self.database_before;
                }
                self.options.address.database = self.database;
            }
            (b"discard", 1) if !has_failed => {
                self.in_transaction = false;
                self.database = self.database_before;
            }
            (b"reset", 1) if !has_failed => {
                self.in_transaction = false;
                self.is_subscribed = false;
                self.resp3 = false;
                self.database = 0;
                self.options.address.database = 0;
            }
            (b"hello", _) => match reply {
                Value::Map(_) => self.resp3 = true,
                Value::Array(_) => self.resp3 = false,
                _ => {}
            },
            _ => {}
        }
    }

    /// Reads a reply and prints it. Messages that answer no command are printed if that is wanted;
    /// they are returned if they are `kept`.
    fn read_shown(
        &mut self,
        verbatim: bool,
        keeps_pushes: bool,
    ) -> Result<(Value, Option<Redirection>), Trouble> {
        let reply = loop {
            let Some(connection) = &mut self.connection else {
                return Err(Trouble::Lost(io::ErrorKind::NotConnected.into()));
            };
            match connection.receive() {
                Ok(push @ Value::Push(_)) if !keeps_pushes => self.show_push(&push),
                Ok(reply) => break reply,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(Trouble::Interrupted);
                }
                Err(error) => return Err(Trouble::Lost(error)),
            }
        };
        if let Value::Error(text) = &reply {
            if let Some(redirection) = self.redirection(text) {
                return Ok((reply, Some(redirection)));
            }
            if self.options.fails_with_command && !self.is_interactive {
                complain(&String::from_utf8_lossy(text));
                return Err(Trouble::CommandFailed);
            }
        }
        self.show(&reply, verbatim);
        Ok((reply, None))
    }

    /// Prints a reply.
    pub(crate) fn show(&self, reply: &Value, verbatim: bool) {
        let Options { form, delimiters, colors, .. } = &self.options;
        output(&format::reply(reply, *form, verbatim, delimiters, format::Colors(*colors)));
    }

    fn show_push(&self, push: &Value) {
        if !self.options.shows_pushes {
            return;
        }
        let keys = format::invalidation(push).filter(|_| self.options.form == Form::Standard);
        match keys {
            Some(line) => output(&line),
            None => self.show(push, false),
        }
    }

    /// Goes by what a node of a cluster says: `MOVED 3999 127.0.0.1:6381`, or `ASK`.
    fn redirection(&mut self, error: &[u8]) -> Option<Redirection> {
        if !self.options.cluster {
            return None;
        }
        let text = String::from_utf8_lossy(error).into_owned();
        let mut words = text.split(' ');
        let asks = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let (slot, place) = (words.next()?, words.next()?);
        let (host, port) = place.rsplit_once(':')?;
        let address = &mut self.options.address;
        address.port = port.parse().ok()?;
        // A node that does not know its own name leaves it out.
        if !host.is_empty() {
            host.clone_into(&mut address.host);
        }
        self.is_redirected = true;
        let line = format!("-> Redirected to slot [{slot}] located at {}", self.name());
        if self.is_interactive {
            say(&line);
        } else if self.options.verbose {
            complain(&line);
        }
        Some(Redirection { asks })
    }

    /// Prints the next message of a subscription. Returns whether the connection is still there.
    pub(crate) fn show_message(&mut self) -> Result<(), Failed> {
        match self.read_shown(false, true) {
            Ok(_) => Ok(()),
            Err(Trouble::Lost(error)) => Err(self.lose(&error)),
            Err(Trouble::Interrupted | Trouble::CommandFailed) => Err(Failed),
        }
    }

    /// Prints the messages that have arrived in full.
    pub(crate) fn show_received(&mut self) -> Result<(), Failed> {
        while let Some(connection) = &mut self.connection {
            match connection.received() {
                Ok(Some(reply)) => self.show(&reply, false),
                Ok(None) => break,
                Err(error) => return Err(self.lose(&error)),
            }
        }
        Ok(())
    }

    /// Connects to another server.
    pub(crate) fn connect_to(&mut self, host: &str, port: u16) -> Result<(), Failed> {
        host.clone_into(&mut self.options.address.host);
        self.options.address.port = port;
        self.options.address.socket = None;
        self.is_redirected = false;
        self.connect().map(drop)
    }

    /// Asks for the documentation of all commands, if the server has it.
    pub(crate) fn documentation(&mut self) -> Option<Value> {
        let reply = self.connection.as_mut()?.call(&["COMMAND", "DOCS"]).ok()?;
        (!reply.is_error()).then_some(reply)
    }
}

fn elements(reply: &Value) -> &[Value] {
    match reply {
        Value::Push(list) | Value::Array(list) => list,
        _ => &[],
    }
}

fn is_shutdown(words: &[Vec<u8>]) -> bool {
    words[0].eq_ignore_ascii_case(b"shutdown")
}

/// Whether the reply to a command is a page to be read, which is printed as it is.
fn is_page(words: &[Vec<u8>]) -> bool {
    let lower: Words = words.iter().take(2).map(|word| word.to_ascii_lowercase()).collect();
    let count = words.len();
    match (&lower[0][..], lower.get(1).map(Vec::as_slice)) {
        (b"info" | b"lolwut", _) => true,
        (b"debug", Some(b"htstats" | b"htstats-key" | b"client-eviction")) => true,
        (b"memory", Some(b"malloc-stats" | b"doctor")) => true,
        (b"cluster", Some(b"nodes" | b"info")) => count == 2,
        (b"client", Some(b"list" | b"info")) => true,
        (b"latency", Some(b"graph")) => count == 3,
        (b"latency", Some(b"doctor")) => count == 2,
        (b"proxy", Some(b"info")) => true,
        _ => false,
    }
}
