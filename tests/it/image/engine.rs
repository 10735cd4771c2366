//! The container engine that runs the image: runc, if it is a folder in OCI layout (`oci:<folder>:<tag>`, unpacked by
//! umoci), else Docker or Podman. Containers share the network of this machine, where the servers listen on loopback.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::support::monitoring::program;
use crate::support::process::Tarsy;

static CONTAINERS: AtomicU32 = AtomicU32::new(0);

/// An image, and what runs it.
pub(super) enum Image {
    /// The folder of the layout, and its unpacked image.
    Runc {
        layout: PathBuf,
        bundle: tempfile::TempDir,
    },
    Engine {
        program: &'static str,
        name: String,
    },
}

/// A running container, with its id and the engine's program.
pub(super) struct Container {
    pub(super) process: Tarsy,
    id: String,
    engine: &'static str,
    _bundle: Option<tempfile::TempDir>,
}

#[derive(Debug)]
pub(super) struct Sizes {
    pub(super) program: u64,
    pub(super) unpacked: u64,
    /// `None` if the engine does not name it.
    pub(super) compressed: Option<u64>,
}

/// The kernel's report about the main process of a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Confinement {
    user_and_group: [String; 2],
    capabilities: [String; 3],
    no_new_privileges: String,
    root_is_read_only: bool,
}

impl Confinement {
    pub(super) fn expected() -> Self {
        let id = "65532\t65532\t65532\t65532".to_owned();
        Self {
            user_and_group: [id.clone(), id],
            capabilities: [const { "0000000000000000" }; 3].map(str::to_owned),
            no_new_privileges: "1".to_owned(),
            root_is_read_only: true,
        }
    }
}

/// The output of a program that has to succeed.
fn output(program: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("info")
        .output()
        .is_ok_and(|output| output.status.success())
}

impl Image {
    /// The image of `TARSY_TEST_IMAGE`; `None` is reported.
    pub(super) fn find() -> Option<Self> {
        let image = program("TARSY_TEST_IMAGE")?
            .into_os_string()
            .into_string()
            .unwrap();
        let Some(layout) = image.strip_prefix("oci:") else {
            let program = ["docker", "podman"]
                .into_iter()
                .find(|program| runs(program));
            return Some(Self::Engine {
                program: program.expect("docker or podman"),
                name: image,
            });
        };
        let bundle = tempfile::Builder::new()
            .prefix("tarsy-test-image-")
            .tempdir()
            .unwrap();
        output(
            "umoci",
            &[
                "unpack",
                "--image",
                layout,
                bundle.path().join("unpacked").to_str().unwrap(),
            ],
        );
        let layout = PathBuf::from(layout.rsplit_once(':').unwrap().0);
        Some(Self::Runc { layout, bundle })
    }

