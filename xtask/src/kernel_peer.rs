//! Our DCCP against the last kernels that had one: `cargo xtask kernel-peer`.
//!
//! Linux removed DCCP in 6.16, so the running kernel may not have it. Debian's 6.1 cloud kernel carries
//! `dccp.ko` with CCID 2 and CCID 3; it boots under qemu without hardware support, without root and without a
//! disk: its network card is a UDP socket on loopback that carries Ethernet frames. `guest.c` is its only
//! process; our end is the example `dccp_kernel_peer` of `talkpath-kernel`.
//!
//! ```text
//!   guest.c ── DCCP of Linux 6.1 ── virtio-net ══ frames over UDP ══ dccp_kernel_peer ── our DCCP
//! ```
//!
//! If a part is missing (qemu, a C compiler, the packages), it says which and how to get it, and counts as
//! skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::cargo;
use crate::cpio::Archive;

/// Runs both roles with both CCIDs; a session each.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let folder = root.join("target").join("kernel-peer");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let kernel = match prepare(root, &folder, &GUEST) {
        Ok(kernel) => kernel,
        Err(why) => {
            println!("kernel-peer: skipped: {why}");
            return Ok(format!("kernel-peer: 0 passed, 0 failed, {} skipped", SESSIONS.len()));
        }
    };
    let peer = build_peer(root)?;
    let mut failed = 0;
    for session in &SESSIONS {
        match hold(session, &folder, &kernel, &peer) {
            Ok(said) => println!("kernel-peer: {session}: ok\n{said}"),
            Err(why) => {
                failed += 1;
                println!("kernel-peer: {session}: FAILED\n{why}");
            }
        }
    }
    let closing = format!("kernel-peer: {} passed, {failed} failed", SESSIONS.len() - failed);
    if failed == 0 { Ok(closing) } else { Err(closing) }
}

/// One boot: the kernel's role, and the CCID of both directions.
struct Session {
    guest: &'static str,
    ccid: u8,
}

const SESSIONS: [Session; 4] = [
    Session { guest: "server", ccid: 2 },
    Session { guest: "server", ccid: 3 },
    Session { guest: "client", ccid: 2 },
    Session { guest: "client", ccid: 3 },
];

/// Messages a session; the sender numbers them.
const MESSAGES: u32 = 200;

/// A boot takes 5 to 12 s of a free core, the messages 4 s. The limit is fifty times that, so that slow work
/// is not taken for a hang.
const LIMIT: Duration = Duration::from_secs(600);

/// Our end ends on its own within this of the machine's; chosen, and long for a machine that does much
/// besides.
const LINGER: Duration = Duration::from_secs(60);

impl std::fmt::Display for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the kernel as {}, CCID {}", self.guest, self.ccid)
    }
}

/// What a boot needs of the kernel.
pub(crate) struct Kernel {
    pub(crate) image: PathBuf,
    pub(crate) initramfs: PathBuf,
}

/// A program that is a booted kernel's only process.
pub(crate) struct Guest {
    /// Its source, in `xtask/kernel-peer`.
    pub(crate) source: &'static str,
    /// The modules that it needs; what these need comes with them.
    pub(crate) modules: &'static [&'static str],
    /// Programs of this machine that it calls in `/sbin`; their libraries come with them.
    pub(crate) programs: &'static [&'static str],
    /// Files that it reads in `/`, with their contents.
    pub(crate) files: Vec<(&'static str, String)>,
}

impl Guest {
    /// A program that needs these modules and nothing else.
    pub(crate) const fn new(source: &'static str, modules: &'static [&'static str]) -> Self {
        Self { source, modules, programs: &[], files: Vec::new() }
    }
}

const GUEST: Guest = Guest::new("guest.c", &["virtio_pci", "virtio_net", "dccp_ipv4"]);

/// The kernel's image, taken out of its package, and an initramfs with its modules and our program; `Err`
/// says what is missing.
pub(crate) fn prepare(root: &Path, folder: &Path, guest: &Guest) -> Result<Kernel, String> {
    let needed =
        [("qemu-system-x86_64", "qemu-system-x86"), ("cc", "gcc"), ("apt-get", "apt"), ("dpkg", "dpkg")];
    let called = guest.programs.iter().map(|program| (*program, "iproute2"));
    for (program, package) in needed.into_iter().chain(called) {
        if installed(program).is_none() {
            return Err(format!("{program} is not installed; Debian's package {package} has it"));
        }
    }
    if !output(Command::new("qemu-system-x86_64").args(["-netdev", "help"]))?.contains("dgram") {
        return Err("this qemu has no `-netdev dgram`: 7.2 is the first that does".to_owned());
    }
    let unpacked = folder.join("unpacked");
    if find(&unpacked, "dccp_ipv4.ko").is_none() {
        fetch_kernel(folder, &unpacked)?;
    }
    let image = fs::read_dir(unpacked.join("boot"))
        .ok()
        .and_then(|mut entries| {
            entries.find_map(|entry| {
                entry.ok().filter(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz"))
            })
        })
        .ok_or("the kernel's package holds no vmlinuz")?
        .path();
    let initramfs = folder.join(guest.source).with_extension("cpio");
    fs::write(&initramfs, pack(root, folder, &unpacked, guest)?)
        .map_err(|error| format!("{}: {error}", initramfs.display()))?;
    Ok(Kernel { image, initramfs })
}

/// Downloads the kernel's package and unpacks it; nothing is installed.
fn fetch_kernel(folder: &Path, unpacked: &Path) -> Result<(), String> {
    let package = match kernel_package() {
        Some(package) => package,
        None => {
            // A fresh machine has no lists of packages.
            output(Command::new("apt-get").args(["-o", "Acquire::Retries=3", "update", "-qq"]))?;
            kernel_package().ok_or("apt knows no linux-image-cloud-amd64")?
        }
    };
    let options = ["-o", "Acquire::Retries=3", "download"];
    output(Command::new("apt-get").current_dir(folder).args(options).arg(&package))?;
    let archive = fs::read_dir(folder)
        .map_err(|error| error.to_string())?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|it| it == "deb"))
        .ok_or("apt-get downloaded nothing")?;
    output(Command::new("dpkg").arg("-x").args([&archive, &unpacked.to_path_buf()]))?;
    match find(unpacked, "dccp_ipv4.ko") {
        Some(_) => Ok(()),
        None => Err(format!("{package} carries no DCCP: only kernels before 6.16 do")),
    }
}

