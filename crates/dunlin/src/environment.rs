//! Settings in variables of the environment, under the names that images of Redis and Valkey have
//! given them, and that charts use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use config::{DirectiveId, LoadError, Location, Origin, Provided, split_words};
use server::watched_files::SecretFile;

/// What all names begin with. Those of one kind of image suffice.
const PREFIXES: [&str; 3] = ["DUNLIN_", "REDIS_", "VALKEY_"];

/// The rest of a name, and the directive that it sets. Of several names of a directive, the first
/// that is there counts.
const DIRECTIVES: [(&str, &str); 24] = [
    ("PASSWORD", "requirepass"),
    ("PORT_NUMBER", "port"),
    ("PORT", "port"),
    ("HTTP_PORT", "http-port"),
    ("ACLFILE", "aclfile"),
    ("AOF_ENABLED", "appendonly"),
    ("MAXMEMORY", "maxmemory"),
    ("MAXMEMORY_POLICY", "maxmemory-policy"),
    ("MASTER_PASSWORD", "masterauth"),
    ("PRIMARY_PASSWORD", "masterauth"),
    ("TLS_CERT_FILE", "tls-cert-file"),
    ("TLS_KEY_FILE", "tls-key-file"),
    ("TLS_KEY_FILE_PASS", "tls-key-file-pass"),
    ("TLS_CA_FILE", "tls-ca-cert-file"),
    ("TLS_CA_DIR", "tls-ca-cert-dir"),
    ("TLS_AUTH_CLIENTS", "tls-auth-clients"),
    ("THREADS", "threads"),
    ("CLUSTER_ETCD", "cluster-etcd"),
    ("CLUSTER_ETCD_USER", "cluster-etcd-user"),
    ("CLUSTER_ETCD_PASSWORD", "cluster-etcd-password"),
    ("CLUSTER_ETCD_CA_FILE", "cluster-etcd-ca-file"),
    ("CLUSTER_ETCD_CERT_FILE", "cluster-etcd-cert-file"),
    ("CLUSTER_ETCD_KEY_FILE", "cluster-etcd-key-file"),
    ("CLUSTER_NAME", "cluster-name"),
];

/// Variables whose value may be in a file, which the variable with this at its end names.
const FILE: &str = "_FILE";
const SECRETS: [&str; 3] = ["PASSWORD", "MASTER_PASSWORD", "PRIMARY_PASSWORD"];

/// Says that nobody needs a password.
const ALLOW_EMPTY_PASSWORD: &str = "ALLOW_EMPTY_PASSWORD";

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// Settings.
    pub(crate) settings: Vec<Provided>,
    /// Options for the command line.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// Where secrets among the settings are from.
    pub(crate) secret_files: Vec<SecretFile>,
}

/// A variable: its name, and its value.
type Variable = (String, Vec<u8>);

impl Environment {
    /// That of this process.
    ///
    /// # Errors
    /// Two variables contradict each other, or the file with a secret cannot be read.
    pub(crate) fn read() -> Result<Environment, LoadError> {
        let find = |name: &str| std::env::var_os(name).map(OsString::into_vec);
        Environment::of(&find)
    }

