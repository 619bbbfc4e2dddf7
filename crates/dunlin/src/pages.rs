//! Texts that are made from the same tables as the program: help, the commented configuration,
//! pages of the manual, and the completion of command lines.

use config::{Directive, Effect};

use crate::usage::{COMMANDS, USAGE};
use crate::{certificates, check, container, health};

/// Columns of the configuration's comments.
const COLUMNS: usize = 90;

/// The page of this name.
pub(crate) fn page(name: &[u8]) -> Option<String> {
    let page = match name {
        b"configuration" => configuration(),
        b"dunlin.1" => manual(),
        b"dunlin.conf.5" => manual_of_configuration(),
        b"completion.bash" => completion_bash(),
        b"completion.zsh" => completion_zsh(),
        b"completion.fish" => completion_fish(),
        _ => return None,
    };
    Some(page)
}

/// The directives that do something.
fn directives() -> impl Iterator<Item = &'static Directive> {
    let all = config::directives().iter();
    all.filter(|own| !own.is_hidden() && own.effect() == Effect::Full)
}

/// A directive's default as a file has it.
fn default_of(directive: &Directive) -> String {
    match &directive.default_value()[..] {
        b"" => "\"\"".to_owned(),
        default => String::from_utf8_lossy(default).into_owned(),
    }
}

/// Text in lines of this many columns, each after `indent`.
fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let mut lines = String::new();
    let mut width = usize::MAX;
    for word in text.split_whitespace() {
        if width.saturating_add(word.len()) < columns {
            lines.push(' ');
            width += 1 + word.len();
        } else {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len() + word.len();
        }
        lines.push_str(word);
    }
    lines.push('\n');
    lines
}

/// What `serve --help` prints: the options that do something, with their defaults.
pub(crate) fn options() -> String {
    let mut text = format!("{USAGE}\nOptions of a server, with their defaults:\n");
    for directive in directives() {
        let (name, default) = (directive.name(), default_of(directive));
        text.push_str(&format!("\n  --{name} {default}"));
        text.push_str(&wrapped(directive.doc(), "      ", COLUMNS));
    }
    text
}

/// A configuration file in which each directive stands with its default, as a comment.
fn configuration() -> String {
    let mut text = "\
# All directives that do something, with their defaults. They are those of Redis 8, and some more:
# https://redis.io/docs/latest/operate/oss_and_stack/management/config/ explains the former. Remove
# the # before a line to change it. Sizes take units: 1k is 1000 bytes, 1kb is 1024. `include FILE`
# reads another file. A user with rights of its own is a line such as
# user ann on >password ~shop:* +@read +@write
"
    .to_owned();
    for directive in directives() {
        let explained = format!("{} Values: {}", directive.doc(), directive.values());
        text.push_str(&wrapped(&explained, "# ", COLUMNS));
        let lines = directive.default_lines();
        if lines.is_empty() {
            text.push_str(&format!("# {} is not set.\n", directive.name()));
        }
        for line in lines {
            text.push_str(&format!("#{}\n", String::from_utf8_lossy(&line)));
        }
    }
    text
}

/// Text as roff shows it as it is.
fn roff(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        if line.starts_with(['.', '\'']) {
            shown.push_str("\\&");
        }
        shown.push_str(&line.replace('\\', "\\e").replace('-', "\\-"));
        shown.push('\n');
    }
    shown
}

