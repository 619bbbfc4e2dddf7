//! The process title: a template with variables in braces.

/// The values of the variables in a process title.
#[derive(Clone, Copy, Debug, Default)]
pub struct TitleVariables<'a> {
    /// `{title}`: the name under which the program runs.
    pub title: &'a [u8],
    /// `{listen-addr}`: address and port of the first listener, or the path of the Unix socket.
    pub listen_addr: &'a [u8],
    /// `{server-mode}`: `[cluster]`, or nothing.
    pub server_mode: &'a [u8],
    /// `{port}`
    pub port: u16,
    /// `{tls-port}`
    pub tls_port: u16,
    /// `{unixsocket}`
    pub unixsocket: &'a [u8],
    /// `{config-file}`
    pub config_file: &'a [u8],
}

impl TitleVariables<'_> {
    fn value(&self, variable: &[u8]) -> Option<Vec<u8>> {
        Some(match variable {
            b"title" => self.title.to_vec(),
            b"listen-addr" => self.listen_addr.to_vec(),
            b"server-mode" => self.server_mode.to_vec(),
            b"port" => self.port.to_string().into_bytes(),
            b"tls-port" => self.tls_port.to_string().into_bytes(),
            b"unixsocket" => self.unixsocket.to_vec(),
            b"config-file" => self.config_file.to_vec(),
            _ => return None,
        })
    }
}

/// Puts the facts in place of the variables of `template`; `{{` stands for a brace. White space
/// at the end goes. `None` when a brace stays open or a variable is unknown.
pub fn expand_title(template: &[u8], variables: &TitleVariables<'_>) -> Option<Vec<u8>> {
    let mut title = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.iter().position(|&byte| byte == b'{') {
        title.extend_from_slice(&rest[..open]);
        rest = &rest[open + 1..];
        if let Some(after) = rest.strip_prefix(b"{") {
            title.push(b'{');
            rest = after;
        } else {
            let close = rest.iter().position(|&byte| byte == b'}')?;
            title.extend(variables.value(&rest[..close])?);
            rest = &rest[close + 1..];
        }
    }
    title.extend_from_slice(rest);
    title.truncate(title.trim_ascii_end().len());
    Some(title)
}

/// Whether `template` expands to something even when the facts that may be empty are.
pub(super) fn is_valid(template: &[u8]) -> bool {
    let variables =
        TitleVariables { listen_addr: b"*:0", config_file: b"-", ..TitleVariables::default() };
    expand_title(template, &variables).is_some_and(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_and_doubled_braces() {
        let variables = TitleVariables {
            title: b"dunlin",
            listen_addr: b"127.0.0.1:6379",
            port: 6379,
            ..TitleVariables::default()
        };
        let expand = |template: &str| expand_title(template.as_bytes(), &variables);
        let title = expand("{title} {listen-addr} {server-mode}");
        assert_eq!(title.unwrap(), b"dunlin 127.0.0.1:6379");
        assert_eq!(expand("{{x}} {port}/{tls-port} ").unwrap(), b"{x}} 6379/0");
        assert_eq!(expand("{title"), None);
        assert_eq!(expand("{TITLE}"), None);
        assert_eq!(expand("{}"), None);
    }

    #[test]
    fn a_template_must_give_some_title() {
        for valid in ["x", "{listen-addr}", "{config-file}", "{port}", "{{", "}}", "{{}", "title}"]
        {
            assert!(is_valid(valid.as_bytes()), "{valid}");
        }
        for invalid in ["", " ", "{title}", "{server-mode}", "{unixsocket}", "{}", "{bad}", "{a"] {
            assert!(!is_valid(invalid.as_bytes()), "{invalid}");
        }
    }
}