    fn of(find: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Environment, LoadError> {
        let mut environment = Environment::default();
        for (rest, directive) in DIRECTIVES {
            match one_of(find, rest)? {
                Some((name, value)) => environment.set(directive, &name, &[&value]),
                None if SECRETS.contains(&rest) => {
                    environment.read_secret(find, rest, directive)?
                }
                None => {}
            }
        }
        environment.encrypt(find)?;
        environment.follow(find)?;
        if let Some(value) = find(ALLOW_EMPTY_PASSWORD)
            && is_yes(ALLOW_EMPTY_PASSWORD, &value)?
            && environment.value("requirepass").is_none()
        {
            environment.set("protected-mode", ALLOW_EMPTY_PASSWORD, &[b"no"]);
        }
        if let Some((name, flags)) = one_of(find, "EXTRA_FLAGS")? {
            let unbalanced = || failed(&name, "Unbalanced quotes");
            environment.arguments = split_words(&flags).ok_or_else(unbalanced)?;
        }
        Ok(environment)
    }

    /// The value that a directive gets.
    pub(crate) fn value(&self, directive: &str) -> Option<String> {
        let mut settings = self.settings.iter();
        let found = settings.find(|own| own.directive.name() == directive)?;
        Some(String::from_utf8_lossy(&found.words.join(&b' ')).into_owned())
    }

    /// Sets a directive, unless an earlier variable has.
    fn set(&mut self, directive: &str, variable: &str, words: &[&[u8]]) {
        if let Some(directive) = DirectiveId::find(directive.as_bytes())
            && !self.settings.iter().any(|own| own.directive == directive)
        {
            let words = words.iter().map(|word| word.to_vec()).collect();
            let origin = Origin::Variable(variable.to_owned());
            self.settings.push(Provided { origin, directive, words });
        }
    }

    /// Sets a directive to the text of the file that a variable names, if there is one.
    fn read_secret(
        &mut self,
        find: &dyn Fn(&str) -> Option<Vec<u8>>,
        rest: &str,
        directive: &str,
    ) -> Result<(), LoadError> {
        if let Some((name, file)) = one_of(find, &format!("{rest}{FILE}"))?
            && let Some(directive) = DirectiveId::find(directive.as_bytes())
            && !self.settings.iter().any(|own| own.directive == directive)
        {
            let file = SecretFile { directive, path: OsString::from_vec(file).into() };
            let secret = file.read().map_err(|error| failed(&name, &error))?;
            self.set(directive.name(), &name, &[&secret]);
            self.secret_files.push(file);
        }
        Ok(())
    }

    /// TLS_ENABLED takes the port of clients that do not encrypt, unless TLS_PORT is another one.
    fn encrypt(&mut self, find: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<(), LoadError> {
        let Some((name, value)) = one_of(find, "TLS_ENABLED")? else { return Ok(()) };
        if !is_yes(&name, &value)? {
            return Ok(());
        }
        let given = match one_of(find, "TLS_PORT_NUMBER")? {
            None => one_of(find, "TLS_PORT")?,
            given => given,
        };
        let plain = self.value("port").unwrap_or_else(|| "6379".to_owned());
        let (name, port) = given.unwrap_or_else(|| (name, plain.clone().into_bytes()));
        if port == plain.as_bytes() {
            self.settings.retain(|own| own.directive.name() != "port");
            self.set("port", &name, &[b"0"]);
        }
        self.set("tls-port", &name, &[&port]);
        Ok(())
    }

    /// REPLICATION_MODE says that MASTER_HOST (PRIMARY_HOST) is the primary.
    fn follow(&mut self, find: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<(), LoadError> {
        let Some((name, mode)) = one_of(find, "REPLICATION_MODE")? else { return Ok(()) };
        match &mode[..] {
            b"master" | b"primary" => return Ok(()),
            b"slave" | b"replica" => {}
            _ => return Err(failed(&name, "It is one of master, primary, slave and replica")),
        }
        let either = |rest: &str| match one_of(find, &format!("MASTER_{rest}"))? {
            None => one_of(find, &format!("PRIMARY_{rest}")),
            found => Ok(found),
        };
        let (host, port) = (either("HOST")?, either("PORT_NUMBER")?);
        let (_, host) = host.ok_or_else(|| failed(&name, "Without MASTER_HOST beside it"))?;
        let port = port.map_or_else(|| b"6379".to_vec(), |(_, port)| port);
        self.set("replicaof", &name, &[&host, &port]);
        if self.value("tls-port").is_some() {
            self.set("tls-replication", &name, &[b"yes"]);
        }
        Ok(())
    }
}

/// The variable with this rest of a name, and any beginning. An empty one is as good as none.
fn one_of(
    find: &dyn Fn(&str) -> Option<Vec<u8>>,
    rest: &str,
) -> Result<Option<Variable>, LoadError> {
    let mut found: Option<Variable> = None;
    for prefix in PREFIXES {
        let name = format!("{prefix}{rest}");
        // Kubernetes gives each pod addresses of all services: that of one called redis as
        // REDIS_PORT=tcp://10.0.0.1:6379.
        let is_meant = |value: &Vec<u8>| !value.is_empty() && !value.starts_with(b"tcp://");
        let Some(value) = find(&name).filter(is_meant) else { continue };
        match &found {
            Some((other, earlier)) if *earlier != value => {
                return Err(failed(&name, &format!("It contradicts {other}")));
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found)
}

fn is_yes(name: &str, value: &[u8]) -> Result<bool, LoadError> {
    match &value.to_ascii_lowercase()[..] {
        b"yes" | b"true" | b"1" => Ok(true),
        b"no" | b"false" | b"0" | b"" => Ok(false),
        _ => Err(failed(name, "It is yes or no")),
    }
}

fn failed(name: &str, message: &str) -> LoadError {
    let origin = Origin::Variable(name.to_owned());
    let location = Location { origin, line: 1, text: Vec::new() };
    LoadError { location: Some(location), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|own| own.0 == name);
            found.map(|own| own.1.as_bytes().to_vec())
        };
        let environment = Environment::of(&find).map_err(|error| error.to_string())?;
        let line = |own: &Provided| {
            let words = own.words.join(&b' ');
            format!("{} {}", own.directive.name(), String::from_utf8_lossy(&words))
        };
        let mut lines: Vec<_> = environment.settings.iter().map(line).collect();
        lines.extend(
            environment.arguments.iter().map(|word| String::from_utf8_lossy(word).into_owned()),
        );
        Ok(lines)
    }

    #[test]
    fn names_of_charts_are_understood() {
        let lines = |variables: &[(&str, &str)]| read(variables).expect("it is right");
        assert_eq!(lines(&[("HOME", "/"), ("REDIS_SERVICE_HOST", "10.0.0.1")]), [""; 0]);
        assert_eq!(
            lines(&[("REDIS_PASSWORD", "pw"), ("REDIS_PORT", "7000"), ("REDIS_AOF_ENABLED", "no")]),
            ["requirepass pw", "port 7000", "appendonly no"]
        );
        assert_eq!(
            lines(&[("REDIS_PORT", "tcp://10.0.0.1:6379"), ("REDIS_PASSWORD", "")]),
            [""; 0]
        );
        assert_eq!(lines(&[("ALLOW_EMPTY_PASSWORD", "yes")]), ["protected-mode no"]);
        assert_eq!(
            lines(&[("ALLOW_EMPTY_PASSWORD", "yes"), ("VALKEY_PASSWORD", "x")]),
            ["requirepass x"]
        );
        assert_eq!(
            lines(&[("REDIS_TLS_ENABLED", "yes"), ("REDIS_TLS_CERT_FILE", "/c")]),
            ["tls-cert-file /c", "port 0", "tls-port 6379"]
        );
        assert_eq!(
            lines(&[("REDIS_TLS_ENABLED", "yes"), ("REDIS_TLS_PORT", "6380")]),
            ["tls-port 6380"]
        );
        assert_eq!(
            lines(&[
                ("VALKEY_REPLICATION_MODE", "replica"),
                ("VALKEY_PRIMARY_HOST", "one"),
                ("VALKEY_PRIMARY_PORT_NUMBER", "7001"),
                ("VALKEY_PRIMARY_PASSWORD", "pw"),
            ]),
            ["masterauth pw", "replicaof one 7001"]
        );
        assert_eq!(lines(&[("REDIS_EXTRA_FLAGS", "--hz '20'")]), ["--hz", "20"]);
    }

    #[test]
    fn mistakes_name_their_variable() {
        for (variables, expected) in [
            (&[("REDIS_PASSWORD", "a"), ("VALKEY_PASSWORD", "b")][..], "VALKEY_PASSWORD"),
            (&[("REDIS_TLS_ENABLED", "maybe")], "REDIS_TLS_ENABLED"),
            (&[("REDIS_REPLICATION_MODE", "replica")], "REDIS_REPLICATION_MODE"),
            (&[("REDIS_REPLICATION_MODE", "x")], "REDIS_REPLICATION_MODE"),
            (&[("REDIS_PASSWORD_FILE", "/nowhere")], "REDIS_PASSWORD_FILE"),
            (&[("REDIS_EXTRA_FLAGS", "'")], "REDIS_EXTRA_FLAGS"),
        ] {
            let error = read(variables).expect_err(expected);
            assert!(error.contains(&format!("variable {expected}\n")), "{error}");
        }
    }
}
