//! What one selector of a user allows: commands, keys, channels and databases, and how these are
//! written.

use hashbrown::{HashMap, HashSet};
use resp::args::Arguments;

use super::catalog::{Catalog, category};
use super::error::RuleError;
use super::ordered::Ordered;
use super::patterns::{Access, Patterns, READ, WRITE};
use crate::command::RowId;

/// A set of commands.
#[derive(Clone, Default)]
pub(crate) struct Commands(Vec<u64>);

impl Commands {
    #[inline]
    pub(crate) fn has(&self, id: RowId) -> bool {
        self.0.get(id / 64).is_some_and(|word| word >> (id % 64) & 1 != 0)
    }

    fn set(&mut self, id: RowId, is_in: bool) {
        if self.0.len() <= id / 64 {
            self.0.resize(id / 64 + 1, 0);
        }
        let bit = 1 << (id % 64);
        match is_in {
            true => self.0[id / 64] |= bit,
            false => self.0[id / 64] &= !bit,
        }
    }

    fn set_all(&mut self, count: usize, are_in: bool) {
        (0..count).for_each(|id| self.set(id, are_in));
    }

    /// Whether all of so many commands are in it.
    pub(crate) fn is_full(&self, count: usize) -> bool {
        (0..count).all(|id| self.has(id))
    }
}

/// See the module's text.
#[derive(Clone, Default)]
pub(crate) struct Rights {
    /// Commands that a later version may have are allowed too.
    future_commands: bool,
    pub(crate) commands: Commands,
    /// Commands that are allowed with these first arguments, in lower case.
    first_arguments: HashMap<RowId, HashSet<Vec<u8>>>,
    /// The rules that have made `commands`, as they are shown, and whether each allows.
    command_rules: Ordered<Vec<u8>, bool>,
    pub(crate) all_keys: bool,
    keys: Patterns,
    pub(crate) all_channels: bool,
    channels: Patterns,
    /// The only databases that are allowed, if not all are.
    pub(crate) databases: Option<Vec<u64>>,
}

impl Rights {
    /// None, but for channels, if all of them are allowed to new users.
    pub(crate) fn none(all_channels: bool) -> Rights {
        Rights { all_channels, ..Rights::default() }
    }

    /// All of them.
    pub(crate) fn all(catalog: &Catalog) -> Rights {
        let mut rights = Rights { all_keys: true, all_channels: true, ..Rights::default() };
        rights.allow_all(catalog, true);
        rights
    }

    /// Whether it allows everything.
    pub(crate) fn is_all(&self, catalog: &Catalog) -> bool {
        self.all_keys
            && self.all_channels
            && self.databases.is_none()
            && self.commands.is_full(catalog.len())
    }

