//! The process title: what `ps` shows as the command line.

use config::{Config, TitleVariables, expand_title};
use parking_lot::Mutex;

use crate::system::TitleArea;

/// The title of this process, if it can be changed at all.
pub struct Title {
    area: Option<Mutex<TitleArea>>,
    /// The name under which the program was started.
    program: Vec<u8>,
    config_file: Vec<u8>,
}

impl Title {
    /// Takes over the title; without an area it stays as it is.
    pub fn new(area: Option<TitleArea>, program: &[u8], config_file: &[u8]) -> Title {
        let area = area.map(Mutex::new);
        Title { area, program: program.to_vec(), config_file: config_file.to_vec() }
    }

    /// Shows the title in the settings. Returns `None` when their template has no meaning.
    pub fn show(&self, config: &Config) -> Option<()> {
        if !config.set_proc_title {
            return Some(());
        }
        let title = expand_title(
            &config.proc_title_template,
            &self.facts(config, &listen_address(config)),
        )?;
        if let Some(area) = &self.area {
            area.lock().set(&title);
        }
        Some(())
    }

    fn facts<'f>(&'f self, config: &'f Config, listen_addr: &'f [u8]) -> TitleVariables<'f> {
        TitleVariables {
            title: &self.program,
            listen_addr,
            server_mode: if config.cluster_enabled { b"[cluster]" } else { b"" },
            port: config.port,
            tls_port: config.tls_port,
            unixsocket: &config.unixsocket,
            config_file: &self.config_file,
        }
    }
}

/// Address and port of the first listener, or the path of the unix socket.
fn listen_address(config: &Config) -> Vec<u8> {
    if config.port == 0 {
        return config.unixsocket.clone();
    }
    let first = config.bind.first().map_or(&b"*"[..], Vec::as_slice);
    let address = first.strip_prefix(b"-").unwrap_or(first);
    let port = config.port;
    if address.contains(&b':') {
        [b"[", address, format!("]:{port}").as_bytes()].concat()
    } else {
        [address, format!(":{port}").as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_listener_is_named() {
        let mut config = Config { port: 7, ..Config::default() };
        assert_eq!(listen_address(&config), b"127.0.0.1:7");
        config.bind = vec![b"-::1".to_vec()];
        assert_eq!(listen_address(&config), b"[::1]:7");
        config = Config { port: 0, unixsocket: b"/run/x".to_vec(), ..config };
        assert_eq!(listen_address(&config), b"/run/x");
    }

    #[test]
    fn a_template_without_meaning_is_refused() {
        let title = Title::new(None, b"dunlin", b"");
        assert_eq!(title.show(&Config::default()), Some(()));
        let config = Config { proc_title_template: b"{x}".to_vec(), ..Config::default() };
        assert_eq!(title.show(&config), None);
    }
}
