//! The machine that everything ran on, for the report.

use std::fs;

use super::cpus;
use crate::results::Machine;

/// Looks at this machine. What it does not tell stays empty.
pub fn describe() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let uname = rustix::system::uname();
    let kernel =
        format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    let memory = field(&read("/proc/meminfo"), "MemTotal", ':');
    let memory = memory.trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024;
    Machine {
        processor: field(&read("/proc/cpuinfo"), "model name", ':'),
        processors: cpus::count(),
        memory_bytes: memory,
        kernel,
        system: field(&read("/etc/os-release"), "PRETTY_NAME", '=').trim_matches('"').to_owned(),
    }
}

fn field(text: &str, name: &str, separator: char) -> String {
    let found = text.lines().find_map(|line| {
        let (field, value) = line.split_once(separator)?;
        (field.trim() == name).then(|| value.trim().to_owned())
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_processors() {
        let machine = describe();
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.processors > 0);
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 6\nmodel name\t: A processor\nMODEL=\"x\"\n";
        assert_eq!(field(text, "model name", ':'), "A processor");
        assert_eq!(field(text, "nothing", ':'), "");
    }
}
