//! The machine that everything ran on, for the report.

use std::fs;
use std::path::Path;

use crate::results::Machine;
use crate::targets::cpus;

/// Looks at this machine. Facts that it does not show stay empty, and so does the place of the
/// data.
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
        file_system: String::new(),
    }
}

/// The kind of the file system that a directory is on: `ext4`.
pub fn file_system(directory: &Path) -> String {
    /// By the number that statfs(2) gives; those that are kept in memory first.
    const KINDS: [(u64, &str); 9] = [
        (0x0102_1994, IN_MEMORY[0]),
        (0x8584_58f6, IN_MEMORY[1]),
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x794c_7630, "overlay"),
        (0x2fc1_2fc1, "zfs"),
        (0xf2f5_2010, "f2fs"),
        (0x6969, "nfs"),
    ];
    let Ok(found) = rustix::fs::statfs(directory) else { return String::new() };
    let number = found.f_type as u64 & 0xffff_ffff;
    let known = KINDS.iter().find(|(kind, _)| *kind == number);
    known.map_or_else(|| format!("type {number:#x}"), |(_, name)| (*name).to_owned())
}

/// File systems that lose everything when the power fails, so that fsync has nothing to do.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Whether a file system keeps nothing on a disk.
pub fn is_in_memory(file_system: &str) -> bool {
    IN_MEMORY.contains(&file_system)
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
        assert!(!file_system(Path::new("/")).is_empty());
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            assert!(is_in_memory(&file_system(memory)), "{}", file_system(memory));
        }
        assert!(!is_in_memory(&file_system(Path::new("/proc"))));
        assert_eq!(file_system(Path::new("/nowhere")), "");
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 6\nmodel name\t: A processor\nMODEL=\"x\"\n";
        assert_eq!(field(text, "model name", ':'), "A processor");
        assert_eq!(field(text, "nothing", ':'), "");
    }
}
