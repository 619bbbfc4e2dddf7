//! What is handed to users: the package and the image, made from the binary under test, and the
//! pages in them. `make release` makes them from a static one.
#![allow(clippy::print_stderr, reason = "a test")]

mod booted;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::client::{Client, Reply};
use tests::observe::wait_until;
use tests::peers;
use tests::process::ask_to_end;
use tests::server::{dunlin_binary, free_port, repository};

/// What a script exits with where it may not do what it needs.
const SKIPPED: i32 = 77;

fn script(name: &str) -> Command {
    let mut command = Command::new(repository().join("scripts").join(name));
    command.stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: Output) -> Result<String> {
    ensure!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    Ok(text(&output.stdout))
}

/// The binary under test without what only debuggers read, made anew by each run.
fn stripped() -> Result<PathBuf> {
    static STRIPPED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let strip = || -> Result<PathBuf> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let made = tempfile::Builder::new().prefix("dunlin-").tempfile_in(directory)?;
        let mut command = Command::new("strip");
        succeeded(command.arg("-o").arg(made.path()).arg(dunlin_binary()?).output()?)?;
        // Another run may use the old one.
        let stripped = directory.join("dunlin-stripped");
        fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755))?;
        made.persist(&stripped)?;
        Ok(stripped)
    };
    match STRIPPED.get_or_init(|| strip().map_err(|error| error.to_string())) {
        Ok(stripped) => Ok(stripped.clone()),
        Err(error) => bail!("{error}"),
    }
}

fn page(name: &str) -> Result<String> {
    succeeded(Command::new(dunlin_binary()?).args(["docs", name]).output()?)
}

// ---- Pages --------------------------------------------------------------------------------------

#[test]
fn the_commented_configuration_states_the_defaults() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("dunlin.conf");
    let check = |content: &str| -> Result<String> {
        fs::write(&file, content)?;
        let output = Command::new(dunlin_binary()?).arg("check").arg(&file).output()?;
        succeeded(output)
    };
    let commented = page("configuration")?;
    check(&commented)?;
    let is_directive = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    let lines: Vec<&str> = commented.lines().filter(is_directive).map(|line| &line[1..]).collect();
    ensure!(lines.len() > 100 && lines.contains(&"port 6379"), "{lines:?}");
    let shown = check(&lines.join("\n"))?;
    ensure!(!shown.contains("note:"), "a directive without effect: {shown}");
    ensure!(!commented.lines().any(|line| line.len() > 120 && line.starts_with("# ")), "too wide");
    Ok(())
}

#[test]
fn pages_of_the_manual_have_all_directives_and_commands() -> Result<()> {
    let (manual, of_file) = (page("dunlin.1")?, page("dunlin.conf.5")?);
    for page in [&manual, &of_file] {
        ensure!(page.starts_with(".TH \"DUNLIN") && page.contains("\n.SH NAME\n"));
        // Nothing of the text is taken for an instruction.
        let known = [".TH", ".SH", ".nf", ".fi", ".TP", ".B ", ".BR", ".br"];
        let wrong = page.lines().find(|line| {
            line.starts_with(['.', '\'']) && !known.iter().any(|own| line.starts_with(own))
        });
        ensure!(wrong.is_none(), "{wrong:?}");
    }
    for word in ["dunlin health", "dunlin container", "dunlin tls dev", "\\-\\-fix"] {
        ensure!(manual.contains(word), "{word}");
    }
    for name in ["maxmemory 0", "tls\\-port 0", "appendfsync everysec"] {
        ensure!(of_file.contains(&format!("\n.B {name}\n")), "{name}");
    }
    Ok(())
}

#[test]
fn bash_completes_command_lines() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("completion");
    fs::write(&file, page("completion.bash")?)?;
    let complete = |words: &[&str]| -> Result<BTreeSet<String>> {
        let last = words.len() - 1;
        let script = format!(
            ". {}; COMP_WORDS=({}); COMP_CWORD={last}; _dunlin; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" ")
        );
        let shown = succeeded(Command::new("bash").args(["-c", &script]).output()?)?;
        Ok(shown.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    };
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    ensure!(complete(&["dunlin", "hea"])? == set(&["health"]));
    ensure!(complete(&["dunlin", "serve", "--maxmemory-p"])? == set(&["--maxmemory-policy"]));
    ensure!(complete(&["dunlin", "--appendf"])?.contains("--appendfsync"));
    ensure!(complete(&["dunlin", "health", "--li"])? == set(&["--live"]));
    ensure!(complete(&["dunlin", "check", "--f"])? == set(&["--fix"]));
    ensure!(complete(&["dunlin", "serve", "some.co"])?.is_empty(), "files are bash's own");
    Ok(())
}