    /// Applies a rule about commands, keys, channels or databases.
    pub(crate) fn apply(&mut self, catalog: &Catalog, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || rule == b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            _ if is("resetkeys") => {
                self.all_keys = false;
                self.keys.clear();
            }
            _ if is("allchannels") || rule == b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            _ if is("resetchannels") => {
                self.all_channels = false;
                self.channels.clear();
            }
            _ if is("allcommands") || is("+@all") => self.allow_all(catalog, true),
            _ if is("nocommands") || is("-@all") => self.allow_all(catalog, false),
            _ if is("alldbs") => self.databases = None,
            _ if is("resetdbs") => self.databases = Some(Vec::new()),
            [b'~', pattern @ ..] => self.add_keys(READ | WRITE, pattern)?,
            [b'%', ..] if self.all_keys => return Err(RuleError::AllKeys),
            [b'%', rest @ ..] => {
                let (access, pattern) = parse_access(rest)?;
                self.add_keys(access, pattern)?;
            }
            [b'&', pattern @ ..] => self.add_channels(pattern)?,
            [sign @ (b'+' | b'-'), b'@', name @ ..] => {
                let category = category(name).ok_or(RuleError::UnknownCommand)?;
                let allows = *sign == b'+';
                for id in catalog.members(category, true) {
                    self.set_command(id, allows);
                }
                self.note_rule(allows, &rule[1..]);
            }
            [b'+', name @ ..] => self.allow(catalog, name)?,
            [b'-', name @ ..] => {
                let id = catalog.find(name).ok_or(RuleError::UnknownCommand)?;
                catalog.family(id).for_each(|id| self.set_command(id, false));
                self.note_rule(false, catalog.spec(id).full_name().as_bytes());
            }
            _ if rule.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"db=")) => {
                self.set_databases(&rule[3..])?;
            }
            _ => return Err(RuleError::Syntax),
        }
        if matches!(rule, [b'+' | b'-', ..]) || is("allcommands") || is("nocommands") {
            self.settle_internals(catalog);
        }
        Ok(())
    }

    /// Allows internal commands by those for which they stand: any of these, or none but where all
    /// commands are allowed.
    fn settle_internals(&mut self, catalog: &Catalog) {
        for (id, stands_for) in catalog.internals() {
            let allows = match stands_for {
                [] => self.future_commands,
                own => own.iter().any(|id| self.commands.has(*id)),
            };
            self.commands.set(id, allows);
        }
    }

    fn allow_all(&mut self, catalog: &Catalog, allows: bool) {
        self.commands.set_all(catalog.len(), allows);
        self.first_arguments.clear();
        self.command_rules.clear();
        self.future_commands = allows;
    }

    /// `+command`, `+command|subcommand` or `+command|first-argument`.
    fn allow(&mut self, catalog: &Catalog, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let id = catalog.find(name).ok_or(RuleError::UnknownCommand)?;
            catalog.family(id).for_each(|id| self.set_command(id, true));
            self.note_rule(true, name);
            return Ok(());
        };
        let (command, argument) = (&name[..bar], &name[bar + 1..]);
        let id = catalog.find(command).ok_or(RuleError::UnknownCommand)?;
        if catalog.spec(id).parent.is_some() {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        // No line of a file could show one with white space.
        if argument.is_empty() || has_spaces(argument) {
            return Err(RuleError::Syntax);
        }
        if catalog.has_subcommands(id) {
            let id = catalog.find(name).ok_or(RuleError::UnknownCommand)?;
            self.set_command(id, true);
        } else {
            self.first_arguments.entry(id).or_default().insert(argument.to_ascii_lowercase());
        }
        self.note_rule(true, name);
        Ok(())
    }

    fn set_command(&mut self, id: RowId, allows: bool) {
        self.commands.set(id, allows);
        self.first_arguments.remove(&id);
    }

    /// Shows a rule from now on, in place of those that it replaces.
    fn note_rule(&mut self, allows: bool, rule: &[u8]) {
        let rule = rule.to_ascii_lowercase();
        if !rule.contains(&b'|') {
            // No byte lies between these two.
            let [first, behind] = [b"|", b"}"].map(|next| [&*rule, next].concat());
            self.command_rules.remove_range(first..behind);
        }
        self.command_rules.put_last(rule, allows);
    }

    fn add_keys(&mut self, access: Access, text: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AllKeys);
        }
        if has_spaces(text) {
            return Err(RuleError::Syntax);
        }
        self.keys.add(text, access);
        Ok(())
    }

    fn add_channels(&mut self, text: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::AllChannels);
        }
        if has_spaces(text) {
            return Err(RuleError::Syntax);
        }
        self.channels.add(text, READ);
        Ok(())
    }

    /// `db=0,1`: these databases and no others.
    fn set_databases(&mut self, text: &[u8]) -> Result<(), RuleError> {
        let (mut databases, mut seen) = (Vec::new(), HashSet::new());
        for word in text.split(|byte| *byte == b',') {
            let digits = word.strip_prefix(b"-").unwrap_or(word);
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err(RuleError::Syntax);
            }
            let number = base::num::parse_i64(word).and_then(|number| i32::try_from(number).ok());
            let number = number.and_then(|number| u64::try_from(number).ok());
            let number = number.ok_or(RuleError::DatabaseRange)?;
            if seen.insert(number) {
                databases.push(number);
            }
        }
        self.databases = Some(databases);
        Ok(())
    }

    /// Whether a command may run, whatever its keys are.
    #[inline]
    pub(crate) fn allows_command(&self, id: RowId, argv: Arguments<'_>) -> bool {
        self.commands.has(id)
            || (!self.first_arguments.is_empty()
                && self.first_arguments.get(&id).is_some_and(|own| {
                    argv.get(1).is_some_and(|argument| own.contains(&argument.to_ascii_lowercase()))
                }))
    }

    /// Whether all this may be done with a key.
    #[inline]
    pub(crate) fn allows_key(&self, key: &[u8], access: Access) -> bool {
        self.all_keys || self.keys.allow(key, access)
    }

    /// [`Patterns::allowed_by`], of keys.
    #[inline]
    pub(crate) fn allows_keys_like(&self, key: &[u8], access: Access) -> Option<usize> {
        if self.all_keys { Some(0) } else { self.keys.allowed_by(key, access) }
    }

    /// Whether all this may be done with every key that begins with this.
    pub(crate) fn allows_keys_below(&self, prefix: &[u8], access: Access) -> bool {
        self.all_keys || self.keys.allow_below(prefix, access)
    }

    /// Whether a channel may be used; for a pattern of channels, whether it is one of the user's.
    #[inline]
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || match is_pattern {
                true => self.channels.has(channel),
                false => self.channels.allow(channel, READ),
            }
    }

    /// The patterns of channels.
    pub(crate) fn channel_patterns(&self) -> impl Iterator<Item = &[u8]> {
        self.channels.iter().map(|own| &*own.text)
    }

    /// Whether a database may be used.
    #[inline]
    pub(crate) fn allows_database(&self, database: u64) -> bool {
        self.databases.as_ref().is_none_or(|own| own.contains(&database))
    }

    /// The rules of commands as ACL LIST and ACL GETUSER show them.
    pub(crate) fn shown_commands(&self) -> Vec<Vec<u8>> {
        let first = if self.future_commands { b"+@all" } else { b"-@all" };
        let others = self.command_rules.iter().map(|(rule, allows)| {
            let sign: &[u8] = if *allows { b"+" } else { b"-" };
            [sign, rule].concat()
        });
        std::iter::once(first.to_vec()).chain(others).collect()
    }

    /// The rules of keys as ACL LIST and ACL GETUSER show them.
    pub(crate) fn shown_keys(&self) -> Vec<Vec<u8>> {
        if self.all_keys {
            return vec![b"~*".to_vec()];
        }
        let count = self.keys.iter().count();
        let rules = self.keys.iter().map(|own| {
            let sign: &[u8] = match own.access {
                READ => b"%R~",
                WRITE => b"%W~",
                // Written otherwise, it would leave no room for the other patterns.
                _ if *own.text == *b"*" && count > 1 => b"%RW~",
                _ => b"~",
            };
            [sign, &own.text].concat()
        });
        rules.collect()
    }

    /// The rules of channels as ACL GETUSER shows them.
    pub(crate) fn shown_channels(&self) -> Vec<Vec<u8>> {
        if self.all_channels {
            return vec![b"&*".to_vec()];
        }
        self.channels.iter().map(|own| [b"&", &*own.text].concat()).collect()
    }

    /// The rule of databases, if not all are allowed.
    pub(crate) fn shown_databases(&self) -> Option<Vec<u8>> {
        let databases = self.databases.as_ref()?;
        if databases.is_empty() {
            return Some(b"resetdbs".to_vec());
        }
        let numbers: Vec<_> = databases.iter().map(u64::to_string).collect();
        Some(format!("db={}", numbers.join(",")).into_bytes())
    }

    /// All rules, which make the same rights of those of a new user.
    pub(crate) fn shown(&self) -> Vec<Vec<u8>> {
        let mut rules = self.shown_keys();
        if !self.all_channels {
            rules.push(b"resetchannels".to_vec());
        }
        rules.extend(self.shown_channels());
        rules.extend(self.shown_databases());
        rules.extend(self.shown_commands());
        rules
    }

    /// The same as the rule that makes a selector of them. What would end it too early, or begin a
    /// quotation, is in quotation marks.
    pub(crate) fn shown_as_selector(&self) -> Vec<u8> {
        let ends =
            |rule: &[u8]| rule.ends_with(b")") || rule.iter().any(|byte| b"\"'".contains(byte));
        let rules = self.shown().into_iter();
        let rules = rules.map(|rule| if ends(&rule) { config::quote(&rule) } else { rule });
        [b"(", &*rules.collect::<Vec<_>>().join(&b' '), b")"].concat()
    }
}

/// Reads what may be done with keys: the letters R and W, each once, and a tilde. The tilde may be
/// absent where no pattern follows.
fn parse_access(rule: &[u8]) -> Result<(Access, &[u8]), RuleError> {
    let mut access = 0;
    let mut rest = rule;
    while let [letter, after @ ..] = rest {
        rest = after;
        let bit = match letter {
            b'r' | b'R' => READ,
            b'w' | b'W' => WRITE,
            b'~' => break,
            _ => return Err(RuleError::Syntax),
        };
        if access & bit != 0 {
            return Err(RuleError::Syntax);
        }
        access |= bit;
    }
    if access == 0 { Err(RuleError::Syntax) } else { Ok((access, rest)) }
}

/// Whether a text has white space or zero bytes, which no line of a file could show.
pub fn has_spaces(text: &[u8]) -> bool {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r' | 0);
    text.iter().any(is_space)
}
