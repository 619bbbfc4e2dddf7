//! Tells the code which compiler builds it: INFO shows it.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // "rustc 1.95.0 (59807616e 2026-04-14)"
    let version: Vec<_> = text.iter().flat_map(|text| text.split(' ').take(2)).collect();
    println!("cargo::rustc-env=DUNLIN_COMPILER={}", version.join(" "));
    println!("cargo::rerun-if-changed=build.rs");
}