/// The package that Debian's meta-package for the cloud kernel depends on at present.
fn kernel_package() -> Option<String> {
    let depends = output(Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"])).ok()?;
    depends.lines().find_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned)
}

/// The initramfs: the program as /init, and the modules under names that sort in loading order.
fn pack(root: &Path, folder: &Path, unpacked: &Path, guest: &Guest) -> Result<Vec<u8>, String> {
    let init = folder.join("init");
    output(
        Command::new("cc")
            .args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&init)
            .arg(root.join("xtask/kernel-peer").join(guest.source)),
    )?;
    let mut archive = Archive::new();
    for directory in ["dev", "modules", "proc", "sys"] {
        archive.directory(directory);
    }
    archive.file("init", &read(&init)?);
    for (name, contents) in &guest.files {
        archive.file(name, contents.as_bytes());
    }
    for (path, contents) in programs_with_libraries(guest.programs)? {
        for directory in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            archive.directory(&directory.to_string_lossy());
        }
        archive.file(&path.to_string_lossy(), &contents);
    }
    let mut modules = Vec::new();
    for module in guest.modules {
        add_with_dependencies(module, unpacked, &mut modules)?;
    }
    for (place, (module, contents)) in modules.iter().enumerate() {
        archive.file(&format!("modules/{place:02}-{module}.ko"), contents);
    }
    Ok(archive.finish())
}

/// Programs as `sbin/NAME`, and the libraries that they are linked with where ldd(1) finds them; paths from
/// the root.
fn programs_with_libraries(names: &[&str]) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    for name in names {
        let program = installed(name).ok_or(format!("{name} is not installed"))?;
        files.insert(Path::new("sbin").join(name), read(&program)?);
        let libraries = output(Command::new("ldd").arg(&program))?;
        for path in libraries.split_whitespace().filter_map(|word| word.strip_prefix('/')) {
            files.insert(PathBuf::from(path), read(&Path::new("/").join(path))?);
        }
    }
    Ok(files)
}

/// Adds a module behind those that its `depends=` entry names (Linux, scripts/mod/modpost.c).
fn add_with_dependencies(
    module: &str,
    unpacked: &Path,
    modules: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), String> {
    if modules.iter().any(|(name, _)| name == module) {
        return Ok(());
    }
    let path = find(unpacked, &format!("{module}.ko")).ok_or(format!("the package has no {module}.ko"))?;
    let contents = read(&path)?;
    for needed in depends(&contents) {
        add_with_dependencies(&needed, unpacked, modules)?;
    }
    modules.push((module.to_owned(), contents));
    Ok(())
}

