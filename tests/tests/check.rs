//! `dunlin check` as an operator runs it.

use std::fs;
use std::process::{Command, Output};

use anyhow::Result;
use tests::server::dunlin_binary;

fn check(arguments: &[&str]) -> Result<Output> {
    Ok(Command::new(dunlin_binary()?).arg("check").args(arguments).output()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_code_says_whether_a_server_can_load_it() -> Result<()> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("x.aof");
    let path = file.to_str().expect("a plain name");
    let good = "#TS:100\r\n*1\r\n$4\r\nPING\r\n#TS:200\r\n*1\r\n$4\r\nPING\r\n";
    fs::write(&file, format!("{good}*1\r\n$9\r\nPI"))?;
    let damaged = check(&[path])?;
    assert_eq!(damaged.status.code(), Some(1));
    assert!(text(&damaged.stdout).contains("TORN: the file ends within a command"));
    let fixed = check(&["--fix", path])?;
    assert_eq!(fixed.status.code(), Some(0), "{}", text(&fixed.stdout));
    assert_eq!(fs::read_to_string(&file)?, good);
    assert_eq!(check(&[path])?.status.code(), Some(0));
    assert_eq!(check(&[path, "--truncate-to-timestamp", "150"])?.status.code(), Some(0));
    assert_eq!(fs::read_to_string(&file)?, &good[..good.len() / 2]);
    let early = check(&[path, "--truncate-to-timestamp", "99"])?;
    assert_eq!(early.status.code(), Some(1));
    assert!(text(&early.stderr).contains("nothing to go back to"), "{}", text(&early.stderr));
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_explained() -> Result<()> {
    let wrong: [&[&str]; 5] = [
        &[],
        &["--what", "x"],
        &["x", "y"],
        &["x", "--truncate-to-timestamp"],
        &["x", "--truncate-to-timestamp", "soon"],
    ];
    for arguments in wrong {
        let output = check(arguments)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("Usage: dunlin check"), "{arguments:?}");
    }
    let help = check(&["--help"])?;
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Usage: dunlin check"));
    let missing = check(&["/nonexistent/x.aof"])?;
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).starts_with("dunlin: /nonexistent/x.aof: No such file"));
    Ok(())
}
