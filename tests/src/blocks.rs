//! The blocks of a document, and the steps in them.
//!
//! What a block is depends on its language:
//!
//! * `console`, or no language and a prompt at the beginning: a line after `$ ` or `# ` is a
//!   command of a shell, one after `> ` or `name> ` one of redis-cli. What follows is output.
//! * `sh`: each line is a command of a shell.
//! * `python`, `js`, `go`, `java`: a program. A `text` block right after it is its output.
//! * Others: data. After a comment `<!-- file: NAME -->` it becomes that file.

use anyhow::{Context, Result, bail, ensure};

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A command of a shell.
    Shell,
    /// A command of redis-cli, after a prompt with this name.
    Redis(String),
    /// A program in this language.
    Program(String),
    /// A file with this name.
    File(String),
}

/// Something that a reader does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the page where it begins, from 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
    /// The command, the program or the file.
    pub text: String,
    /// The lines that the page shows after it.
    pub shown: Vec<String>,
}

/// Languages of blocks that nobody runs.
const DATA: [&str; 10] =
    ["text", "toml", "yaml", "json", "ini", "conf", "http", "xml", "sql", "promql"];

/// Languages of programs.
const PROGRAMS: [&str; 4] = ["python", "js", "go", "java"];

struct Block<'a> {
    line: usize,
    language: &'a str,
    lines: Vec<&'a str>,
    /// The last line before it that is not empty.
    before: &'a str,
}

/// The steps of a page, in their order.
///
/// # Errors
/// A block has no language, or one that is not known, or no end.
pub fn steps(page: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(page)? {
        let whole = || block.lines.join("\n") + "\n";
        let line = block.line;
        if let Some(name) =
            block.before.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"))
        {
            let kind = Kind::File(name.to_owned());
            steps.push(Step { line, kind, text: whole(), shown: Vec::new() });
            continue;
        }
        let is_prompted = block.lines.first().is_some_and(|line| prompted(line).is_some());
        let language = match block.language {
            "" if is_prompted => "console",
            "" => "text",
            language => language,
        };
        match language {
            "console" => steps.extend(
                console(&block).with_context(|| format!("the block in line {}", block.line))?,
            ),
            "sh" => steps.extend(script(&block)),
            "text" if block.before == "```" => {
                let last = steps.last_mut().filter(|step| matches!(step.kind, Kind::Program(_)));
                if let Some(step) = last {
                    step.shown = block.lines.iter().map(|line| (*line).to_owned()).collect();
                }
            }
            language if PROGRAMS.contains(&language) => {
                let kind = Kind::Program(language.to_owned());
                steps.push(Step { line, kind, text: whole(), shown: Vec::new() });
            }
            language if DATA.contains(&language) => {}
            language => bail!("line {}: a block in the language {language:?}", block.line),
        }
    }
    Ok(steps)
}

fn blocks(page: &str) -> Result<Vec<Block<'_>>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut open: Option<(usize, Block<'_>)> = None;
    let mut before = "";
    for (index, line) in page.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                let block =
                    Block { line: index + 1, language: language.trim(), lines: Vec::new(), before };
                open = Some((indent, block));
            }
            (Some(_), Some("")) => blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), _) => {
                block.lines.push(line.get(*indent..).unwrap_or_default());
            }
            (None, None) => {}
        }
        if !line.trim().is_empty() {
            before = line.trim();
        }
    }
    ensure!(open.is_none(), "the last block has no end");
    Ok(blocks)
}

/// The prompt before a command, and the command.
fn prompted(line: &str) -> Option<(Kind, &str)> {
    let at = line.find(['$', '#', '>'])?;
    let (name, rest) = line.split_at(at);
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | ':' | '-');
    let command = rest.get(1..)?.strip_prefix(' ')?;
    if !name.chars().all(plain) {
        return None;
    }
    let kind = if rest.starts_with('>') { Kind::Redis(name.to_owned()) } else { Kind::Shell };
    Some((kind, command.trim_start()))
}

fn console(block: &Block<'_>) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = block.lines.iter().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some((kind, command)) = prompted(line) else {
            let step = steps.last_mut().context("output before the first command")?;
            step.shown.push((*line).to_owned());
            continue;
        };
        let mut text = command.to_owned();
        if kind == Kind::Shell {
            while text.ends_with('\\') {
                let (_, next) = lines.next().context("a line ends with \\ and none follows")?;
                text += "\n";
                text += next;
            }
            if let Some((_, end)) = text.split_once("<<") {
                let end = end.trim_matches(|c| matches!(c, '\'' | '-')).to_owned();
                loop {
                    let (_, next) = lines.next().context("a text without its end")?;
                    text = text + "\n" + next;
                    if *next == end {
                        break;
                    }
                }
            }
        } else if let Some((command, _)) = text.split_once(" # ") {
            text = command.trim_end().to_owned();
        }
        steps.push(Step { line: block.line + index + 1, kind, text, shown: Vec::new() });
    }
    // Blanks between commands are for the eye.
    for step in &mut steps {
        while step.shown.last().is_some_and(String::is_empty) {
            step.shown.pop();
        }
    }
    Ok(steps)
}

fn script<'a>(block: &'a Block<'_>) -> impl Iterator<Item = Step> + use<'a> {
    let lines = block.lines.iter().enumerate();
    let commands = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    commands.map(|(index, line)| Step {
        line: block.line + index + 1,
        kind: Kind::Shell,
        text: (*line).to_owned(),
        shown: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_outputs_are_found() -> Result<()> {
        let page = "```console\n$ a \\\n  b\none\n\ntwo\n\nold> GET k     # why\n(nil)\n\
                    # c <<E\nx\nE\n```\n\n```python\np\n```\n\n```text\nout\n```\n\
                    <!-- file: f -->\n```toml\nt = 1\n```\n";
        let steps = steps(page)?;
        let seen: Vec<_> = steps
            .iter()
            .map(|it| (it.line, it.kind.clone(), &*it.text, it.shown.join("|")))
            .collect();
        let expected = [
            (2, Kind::Shell, "a \\\n  b", "one||two".to_owned()),
            (8, Kind::Redis("old".to_owned()), "GET k", "(nil)".to_owned()),
            (10, Kind::Shell, "c <<E\nx\nE", String::new()),
            (15, Kind::Program("python".to_owned()), "p\n", "out".to_owned()),
            (23, Kind::File("f".to_owned()), "t = 1\n", String::new()),
        ];
        ensure!(seen == expected, "{seen:#?}");
        ensure!(super::steps("```whatever\nwhat is this\n```\n").is_err());
        Ok(())
    }
}
