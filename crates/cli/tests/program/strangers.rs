//! `talkpath shell` and other users: no way to more rights than the user has, and no way in for anybody
//! else. The other user is `nobody`, which only root can become.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::{Bench, Seen, first_line, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_talkpath");

/// Starts `talkpath shell` with these arguments. Its sockets are below the bench's folder `run`.
fn start(bench: &Bench, arguments: &[&str]) -> Child {
    let mut command = bench.command(&[&["shell"], arguments].concat());
    fs::create_dir_all(bench.path("run")).unwrap();
    command.env("XDG_RUNTIME_DIR", bench.path("run")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs `talkpath shell` to its end; `None` where this machine does not allow it, which is printed.
fn run(bench: &Bench, arguments: &[&str]) -> Option<Seen> {
    let seen = Seen::of_child(start(bench, arguments));
    if seen.code == Some(125) && seen.err.contains("help:") {
        eprintln!("SKIP: no network namespaces here: {}", seen.err);
        return None;
    }
    Some(seen)
}

/// `nobody`, in a folder of its own, with a copy of the program.
struct Nobody<'a> {
    bench: &'a Bench,
}

impl<'a> Nobody<'a> {
    /// Returns `None` where this test cannot become another user, which is printed.
    fn new(bench: &'a Bench) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err()
        {
            eprintln!("SKIP: only root can become another user, by setpriv (util-linux)");
            return None;
        }
        fs::create_dir(bench.path("nobody")).unwrap();
        for (folder, mode) in [("", 0o755), ("nobody", 0o777)] {
            fs::set_permissions(bench.path(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
        // The program may lie where only root can go.
        fs::copy(PROGRAM, bench.path("talkpath")).unwrap();
        Some(Self { bench })
    }

    /// A command that becomes this user without a capability, not started yet.
    fn command(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = self.bench.prepared(Command::new("setpriv"), &[]);
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]);
        command.arg(program.as_ref()).args(arguments).current_dir(self.bench.path("nobody"));
        command.env("XDG_RUNTIME_DIR", self.bench.path("nobody"));
        command
    }

    fn shell(&self, arguments: &[&str]) -> Seen {
        let all = [&["shell"], arguments].concat();
        Seen::of(self.command(self.bench.path("talkpath"), &all).output().unwrap())
    }
}

/// The user namespace maps one user alone, so the owner of such a program, root, is nobody in it.
#[test]
fn a_program_with_the_setuid_bit_gives_no_other_user_in_the_shell() {
    let bench = Bench::new();
    let Some(nobody) = Nobody::new(&bench) else { return };
    let program = bench.path("set-uid-id");
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let outside = Seen::of(nobody.command(&program, &["-u"]).output().unwrap());
    if outside.out != "0\n" {
        return eprintln!("SKIP: the bit is ignored here: {}{}", outside.out, outside.err);
    }
    let seen = nobody.shell(&["-q", "--path", "lan", "--isolated", "--", &program.to_string_lossy(), "-u"]);
    if seen.code == Some(125) {
        return eprintln!("SKIP: user namespaces are not allowed here: {}", seen.err);
    }
    assert_eq!(seen.succeeds().out, "65534\n");
}

#[test]
fn a_command_gets_no_descriptor_of_ours() {
    let bench = Bench::new();
    let list = "ls /proc/self/fd | wc -l";
    let outside = Command::new("sh").args(["-c", list]).stdin(Stdio::null()).output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    let Some(seen) = run(&bench, &["-q", "--path", "lan", "--", "sh", "-c", list]) else { return };
    assert_eq!(seen.succeeds().out, outside);
    let far = start(&bench, &["-q", "--pair", "fds", "--", "sh", "-c", list]);
    run(&bench, &["-q", "--pair", "fds", "--path", "lan", "--", "sleep", "1"]).unwrap().succeeds();
    assert_eq!(Seen::of_child(far).out, outside);
}

/// The directory of the pair's socket, while a shell waits there.
#[test]
fn the_socket_of_a_pair_is_the_users_alone_and_another_user_finds_the_directory_closed() {
    let bench = Bench::new();
    let Some(nobody) = Nobody::new(&bench) else { return };
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    let near = start(&bench, &["--pair", "mine", "--path", "lan", "--", "sleep", "2"]);
    let directory = bench.path("run/talkpath");
    wait_until("the socket of the pair", || directory.join("mine.sock").exists());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&directory.join("mine.lock"))), (0o700, 0o600));
    let mut stranger = nobody.command(bench.path("talkpath"), &["shell", "--pair", "mine", "--", "true"]);
    let refused = Seen::of(stranger.env("XDG_RUNTIME_DIR", bench.path("run")).output().unwrap());
    refused.fails(125, &["run/talkpath belongs to another user"]);
    Seen::of_child(near).succeeds();
}