#[test]
fn the_version_has_the_commit() -> Result<()> {
    let shown = succeeded(Command::new(dunlin_binary()?).arg("--version").output()?)?;
    let version = env!("CARGO_PKG_VERSION");
    ensure!(shown.starts_with(&format!("Dunlin server v={version} ")), "{shown}");
    let mut words = shown.split_whitespace();
    if let Some(commit) = words.find_map(|word| word.strip_prefix("commit=")) {
        ensure!(commit.len() >= 7 && commit.bytes().all(|own| own.is_ascii_hexdigit()), "{shown}");
    }
    Ok(())
}

// ---- What it is made of -------------------------------------------------------------------------

#[test]
fn the_bill_of_materials_is_complete_and_consistent() -> Result<()> {
    let document: Value = serde_json::from_str(&succeeded(script("make-sbom").output()?)?)?;
    ensure!(document["bomFormat"] == "CycloneDX" && document["specVersion"] == "1.5");
    let serial = document["serialNumber"].as_str().context("a serial number")?;
    ensure!(serial.starts_with("urn:uuid:") && serial.len() == 45, "{serial}");
    let program = &document["metadata"]["component"];
    ensure!(program["type"] == "application" && program["name"] == "dunlin");
    ensure!(program["version"] == env!("CARGO_PKG_VERSION"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let reference = |own: &Value| own["bom-ref"].as_str().unwrap_or_default().to_owned();
    let components = list(&document["components"]);
    let mut references: BTreeSet<String> = components.iter().map(reference).collect();
    ensure!(references.len() == components.len(), "each once");
    references.insert(reference(program));
    let lock = fs::read_to_string(repository().join("Cargo.lock"))?;
    for component in &components {
        let [name, version] = ["name", "version"].map(|own| component[own].as_str());
        let (name, version) = (name.context("a name")?, version.context("a version")?);
        ensure!(component["type"] == "library" && component["licenses"].is_array(), "{component}");
        ensure!(component["purl"] == format!("pkg:cargo/{name}@{version}"), "{component}");
        let known = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        let (_, locked) = lock.split_once(&known).with_context(|| known.clone())?;
        let locked = locked.split("\n\n").next().unwrap_or_default();
        match component["hashes"][0]["content"].as_str() {
            Some(sum) => ensure!(locked.contains(&format!("checksum = \"{sum}\"")), "{name}"),
            None => ensure!(!locked.contains("checksum"), "{name}"),
        }
    }
    let graph = list(&document["dependencies"]);
    for own in &graph {
        let needed = list(&own["dependsOn"]);
        let all = needed.iter().chain([&own["ref"]]).filter_map(Value::as_str);
        for name in all {
            ensure!(references.contains(name), "{name} is not listed");
        }
    }
    ensure!(graph.len() == references.len());
    let has = |name: &str| components.iter().any(|own| own["name"] == name);
    for name in ["rustls", "ring", "tikv-jemalloc-sys", "sd-notify", "engine"] {
        ensure!(has(name), "{name}");
    }
    for name in ["proptest", "libtest-mimic", "tests", "windows-sys"] {
        ensure!(!has(name), "{name} is not in the program");
    }
    Ok(())
}

// ---- The package --------------------------------------------------------------------------------

/// A Debian system of its own in a directory, and a right to enter it.
struct Root(TempDir);

impl Root {
    /// `None` where there is none to be had.
    fn new() -> Result<Option<Root>> {
        let made = peers::directory().join("debian");
        let may_enter = Command::new("chroot").arg(&made).arg("true").output()?.status.success();
        if !may_enter {
            return Ok(None);
        }
        let directory = tempfile::Builder::new().prefix("dunlin-test-").tempdir()?;
        let copy =
            Command::new("cp").arg("-a").arg("-T").arg(&made).arg(directory.path()).output()?;
        succeeded(copy)?;
        Ok(Some(Root(directory)))
    }

    fn path(&self, inner: &str) -> PathBuf {
        self.0.path().join(inner.trim_start_matches('/'))
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("chroot");
        command.arg(self.0.path()).args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command.env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        succeeded(command.stdin(Stdio::null()).output()?).with_context(|| format!("{words:?}"))
    }

    fn install(&self, package: &Path) -> Result<()> {
        fs::copy(package, self.path("/package.deb"))?;
        let options = ["--force-confold", "--force-unsafe-io"];
        self.run(&[&["dpkg"][..], &options, &["-i", "/package.deb"]].concat()).map(drop)
    }

    /// Owner, group and mode, as names and a number.
    fn owner(&self, file: &str) -> Result<String> {
        Ok(self.run(&["stat", "-c", "%U:%G %a", file])?.trim().to_owned())
    }

    /// Starts the service as its unit does.
    fn start(&self, port: u16) -> Result<Child> {
        let mut command = Command::new("chroot");
        command.args(["--userspec=dunlin:dunlin"]).arg(self.0.path());
        command.args(["/usr/bin/dunlin", "serve", "/etc/dunlin/dunlin.conf", "--port"]);
        command.arg(port.to_string()).args(["--http-port", "0"]);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
    }
}

fn make_package(to: &Path, version: &str) -> Result<PathBuf> {
    let mut make = script("make-package");
    // To compress it takes a minute.
    make.arg(stripped()?).arg(to).arg(version).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    Ok(PathBuf::from(succeeded(make.output()?)?.trim()))
}

fn ask(port: u16, words: &[&str]) -> Result<Reply> {
    wait_until("a server that answers", || Ok(Client::connect(port).is_ok()))?;
    Client::connect(port)?.call(words)
}

fn end(mut child: Child) -> Result<()> {
    ask_to_end(child.id())?;
    wait_until("the end", || Ok(child.try_wait()?.is_some()))?;
    ensure!(child.wait()?.success());
    Ok(())
}

#[test]
fn the_package_is_installed_upgraded_removed_and_purged() -> Result<()> {
    let Some(root) = Root::new()? else {
        eprintln!("Not tried: no system to enter. scripts/install-peers makes one, for root.");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let [first, second] = ["7.0.0", "7.1.0"].map(|own| make_package(directory.path(), own));
    let (first, second) = (first?, second?);

    root.install(&first)?;
    for (file, owner) in [
        ("/usr/bin/dunlin", "root:root 755"),
        ("/etc/dunlin", "root:dunlin 2770"),
        ("/etc/dunlin/dunlin.conf", "dunlin:dunlin 640"),
        ("/var/lib/dunlin", "dunlin:dunlin 750"),
        ("/var/log/dunlin", "dunlin:adm 2750"),
        ("/usr/lib/systemd/system/dunlin.service", "root:root 644"),
        ("/usr/share/man/man1/dunlin.1.gz", "root:root 644"),
        ("/usr/share/man/man5/dunlin.conf.5.gz", "root:root 644"),
        ("/usr/share/bash-completion/completions/dunlin", "root:root 644"),
        ("/usr/share/doc/dunlin/dunlin.cdx.json", "root:root 644"),
    ] {
        let found = root.owner(file)?;
        ensure!(found == owner, "{file}: {found}");
    }
    ensure!(root.run(&["dunlin", "--version"])?.starts_with("Dunlin server v="));
    root.run(&["dpkg", "--verify", "dunlin"])?;
    let account = root.run(&["getent", "passwd", "dunlin"])?;
    ensure!(account.trim().ends_with("/usr/sbin/nologin"), "{account}");

    let port = free_port()?;
    let server = root.start(port)?;
    ensure!(ask(port, &["PING"])? == Reply::Status(b"PONG".to_vec()));
    ensure!(!ask(port, &["SET", "key", "value"])?.is_error());
    // Sentinel has it written after a failover.
    ensure!(!ask(port, &["CONFIG", "SET", "timeout", "77"])?.is_error());
    ensure!(!ask(port, &["CONFIG", "REWRITE"])?.is_error());
    end(server)?;
    ensure!(root.owner("/var/lib/dunlin/dump.rdb")? == "dunlin:dunlin 640");

    root.install(&second)?;
    let shown = root.run(&["dpkg-query", "-W", "-f", "${Version} ${Status}", "dunlin"])?;
    ensure!(shown == "7.1.0 install ok installed", "{shown}");
    let kept = fs::read_to_string(root.path("/etc/dunlin/dunlin.conf"))?;
    ensure!(kept.contains("\ntimeout 77\n"), "the administrator's file stays");
    ensure!(root.owner("/etc/dunlin/dunlin.conf")? == "dunlin:dunlin 640");
    let server = root.start(port)?;
    ensure!(ask(port, &["GET", "key"])? == Reply::Bulk(b"value".to_vec()));
    end(server)?;

    root.run(&["dpkg", "-r", "dunlin"])?;
    ensure!(!root.path("/usr/bin/dunlin").exists());
    ensure!(root.path("/etc/dunlin/dunlin.conf").exists(), "a removal keeps the configuration");
    ensure!(root.path("/var/lib/dunlin/dump.rdb").exists(), "and the data");
    fs::create_dir(root.path("/var/lib/dunlin-other"))?;
    root.run(&["dpkg", "-P", "dunlin"])?;
    for gone in ["/etc/dunlin", "/var/lib/dunlin", "/var/log/dunlin", "/usr/share/doc/dunlin"] {
        ensure!(!root.path(gone).exists(), "{gone}");
    }
    ensure!(root.path("/var/lib/dunlin-other").exists(), "that is another server's");
    ensure!(root.run(&["getent", "passwd", "dunlin"]).is_err());
    let left =
        root.run(&["find", "/", "-xdev", "-name", "*dunlin*", "-not", "-path", "/proc/*"])?;
    let left: Vec<_> = left.lines().filter(|own| *own != "/var/lib/dunlin-other").collect();
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

// ---- The image ----------------------------------------------------------------------------------

struct Image {
    directory: TempDir,
}

impl Image {
    fn make() -> Result<Image> {
        let directory = tempfile::Builder::new().prefix("dunlin-test-").tempdir()?;
        let mut make = script("make-image");
        make.arg(stripped()?).arg(directory.path().join("image"));
        succeeded(make.output()?)?;
        let volume = directory.path().join("volume");
        fs::create_dir(&volume)?;
        Ok(Image { directory })
    }

    fn json(&self, file: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&fs::read(self.directory.path().join("image").join(file))?)?)
    }

    /// The blob that a descriptor names, whose size and digest are as it says.
    fn blob(&self, descriptor: &Value) -> Result<PathBuf> {
        let digest = descriptor["digest"].as_str().context("a digest")?;
        let path = self.directory.path().join("image/blobs").join(digest.replace(':', "/"));
        ensure!(descriptor["size"] == fs::metadata(&path)?.len());
        let sum = succeeded(Command::new("sha256sum").arg(&path).output()?)?;
        ensure!(digest.strip_prefix("sha256:") == sum.split(' ').next(), "{digest} {sum}");
        Ok(path)
    }

    fn run(&self, options: &[&str], arguments: &[&str]) -> Command {
        let mut command = script("run-image");
        command.arg("-v").arg(self.directory.path().join("volume")).args(options);
        command.arg(self.directory.path().join("image")).arg(self.directory.path().join("root"));
        command.args(arguments);
        command
    }
}

#[test]
fn the_image_is_an_oci_layout() -> Result<()> {
    let image = Image::make()?;
    ensure!(image.json("oci-layout")?["imageLayoutVersion"] == "1.0.0");
    let index = image.json("index.json")?;
    let manifest: Value = serde_json::from_slice(&fs::read(image.blob(&index["manifests"][0])?)?)?;
    let config: Value = serde_json::from_slice(&fs::read(image.blob(&manifest["config"])?)?)?;
    let layer = image.blob(&manifest["layers"][0])?;
    let plain = Command::new("gzip").arg("-dc").arg(&layer).output()?.stdout;
    let file = image.directory.path().join("layer.tar");
    fs::write(&file, plain)?;
    let sum = succeeded(Command::new("sha256sum").arg(&file).output()?)?;
    let sum = sum.split(' ').next().unwrap_or_default();
    ensure!(config["rootfs"]["diff_ids"][0] == format!("sha256:{sum}"));
    let config = &config["config"];
    ensure!(config["User"] == "65532:65532" && config["StopSignal"] == "SIGTERM");
    ensure!(config["Volumes"]["/data"].is_object());
    ensure!(config["Healthcheck"]["Test"][2] == "health");
    let listed = succeeded(Command::new("tar").arg("-tvf").arg(&file).output()?)?;
    let data = listed.lines().find(|line| line.ends_with(" data/")).context("a volume")?;
    ensure!(data.starts_with("drwxr-x--- 65532/65532 "), "{data}");
    ensure!(!listed.contains("w-r-x") && !listed.contains("bin/sh"), "{listed}");
    Ok(())
}

#[test]
fn the_image_runs_without_rights_on_a_root_that_cannot_be_written() -> Result<()> {
    run_image(None)
}

#[test]
fn a_runtime_of_containers_runs_the_image() -> Result<()> {
    run_image(Some("runc"))
}

/// Runs an image as a runtime does, or by a real one.
fn run_image(runtime: Option<&str>) -> Result<()> {
    let image = Image::make()?;
    let (port, http) = (free_port()?.to_string(), free_port()?.to_string());
    let volume = image.directory.path().join("volume");
    // As for a volume that a runtime makes.
    if std::os::unix::fs::chown(&volume, Some(65532), Some(65532)).is_err() {
        eprintln!("Not tried: only root may run an image.");
        return Ok(());
    }
    let environment = [
        format!("REDIS_PORT={port}"),
        "REDIS_PASSWORD=geheim".to_owned(),
        format!("REDIS_HTTP_PORT={http}"),
    ];
    let name = format!("dunlin-test-{port}");
    let by = runtime.map_or_else(Vec::new, |runtime| vec!["--runtime", runtime]);
    let options: Vec<&str> =
        environment.iter().flat_map(|own| ["-e", own.as_str()]).chain(by.iter().copied()).collect();
    let own_options = match runtime {
        Some(_) => [&*options, &["--name", &name]].concat(),
        None => options.clone(),
    };
    let arguments = ["redis-server", "--save", "3600 1", "--enable-protected-configs", "yes"];
    let log = image.directory.path().join("log");
    let file = fs::File::create(&log)?;
    let mut command = image.run(&own_options, &arguments);
    let mut child = command.stdout(file.try_clone()?).stderr(file).spawn()?;
    let mut ended = None;
    wait_until("a container that serves", || {
        ended = child.try_wait()?;
        let is_ready = fs::read_to_string(&log)?.contains("Ready to accept connections");
        Ok(ended.is_some() || is_ready)
    })?;
    if ended.is_some_and(|status| status.code() == Some(SKIPPED)) {
        eprintln!("Not tried: {}", fs::read_to_string(&log)?);
        return Ok(());
    }
    ensure!(ended.is_none(), "{}", fs::read_to_string(&log)?);

    let process = match runtime {
        Some(runtime) => {
            let state = Command::new(runtime).args(["state", &name]).output()?;
            let state: Value = serde_json::from_str(&succeeded(state)?)?;
            state["pid"].as_u64().context("a process")?
        }
        None => u64::from(child.id()),
    };
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    for line in ["Uid:\t65532\t65532\t65532\t65532", "Groups:\t \n", "CapEff:\t0000000000000000"] {
        ensure!(status.contains(line), "{line}: {status}");
    }
    let health = |more: &[&str]| -> Result<Output> {
        let mut command = image.run(&options, more);
        Ok(command.output()?)
    };
    ensure!(health(&["health"])?.status.success(), "{:?}", health(&["health"])?);
    ensure!(health(&["health", "--http"])?.status.success());
    ensure!(health(&["health", "-a", "wrong"])?.status.code() == Some(1));

    let mut client = Client::connect(port.parse()?)?;
    ensure!(client.call(&["PING"])?.is_error(), "it wants a password");
    ensure!(!client.call(&["AUTH", "geheim"])?.is_error());
    ensure!(!client.call(&["SET", "key", "value"])?.is_error());
    // Nothing but the volume can be written to.
    ensure!(!client.call(&["CONFIG", "SET", "dir", "/usr"])?.is_error());
    ensure!(client.call(&["SAVE"])?.is_error());
    ensure!(!client.call(&["CONFIG", "SET", "dir", "/data"])?.is_error());
    end(child)?;
    let saved = fs::metadata(volume.join("dump.rdb"))?;
    ensure!(saved.uid() == 65532 && saved.permissions().mode() & 0o777 == 0o640);

    // Without a password or a word it does not start.
    let output = image.run(&[&["-e", &environment[0]], &*by].concat(), &[]).output()?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(text(&output.stdout).contains("ALLOW_EMPTY_PASSWORD=yes"), "{output:?}");
    Ok(())
}