    /// Starts a container with these arguments, variables, and files by their paths in the container.
    pub(super) fn run(
        &self,
        name: &str,
        args: &[&str],
        env: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Container {
        let number = CONTAINERS.fetch_add(1, Ordering::Relaxed);
        let id = format!("tarsy-test-{}-{number}", std::process::id());
        match self {
            Self::Runc { bundle, .. } => {
                let own = tempfile::Builder::new()
                    .prefix("tarsy-test-bundle-")
                    .tempdir()
                    .unwrap();
                let config = runc_config(&bundle.path().join("unpacked"), args, env, files);
                std::fs::write(own.path().join("config.json"), config.to_string()).unwrap();
                let args = ["run", "--bundle", own.path().to_str().unwrap(), &id];
                let process = Tarsy::spawn_program(Path::new("runc"), name, &args, &[]);
                Container {
                    process,
                    id,
                    engine: "runc",
                    _bundle: Some(own),
                }
            }
            Self::Engine {
                program,
                name: image,
            } => {
                let mut words: Vec<String> =
                    ["run", "--rm", "--name", &id].map(str::to_owned).to_vec();
                words.extend(
                    [
                        "--read-only",
                        "--cap-drop=ALL",
                        "--security-opt=no-new-privileges",
                    ]
                    .map(str::to_owned),
                );
                words.extend(["--network=host", "--tmpfs=/tmp"].map(str::to_owned));
                words.extend(
                    env.iter()
                        .map(|(key, value)| format!("--env={key}={value}")),
                );
                words.extend(
                    files
                        .iter()
                        .map(|(to, from)| format!("--volume={from}:{to}:ro")),
                );
                words.push(image.clone());
                words.extend(args.iter().map(|arg| (*arg).to_owned()));
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let process = Tarsy::spawn_program(Path::new(program), name, &words, &[]);
                Container {
                    process,
                    id,
                    engine: program,
                    _bundle: None,
                }
            }
        }
    }

    /// A file of the image.
    pub(super) fn file(&self, path: &str) -> Vec<u8> {
        match self {
            Self::Runc { bundle, .. } => {
                let file = bundle
                    .path()
                    .join("unpacked/rootfs")
                    .join(path.trim_start_matches('/'));
                std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            }
            Self::Engine { program, name } => {
                let id = String::from_utf8(output(program, &["create", name])).unwrap();
                let folder = tempfile::tempdir().unwrap();
                let to = folder.path().join("file");
                output(
                    program,
                    &["cp", &format!("{}:{path}", id.trim()), to.to_str().unwrap()],
                );
                output(program, &["rm", id.trim()]);
                std::fs::read(to).unwrap()
            }
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        let program = self.file("/usr/bin/tarsy").len() as u64;
        match self {
            Self::Runc { layout, bundle } => {
                let unpacked = size_below(&bundle.path().join("unpacked/rootfs"));
                Sizes {
                    program,
                    unpacked,
                    compressed: Some(size_below(&layout.join("blobs"))),
                }
            }
            Self::Engine {
                program: engine,
                name,
            } => {
                let size = output(engine, &["image", "inspect", "--format", "{{.Size}}", name]);
                let unpacked = String::from_utf8(size).unwrap().trim().parse().unwrap();
                Sizes {
                    program,
                    unpacked,
                    compressed: None,
                }
            }
        }
    }
}

/// The configuration that umoci made of the image's, with the process and the limits of a pod of the chart.
fn runc_config(
    bundle: &Path,
    args: &[&str],
    env: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Value {
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    let process = &mut config["process"];
    // The image itself says which user runs it, and which program.
    assert_eq!(
        (&process["user"]["uid"], &process["user"]["gid"]),
        (&json!(65532), &json!(65532))
    );
    let entry = process["args"].as_array_mut().unwrap();
    assert_eq!(*entry, [json!("/usr/bin/tarsy")]);
    entry.extend(args.iter().map(|arg| json!(arg)));
    let variables = process["env"].as_array_mut().unwrap();
    variables.extend(
        env.iter()
            .map(|(key, value)| json!(format!("{key}={value}"))),
    );
    process["terminal"] = json!(false);
    process["noNewPrivileges"] = json!(true);
    process["capabilities"] = json!({});
    config["root"] = json!({"path": bundle.join("rootfs"), "readonly": true});
    let mounts = config["mounts"].as_array_mut().unwrap();
    // A runtime of containers writes this file; here it is that of the machine.
    let hosts = [
        ("/etc/hosts", "/etc/hosts"),
        ("/etc/resolv.conf", "/etc/resolv.conf"),
    ];
    mounts.retain(|mount| hosts.iter().all(|(path, _)| mount["destination"] != *path));
    mounts.extend(hosts.iter().chain(files).map(|(to, from)| {
        json!({"destination": to, "source": from, "type": "bind", "options": ["bind", "ro", "nosuid", "nodev"]})
    }));
    let options = ["nosuid", "nodev", "mode=1777", "size=64m"];
    mounts.push(
        json!({"destination": "/tmp", "source": "tmpfs", "type": "tmpfs", "options": options}),
    );
    let namespaces = config["linux"]["namespaces"].as_array_mut().unwrap();
    namespaces.retain(|namespace| namespace["type"] != "network");
    config
}

/// The sum of the sizes of all files below a folder.
fn size_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            size_below(&entry.path())
        } else {
            entry.metadata().unwrap().len()
        }
    };
    entries.map(size).sum()
}

impl Container {
    /// The process id of the main process on this machine.
    fn pid(&self) -> u64 {
        let state: Value = match self.engine {
            "runc" => serde_json::from_slice(&output("runc", &["state", &self.id])).unwrap(),
            engine => {
                let pid = output(
                    engine,
                    &["inspect", "--format", "{\"pid\": {{.State.Pid}}}", &self.id],
                );
                serde_json::from_slice(&pid).unwrap()
            }
        };
        state["pid"].as_u64().unwrap_or_else(|| panic!("{state}"))
    }

    fn status(&self, name: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {status}"))
            .trim()
            .to_owned()
    }

    pub(super) fn confinement(&self) -> Confinement {
        let mounts = std::fs::read_to_string(format!("/proc/{}/mountinfo", self.pid())).unwrap();
        let root = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields[4] == "/").then(|| fields[5].to_owned())
        });
        Confinement {
            user_and_group: ["Uid", "Gid"].map(|name| self.status(name)),
            capabilities: ["CapEff", "CapPrm", "CapBnd"].map(|name| self.status(name)),
            no_new_privileges: self.status("NoNewPrivs"),
            root_is_read_only: root.unwrap().split(',').any(|option| option == "ro"),
        }
    }

    /// The resident memory of the main process.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.status("VmRSS")
            .trim_end_matches(" kB")
            .parse::<u64>()
            .unwrap()
            * 1024
    }
}

impl Drop for Container {
    /// The engine's program may be killed, so the container is removed by its id.
    fn drop(&mut self) {
        let remove: &[&str] = if self.engine == "runc" {
            &["delete", "--force"]
        } else {
            &["rm", "--force"]
        };
        Command::new(self.engine)
            .args(remove)
            .arg(&self.id)
            .output()
            .ok();
    }
}
