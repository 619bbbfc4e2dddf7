//! The permissions of the files that the server makes, whatever its umask.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use tests::client::Client;
use tests::observe::wait_until;
use tests::server::dunlin_binary;

use crate::manager::Manager;

fn mode(path: &Path) -> Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

fn succeed(client: &mut Client, commands: &[&str]) -> Result<()> {
    for command in commands {
        let reply = client.call_text(command)?;
        ensure!(!reply.is_error(), "{command}: {reply:?}");
    }
    Ok(())
}

#[test]
fn files_have_modes_of_their_own() -> Result<()> {
    for (umask, of_socket) in [("000", 0o777), ("022", 0o755), ("077", 0o700)] {
        let manager = Manager::new()?;
        let file = |name: &str| manager.home().join(name);
        fs::write(file("own.conf"), "appendonly yes\naclfile users.acl\n")?;
        fs::write(file("users.acl"), "")?;
        let script = format!("umask {umask}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(dunlin_binary()?).args(["serve", "own.conf"]);
        command.args(["--http-port", "0", "--supervised", "systemd", "--logfile", "own.log"]);
        command.args(["--pidfile", "own.pid", "--unixsocket", "own.sock"]);
        let mut service = manager.start(manager.supervise(command))?;
        manager.lines_until("READY=1")?;
        let mut client = service.connect()?;
        succeed(&mut client, &["SET key value", "SAVE", "BGREWRITEAOF"])?;
        let part = |name: &str| file(&format!("appendonlydir/appendonly.aof.{name}"));
        wait_until("a rewrite", || {
            let is_new = part("2.base.rdb").exists();
            Ok(is_new && !part("1.base.rdb").exists() && !part("1.incr.aof").exists())
        })?;
        // What is there keeps its mode, and what is not there gets one.
        fs::set_permissions(file("own.conf"), fs::Permissions::from_mode(0o604))?;
        fs::remove_file(file("users.acl"))?;
        succeed(&mut client, &["ACL SETUSER ann on", "ACL SAVE", "CONFIG REWRITE"])?;
        ensure!(mode(&file("own.conf"))? == 0o604, "{umask}");
        fs::remove_file(file("own.conf"))?;
        succeed(&mut client, &["CONFIG REWRITE"])?;
        let parts = fs::read_dir(file("appendonlydir"))?;
        let parts: Vec<_> = parts.map(|part| Ok(part?.path())).collect::<Result<_>>()?;
        ensure!(parts.len() >= 3, "{parts:?}");
        let others = ["dump.rdb", "own.log", "users.acl", "own.conf"].map(file);
        for path in parts.iter().chain(&others) {
            let mode = mode(path)?;
            ensure!(mode == 0o640, "umask {umask}: {} has {mode:o}", path.display());
        }
        ensure!(mode(&file("appendonlydir"))? == 0o750, "{umask}");
        ensure!(mode(&file("own.pid"))? == 0o644, "{umask}");
        ensure!(mode(&file("own.sock"))? == of_socket, "{umask}");
        ensure!(service.stop()?.success());
    }
    Ok(())
}