fn heading(name: &str, section: u8, purpose: &str) -> String {
    let (upper, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    let title = roff(&format!("{name} - {purpose}"));
    format!(".TH \"{upper}\" {section} \"\" \"Dunlin {version}\"\n.SH NAME\n{title}")
}

fn verbatim(title: &str, text: &str) -> String {
    format!(".SH {}.nf\n{}.fi\n", roff(title), roff(text))
}

fn manual() -> String {
    let mut page = heading("dunlin", 1, "an in-memory data-structure server, and its tools");
    page.push_str(&verbatim("DESCRIPTION", USAGE));
    page.push_str(&verbatim("DUNLIN CHECK", check::USAGE));
    page.push_str(&verbatim("DUNLIN CLUSTER", operator::USAGE));
    page.push_str(&verbatim("DUNLIN BACKUP", backup::BACKUP_USAGE));
    page.push_str(&verbatim("DUNLIN RESTORE", backup::RESTORE_USAGE));
    page.push_str(&verbatim("DUNLIN HEALTH", health::USAGE));
    page.push_str(&verbatim("DUNLIN CONTAINER", container::USAGE));
    page.push_str(&verbatim("DUNLIN TLS DEV", certificates::USAGE));
    let others = "dunlin cli, dunlin top, dunlin move, dunlin bench and dunlin lab explain themselves with --help.\n";
    page.push_str(&verbatim("OTHER COMMANDS", others));
    page.push_str(".SH SEE ALSO\n.BR dunlin.conf (5)\n");
    page
}

fn manual_of_configuration() -> String {
    let mut page = heading("dunlin.conf", 5, "the configuration of a Dunlin server");
    page.push_str(".SH DESCRIPTION\n");
    page.push_str(&roff(
        "A directive and its values stand on a line; a line that begins with # is a comment. Each \
         directive is an option of dunlin serve as well, and CONFIG SET changes most of them while \
         the server runs. Those that exist in Redis mean the same.",
    ));
    page.push_str(".SH DIRECTIVES\n");
    for directive in directives() {
        let head = roff(&format!("{} {}", directive.name(), default_of(directive)));
        page.push_str(&format!(".TP\n.B {head}{}", roff(directive.doc())));
        page.push_str(&format!(".br\nValues: {}", roff(&directive.values())));
    }
    page.push_str(".SH SEE ALSO\n.BR dunlin (1)\n");
    page
}

/// The options of a command, as its help shows them.
fn options_in(usage: &str) -> Vec<&str> {
    let words = usage.split(|letter: char| letter.is_whitespace() || ",;|[]()`".contains(letter));
    let mut options: Vec<_> = words.filter(|word| is_option(word)).collect();
    options.sort_unstable();
    options.dedup();
    options
}

fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    word.len() > name.len() && !name.is_empty() && name.chars().all(is_name)
}

/// The commands that have options, with these.
fn options_by_command() -> [(&'static str, String); 9] {
    let serve: Vec<_> = directives().map(|own| format!("--{}", own.name())).collect();
    [
        ("serve", serve.join(" ")),
        ("container", serve.join(" ")),
        ("check", options_in(check::USAGE).join(" ")),
        ("cluster", options_in(operator::USAGE).join(" ")),
        ("backup", options_in(backup::BACKUP_USAGE).join(" ")),
        ("restore", options_in(backup::RESTORE_USAGE).join(" ")),
        ("health", options_in(health::USAGE).join(" ")),
        ("cli", options_in(cli::USAGE).join(" ")),
        ("top", options_in(top::USAGE).join(" ")),
    ]
}

/// A line of a shell's `case` for each of them.
fn cases(line: impl Fn(&str, &str) -> String) -> String {
    options_by_command().iter().map(|(command, options)| line(command, options)).collect()
}

fn completion_bash() -> String {
    let commands = COMMANDS.join(" ");
    let cases = cases(|command, options| format!("        {command}) words='{options}' ;;\n"));
    format!(
        "# Completion of dunlin's command lines for bash.
_dunlin() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=
    if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then
        words='{commands}'
    elif [[ $word == -* ]]; then
        case ${{COMP_WORDS[1]}} in
{cases}        -* | *.conf) words='{}' ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")
}}
complete -o default -F _dunlin dunlin
",
        options_by_command()[0].1
    )
}

fn completion_zsh() -> String {
    let commands = COMMANDS.join(" ");
    let cases = cases(|command, options| format!("    {command}) compadd -- {options} ;;\n"));
    format!(
        "#compdef dunlin
# Completion of dunlin's command lines for zsh.
if ((CURRENT == 2)); then
    compadd -- {commands}
    _files
elif [[ $PREFIX == -* ]]; then
    case $words[2] in
{cases}    esac
else
    _files
fi
"
    )
}

fn completion_fish() -> String {
    let mut text = format!(
        "# Completion of dunlin's command lines for fish.
complete -c dunlin -n __fish_use_subcommand -a '{}'
",
        COMMANDS.join(" ")
    );
    for (command, options) in options_by_command() {
        for option in options.split(' ') {
            let kind = match option.strip_prefix("--") {
                Some(long) => format!("-l {long}"),
                None => format!("-s {}", option.trim_start_matches('-')),
            };
            let seen = format!("'__fish_seen_subcommand_from {command}'");
            text.push_str(&format!("complete -c dunlin -n {seen} {kind}\n"));
        }
    }
    text
}
