//! A terminal in which a program runs: keys go in, and what is on the screen comes out. It is
//! tmux's, with a server of its own.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long a program may take until it shows what a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two looks at the screen.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module's text. The program ends with it.
#[derive(Debug)]
pub struct Screen {
    name: String,
}

impl Screen {
    /// Starts a program, by a line for the shell, in a terminal of this many columns and rows.
    ///
    /// # Errors
    /// tmux is missing, or refuses.
    pub fn start(columns: u16, rows: u16, line: &str) -> Result<Screen> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let screen = Screen { name: format!("dunlin-test-{}-{count}", std::process::id()) };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        // What the program says last, and its exit code, stay on the screen.
        let line = format!("{line}; echo \"ended with $?\"; exec sleep 1000");
        let size = ["-x", &columns, "-y", &rows];
        let start = ["new-session", "-d"];
        screen
            .tmux(&[&start[..], &size, &["env", "LC_ALL=C.UTF-8", "sh", "-c", &line]].concat())?;
        Ok(screen)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.name, "-f", "/dev/null", "-u"]).args(arguments);
        command.env_remove("TMUX").env("TERM", "xterm-256color").stdin(Stdio::null());
        let output = command.output().context("starting tmux")?;
        ensure!(output.status.success(), "tmux {arguments:?}: {output:?}");
        Ok(output)
    }

    /// Presses keys by their names in tmux, such as `Enter`, `C-c`, `Tab`, `Up` or `a`.
    ///
    /// # Errors
    /// The program has ended.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Types a text as it is.
    ///
    /// # Errors
    /// As [`Screen::press`].
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", text]).map(drop)
    }

    /// Types a line and presses Enter.
    ///
    /// # Errors
    /// As [`Screen::press`].
    pub fn enter(&self, line: &str) -> Result<()> {
        self.type_text(line)?;
        self.press(&["Enter"])
    }

    /// Gives the terminal another size.
    ///
    /// # Errors
    /// As [`Screen::press`].
    pub fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]).map(drop)
    }

    /// What is on the screen, line by line.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"])?.stdout).into_owned())
    }

    /// The same with codes for colours.
    ///
    /// # Errors
    /// As [`Screen::text`].
    pub fn colored_text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p", "-e"])?.stdout).into_owned())
    }

    /// Waits until the screen is as wanted; returns what is on it then.
    ///
    /// # Errors
    /// It never is.
    pub fn wait_until(&self, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        let begun = Instant::now();
        loop {
            let text = self.text()?;
            if is_wanted(&text) {
                return Ok(text);
            }
            if begun.elapsed() > PATIENCE {
                bail!("the screen never showed what was waited for, but\n{text}");
            }
            sleep(PAUSE);
        }
    }

    /// Waits until this is on the screen.
    ///
    /// # Errors
    /// It never is.
    pub fn wait_for(&self, part: &str) -> Result<String> {
        self.wait_until(|text| text.contains(part)).with_context(|| format!("waiting for {part:?}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.tmux(&["kill-server"]);
    }
}
