//! Statements with named parameters in the form that the databases take: with numbered places or
//! with marks.

/// How a database writes the places of bound values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// `?` for each, in their order.
    Question,
    /// `$1`, `$2` and so on.
    Numbered,
}

/// A statement as a database takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) text: String,
    /// Which parameter each place is, by their numbers.
    pub(crate) places: Vec<usize>,
}

/// Puts marks in place of `:name`, wherever that is a parameter and not part of a text, a quoted
/// name, a comment or a cast.
pub(crate) fn marked(sql: &str, names: &[&str], marks: Marks) -> Result<Statement, String> {
    let mut statement = Statement { text: String::with_capacity(sql.len()), places: Vec::new() };
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '\'' | '"' | '`' => quoted(rest, first)?,
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                rest.find("*/").map(|end| end + 2).ok_or("a comment does not end")?
            }
            ':' if rest.starts_with("::") => 2,
            ':' => {
                let length = name_length(&rest[1..]);
                if length > 0 {
                    let name = &rest[1..=length];
                    let number = names.iter().position(|own| *own == name);
                    let number = number.ok_or_else(|| format!("there is no parameter {name}"))?;
                    mark(&mut statement, number, marks);
                    rest = &rest[1 + length..];
                    continue;
                }
                1
            }
            '?' => return Err("parameters have names: `:name`, and not `?`".to_owned()),
            ';' if !rest[1..].trim().is_empty() => return Err("it is more than one".to_owned()),
            other => other.len_utf8(),
        };
        statement.text.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    let trimmed = statement.text.trim_end().trim_end_matches(';').len();
    statement.text.truncate(trimmed);
    Ok(statement)
}

fn mark(statement: &mut Statement, number: usize, marks: Marks) {
    match marks {
        Marks::Question => {
            statement.places.push(number);
            statement.text.push('?');
        }
        Marks::Numbered => {
            let known = statement.places.iter().position(|own| *own == number);
            let place = known.unwrap_or_else(|| {
                statement.places.push(number);
                statement.places.len() - 1
            });
            statement.text.push_str(&format!("${}", place + 1));
        }
    }
}

fn name_length(text: &str) -> usize {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    match text.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => {
            text.chars().take_while(is_part).count()
        }
        _ => 0,
    }
}

/// How long a quoted part is, with its quotes. A quote in it is there twice.
fn quoted(text: &str, quote: char) -> Result<usize, String> {
    let mut at = 1;
    loop {
        at += text[at..].find(quote).ok_or("a quote does not end")? + 1;
        if !text[at..].starts_with(quote) {
            return Ok(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_marks_where_they_are_parameters() {
        let names = ["rows", "name"];
        let sql = "SELECT ':rows', \":name\", a::text -- :rows\n FROM t WHERE n = :name AND m=:name \
                   /* :name */ LIMIT :rows;";
        let question = marked(sql, &names, Marks::Question).unwrap();
        assert_eq!(question.places, [1, 1, 0]);
        let text = "SELECT ':rows', \":name\", a::text -- :rows\n FROM t WHERE n = ? AND m=? \
                    /* :name */ LIMIT ?";
        assert_eq!(question.text, text);
        let numbered = marked(sql, &names, Marks::Numbered).unwrap();
        assert_eq!(numbered.places, [1, 0]);
        assert!(numbered.text.ends_with("n = $1 AND m=$1 /* :name */ LIMIT $2"));
    }

    #[test]
    fn what_is_no_statement_is_refused() {
        for wrong in ["SELECT :other", "SELECT 'a", "SELECT ?", "SELECT 1; DROP TABLE t", "/* a"] {
            assert!(marked(wrong, &["rows"], Marks::Question).is_err(), "{wrong}");
        }
        let twice = marked("SELECT 'it''s :rows', :rows", &["rows"], Marks::Question).unwrap();
        assert_eq!(twice.text, "SELECT 'it''s :rows', ?");
    }
}