/// The names in a module's `depends=` entry, which ends with a zero byte.
fn depends(module: &[u8]) -> Vec<String> {
    let entry = module.split(|&byte| byte == 0).find_map(|text| text.strip_prefix(b"depends="));
    let names = String::from_utf8_lossy(entry.unwrap_or_default()).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Our end, built; the path of its program.
fn build_peer(root: &Path) -> Result<PathBuf, String> {
    let example = ["build", "-q", "-p", "talkpath-kernel", "--example", "dccp_kernel_peer"];
    let messages = output(cargo(root, &example).arg("--message-format=json"))?;
    let program = messages
        .lines()
        .find(|line| line.contains("\"dccp_kernel_peer\""))
        .and_then(|line| line.split_once("\"executable\":\"").and_then(|(_, rest)| rest.split('"').next()));
    program.map(PathBuf::from).ok_or("cargo built no dccp_kernel_peer".to_owned())
}

/// Boots, talks, waits for both ends, and judges what they said.
fn hold(session: &Session, folder: &Path, kernel: &Kernel, peer: &Path) -> Result<String, String> {
    let [ours, guests] = two_ports()?;
    let ours_said = folder.join("ours.txt");
    let guest_said = folder.join("guest.txt");
    let mut host = Command::new(peer)
        .args(["--port", &ours.to_string(), "--peer", &guests.to_string()])
        .args(["--role", if session.guest == "server" { "client" } else { "server" }])
        .args(["--ccid", &session.ccid.to_string(), "--messages", &MESSAGES.to_string()])
        .stdin(Stdio::null())
        .stdout(create(&ours_said)?)
        .spawn()
        .map_err(|error| format!("{}: {error}", peer.display()))?;
    let mut machine = boot(session, kernel, [ours, guests], &guest_said)?;
    let began = Instant::now();
    let ended = wait(&mut machine, began, LIMIT).and_then(|()| wait(&mut host, Instant::now(), LINGER));
    for child in [&mut host, &mut machine] {
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = format!("{}{}", guest_lines(&guest_said)?, fs::read_to_string(&ours_said).unwrap_or_default());
    match ended.and_then(|()| expect(session, &said)) {
        Ok(()) => Ok(said),
        Err(why) => Err(format!("{said}{why}")),
    }
}

fn boot(session: &Session, kernel: &Kernel, ports: [u16; 2], said: &Path) -> Result<Child, String> {
    let [ours, guests] = ports;
    let role = format!("role={} ccid={} messages={MESSAGES}", session.guest, session.ccid);
    let network = format!(
        "dgram,id=n0,local.type=inet,local.host=127.0.0.1,local.port={guests},\
         remote.type=inet,remote.host=127.0.0.1,remote.port={ours}"
    );
    let devices = ["-netdev", &network, "-device", "virtio-net-pci,netdev=n0,romfile="];
    machine(kernel, ("256", &role), &devices, said)
}

/// Starts `kernel` in a machine with as many MiB of memory as said, words for its first process and devices
/// of its own. Its console goes to `said`.
pub(crate) fn machine(
    kernel: &Kernel,
    (memory, words): (&str, &str),
    devices: &[&str],
    said: &Path,
) -> Result<Child, String> {
    Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg", "-cpu", "max", "-m", memory, "-display", "none", "-nodefaults", "-no-reboot"])
        .args(["-serial", "stdio", "-kernel"])
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&kernel.initramfs)
        .args(["-append", &format!("console=ttyS0 quiet panic=-1 {words}")])
        .args(devices)
        .stdin(Stdio::null())
        .stdout(create(said)?)
        .spawn()
        .map_err(|error| format!("qemu-system-x86_64: {error}"))
}

/// What both ends must have said.
fn expect(session: &Session, said: &str) -> Result<(), String> {
    let all = [
        format!("guest: connected: tx_ccid {0} rx_ccid {0}", session.ccid),
        match session.guest {
            "server" => format!("guest: received {MESSAGES} messages, {MESSAGES} good"),
            _ => format!("ours: received {MESSAGES} messages, {MESSAGES} good"),
        },
        "guest: done".to_owned(),
        "ours: closed".to_owned(),
    ];
    match all.iter().find(|it| !said.contains(it.as_str())) {
        Some(absent) => Err(format!("nobody said `{absent}`")),
        None => Ok(()),
    }
}

pub(crate) fn wait(child: &mut Child, began: Instant, limit: Duration) -> Result<(), String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended with {status}")),
            Ok(None) if began.elapsed() > limit => return Err(format!("no end after {} s", limit.as_secs())),
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Our program's own lines of the console; the rest is the firmware's and the kernel's.
pub(crate) fn guest_lines(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes).replace('\r', "");
    let lines = text.lines().filter_map(|line| line.find("guest: ").map(|at| format!("{}\n", &line[at..])));
    Ok(lines.collect())
}

/// Two UDP ports of loopback that nobody has at the moment.
fn two_ports() -> Result<[u16; 2], String> {
    let free = || UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string());
    let sockets = [free()?, free()?];
    let [first, second] = sockets.map(|socket| socket.local_addr().map(|it| it.port()));
    match (first, second) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

/// Where a program is: in `PATH`, or where root's programs are, which not everybody's `PATH` names.
fn installed(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The first file of that name below `folder`.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).ok()?.filter_map(Result::ok).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    entries.iter().find_map(|entry| {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find(&path, name),
            _ => (entry.file_name().to_string_lossy() == name).then_some(path),
        }
    })
}

pub(crate) fn create(path: &Path) -> Result<fs::File, String> {
    fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What the command printed, if it ended well.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}").replace('"', "");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modules_dependencies_are_read_from_its_modinfo() {
        let section = b"\x7fELF\0license=GPL\0depends=virtio_ring,virtio\0retpoline=Y\0";
        assert_eq!(depends(section), ["virtio_ring", "virtio"]);
        assert!(depends(b"license=GPL\0depends=\0").is_empty() && depends(b"").is_empty());
    }
}