/// The directory is opened for others after the shell has made it, so that only the check of the connection
/// is left.
#[test]
fn another_user_who_reaches_the_socket_of_a_pair_gets_no_descriptor() {
    let bench = Bench::new();
    let Some(nobody) = Nobody::new(&bench) else { return };
    let Some(_) = run(&bench, &["--path", "lan", "--", "true"]) else { return };
    let python = nobody.command("python3", &["-c", "print(1)"]).output();
    if !python.is_ok_and(|output| output.stdout == b"1\n") {
        return eprintln!("SKIP: no python3 for another user here");
    }
    let near = start(&bench, &["--pair", "open", "--path", "lan", "--", "sleep", "4"]);
    let socket = bench.path("run/talkpath/open.sock");
    wait_until("the socket of the pair", || socket.exists());
    for path in [bench.path("run/talkpath"), socket.clone()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    // A guest of the same user gets one byte with the descriptors.
    let script = format!(
        "import socket, array\nguest = socket.socket(socket.AF_UNIX)\nguest.connect({:?})\nguest.settimeout(3)\n\
         data, more, _, _ = guest.recvmsg(1, socket.CMSG_SPACE(16 * array.array('i').itemsize))\nprint(len(data), len(more))\n",
        socket.display().to_string()
    );
    let ours = Seen::of(Command::new("python3").args(["-c", &script]).output().unwrap());
    let theirs = Seen::of(nobody.command("python3", &["-c", &script]).output().unwrap());
    assert_eq!((ours.out.as_str(), ours.err.as_str()), ("1 1\n", ""));
    assert_eq!((theirs.out.as_str(), theirs.err.as_str()), ("0 0\n", ""));
    Seen::of_child(near).succeeds();
}

/// Another user cannot lay a socket into the directory. If one came there nevertheless, its descriptors
/// would be a network that this user reads and writes.
#[test]
fn a_socket_that_another_user_serves_is_not_joined() {
    let bench = Bench::new();
    let Some(nobody) = Nobody::new(&bench) else { return };
    let script = "import socket, time\nserver = socket.socket(socket.AF_UNIX)\nserver.bind('theirs.sock')\nserver.listen()\n\
                  print('ready', flush=True)\ntime.sleep(20)\n";
    let mut server = nobody.command("python3", &["-c", script]);
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    if first_line(server.stdout.as_mut().unwrap()).is_empty() {
        server.wait().unwrap();
        return eprintln!("SKIP: no python3 for another user here");
    }
    let directory = bench.path("run/talkpath");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(bench.path("nobody/theirs.sock"), directory.join("theirs.sock")).unwrap();
    Seen::of_child(start(&bench, &["--pair", "theirs", "--", "true"]))
        .fails(125, &["belongs to another user"]);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_directory_of_sockets_that_is_a_link_or_open_to_others_is_refused_and_a_name_is_no_path() {
    let bench = Bench::new();
    let directory = bench.path("run/talkpath");
    fs::create_dir_all(bench.path("elsewhere")).unwrap();
    fs::create_dir_all(bench.path("run")).unwrap();
    symlink(bench.path("elsewhere"), &directory).unwrap();
    let near = ["--pair", "a", "--path", "lan", "--", "true"];
    Seen::of_child(start(&bench, &near)).fails(125, &["run/talkpath is no directory"]);
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o770)).unwrap();
    Seen::of_child(start(&bench, &near)).fails(125, &["chmod 700"]);
    for name in ["../a", "a/b", "/tmp/a", "..", ".a", "a\nb", ""] {
        Seen::of_child(start(&bench, &["--pair", name, "--path", "lan", "--", "true"]))
            .fails(125, &["--pair: expected a name"]);
    }
    assert_eq!(fs::read_dir(bench.path("elsewhere")).unwrap().count(), 0);
    assert!(bench.runs().is_empty());
}

/// Each user namespace has limits of its own (namespaces(7)), so this machine's is not touched: the test
/// makes a user namespace that allows none below it, and gives its capabilities up there.
#[test]
fn where_user_namespaces_are_forbidden_the_error_says_what_allows_them() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("run")).unwrap();
    let script = format!(
        "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all '{PROGRAM}' \"$@\""
    );
    let forbidden = |arguments: &[&str]| {
        let mut command =
            bench.prepared(Command::new("unshare"), &["--user", "--map-current-user", "--keep-caps"]);
        command.args(["sh", "-c", &script, "sh"]).args(arguments).env("XDG_RUNTIME_DIR", bench.path("run"));
        Seen::of(command.output().unwrap())
    };
    let seen = forbidden(&["shell", "--path", "lan", "--", "true"]);
    if ["unshare:", "sh: ", "setpriv:"].iter().any(|program| seen.err.starts_with(program)) {
        return eprintln!("SKIP: no user namespace with limits of its own can be made here: {}", seen.err);
    }
    let allow = "allow user namespaces: `sudo sysctl -w user.max_user_namespaces=10000`";
    seen.fails(125, &["this machine lets us make no network namespace", allow]);
    bench.file("a.toml", "duration = \"1 s\"\npath = \"lan\"\n[program]\ncommand = [\"true\"]\n");
    forbidden(&["run", "a.toml", "--allow-program"]).fails(3, &[allow]);
    let doctor = forbidden(&["doctor"]);
    assert!(doctor.succeeds().out.contains("emu              not here: "), "{}", doctor.out);
    assert!(doctor.out.contains(allow), "{}", doctor.out);
}
