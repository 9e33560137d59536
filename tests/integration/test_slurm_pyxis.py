"""The stand-ins for Pyxis and enroot, on a real Slurm: that they behave as the real ones were seen to.

Conclusions of Muster's own tests are only as good as this file. Their README says what they cannot show.
"""

import shutil
import signal
import subprocess

import pytest

from harness.daemons import BIN
from harness.slurm import AS_USER, USER, SlurmCluster, before
from harness.wait import eventually

PLUGIN = BIN / "muster_test_pyxis.so"
BASH = "registry.test#muster/bash:1"
COMMAND_TIMEOUT_S = 120

OPTIONS = ("image", "mounts", "workdir", "name", "save", "mount-home", "remap-root", "entrypoint", "entrypoint-log",
           "writable", "readonly", "env")
COULD_NOT_START = ("pyxis: couldn't start container",
                   "error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1",
                   "error: Failed to invoke spank plugin stack")


class Lab:
    """A cluster whose nodes have containers, and the home of its user."""

    def __init__(self):
        self.cluster = SlurmCluster("--no-dbd", "--nodes", "2", "--pyxis", PLUGIN)
        self.home = self.cluster.root / "home"
        self.home.mkdir()
        shutil.chown(self.home, USER, USER)
        self.enroot_config = self.home / ".config" / "enroot"
        self.squashfs = self.home / "bash.sqsh"
        imported = self.srun("enroot", "import", "-o", self.squashfs, f"docker://{BASH}")
        assert imported.returncode == 0, imported.stderr

    def _start(self, *argv, **variables):
        environment = {"PATH": before("/usr/sbin:/usr/bin:/sbin:/bin"), "HOME": str(self.home), "USER": USER,
                       "SLURM_CONF": str(self.cluster.conf), **variables}
        return subprocess.Popen([*AS_USER, *map(str, argv)], env=environment, cwd=self.home, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *argv, **variables):
        """A command of the user's: its end."""
        process = self._start(*argv, **variables)
        out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def start(self, *argv):
        return self._start("srun", *argv)

    def srun(self, *argv, **variables):
        return self.run("srun", *argv, **variables)

    def contained(self, *argv, **variables):
        """Runs in a container of the image file, and returns the output. Fails the test if it fails."""
        done = self.srun(f"--container-image={self.squashfs}", *argv, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *argv):
        """A step that comes to nothing because of its container: what is said."""
        done = self.srun(*argv)
        assert done.returncode == 1, done
        for words in COULD_NOT_START:
            assert words in done.stderr
        return done.stderr

    def log_in(self, machine, login, password):
        credentials = self.enroot_config / ".credentials"
        self.run("mkdir", "-p", self.enroot_config)
        credentials.write_text(f"machine {machine} login {login} password {password}\n", encoding="utf-8")
        shutil.chown(credentials, USER, USER)
        return credentials

    def containers(self):
        """Returns the containers that are on the nodes' disks."""
        return sorted(path.name for path in (self.cluster.directory / "pyxis" / "run").glob("*/*/data/*"))


@pytest.fixture(scope="module")
def lab():
    made = Lab()
    yield made
    made.cluster.close()


@pytest.fixture(autouse=True)
def nothing_is_left(lab):
    yield
    eventually(lambda: not [name for name in lab.containers() if "keep" not in name], "the containers are removed")
    shutil.rmtree(lab.enroot_config, ignore_errors=True)


# ---- options

def test_srun_and_sbatch_list_the_options(lab):
    for command in ("srun", "sbatch"):
        shown = lab.run(command, "--help").stdout
        for option in OPTIONS:
            assert f"--container-{option}" in shown
        for option in ("mount-home", "remap-root", "entrypoint"):
            assert f"--no-container-{option}" in shown


def test_options_without_a_container_are_said_to_do_nothing(lab):
    done = lab.srun("--container-workdir=/nowhere", "--container-writable", "cat", "/etc/debian_version")
    assert done.returncode == 0
    assert "pyxis: ignoring --container-workdir because neither --container-image nor" in done.stderr
    assert "pyxis: ignoring --container-writable because" in done.stderr


@pytest.mark.parametrize("mounts, words", [
    ("data:/data", 'pyxis: mount source must be a relative path, an absolute path, "tmpfs" or "umount"'),
    ("/data:data", "pyxis: mount target must be a relative path or an absolute path"),
    ("/data:", "pyxis: --container-mounts: invalid format: /data:"),
])
def test_wrong_mounts_are_refused_by_srun_itself(lab, mounts, words):
    done = lab.srun(f"--container-image={lab.squashfs}", f"--container-mounts={mounts}", "true")
    assert done.returncode == 255
    assert f"srun: error: {words}" in done.stderr


def test_options_can_come_from_the_environment(lab):
    done = lab.srun("sh", "-c", "pwd; . /etc/os-release; echo $ID", PYXIS_CONTAINER_IMAGE=str(lab.squashfs),
                    PYXIS_CONTAINER_WORKDIR="/etc")
    assert done.stdout == "/etc\nmuster-test\n", done.stderr
    assert lab.contained("--container-workdir=/bin", "pwd", PYXIS_CONTAINER_WORKDIR="/etc") == "/bin\n"


# ---- what a container is

def test_a_registry_image_runs(lab):
    done = lab.srun(f"--container-image={BASH}", "cat", "/etc/os-release")
    assert done.returncode == 0
    assert "ID=muster-test\nIMAGE=registry.test#muster/bash:1\n" in done.stdout
    assert f"pyxis: imported docker image: {BASH}" in done.stderr


def test_an_image_with_a_scheme_runs(lab):
    done = lab.srun(f"--container-image=docker://{BASH}", "grep", "IMAGE", "/etc/os-release")
    assert done.stdout == f"IMAGE={BASH}\n", done.stderr


def test_an_image_without_bash_has_no_bash(lab):
    image = "--container-image=registry.test#muster/shell:1"
    assert lab.srun(image, "sh", "-c", "echo here").stdout == "here\n"
    done = lab.srun(image, "bash", "-c", "echo here")
    assert done.returncode == 2
    assert "execve(): bash: No such file or directory" in done.stderr


def test_mounts_are_there_and_read_only_if_so_asked(lab):
    data = lab.home / "data"
    lab.run("mkdir", data)
    lab.run("touch", data / "file")
    out = lab.contained("--no-container-mount-home",
                        f"--container-mounts={data}:/a/b:ro,{data},./data:/c:rw+rprivate,tmpfs:/d",
                        "sh", "-c", f"ls /a/b {data} /c; touch /a/b/x 2>&1; touch /c/y /d/z && ls /c /d")
    assert out.count("file\n") == 4
    assert "touch: /a/b/x: Read-only file system\n" in out
    assert (data / "y").exists()
    assert not (data / "x").exists() and not (data / "z").exists()


def test_a_mount_can_be_taken_away(lab):
    assert lab.contained("--container-mounts=umount:/tmp", "sh", "-c", "grep -c ' /tmp ' /proc/mounts || true") == "0\n"


def test_a_missing_mount_source_is_named(lab):
    err = lab.refused(f"--container-image={lab.squashfs}", "--container-mounts=/nonexistent:/data", "true")
    assert "pyxis: --container-mounts: source path does not exist: /nonexistent\n" in err


def test_the_working_directory_is_the_images_unless_given(lab):
    assert lab.srun("--container-image=registry.test#muster/env:1", "pwd").stdout == "/workspace\n"
    assert lab.contained("--container-workdir=/etc", "pwd") == "/etc\n"


def test_a_missing_working_directory_is_named(lab):
    done = lab.srun(f"--container-image={lab.squashfs}", "--container-workdir=/nowhere", "true")
    assert done.returncode == 1
    assert "pyxis: couldn't chdir to /nowhere: No such file or directory\n" in done.stderr


def test_the_images_variables_win_unless_named(lab):
    show = ("sh", "-c", "echo $JOB_ONLY $IMAGE_ONLY $SHARED $PATH")
    values = {"JOB_ONLY": "from-job", "SHARED": "from-job"}
    image = "--container-image=registry.test#muster/env:1"
    assert lab.srun(image, *show, **values).stdout == "from-job from-image from-image /opt/image/bin:/usr/bin:/bin\n"
    out = lab.srun(image, "--container-env=SHARED,ABSENT", *show, **values).stdout
    assert out == "from-job from-image from-job /opt/image/bin:/usr/bin:/bin\n"


def test_a_torch_image_replaces_world_size_unless_named(lab):
    image = "--container-image=registry.test#muster/torch:1"
    show = ("sh", "-c", "echo $WORLD_SIZE $RANK $MASTER_ADDR")
    assert lab.srun(image, "-n2", "-N1", "-w", "n1", *show, WORLD_SIZE="7").stdout.split("\n")[0].split()[::2] == [
        "2", "n1"]
    assert lab.srun(image, "--container-env=WORLD_SIZE", "-w", "n1", *show, WORLD_SIZE="7").stdout == "7 0 n1\n"


def test_files_of_the_image_are_read_only_unless_asked(lab):
    done = lab.srun(f"--container-image={lab.squashfs}", "touch", "/etc/x")
    assert (done.returncode, "Read-only file system" in done.stderr) == (1, True)
    assert lab.contained("--container-writable", "sh", "-c", "touch /etc/x; ls /etc/x") == "/etc/x\n"
    assert lab.srun(f"--container-image={lab.squashfs}", "--container-writable", "--container-readonly",
                    "true").returncode == 255


def test_the_user_is_himself_or_root_and_owns_his_files_either_way(lab):
    uid = lab.home.stat().st_uid
    assert lab.contained("id", "-u") == f"{uid}\n"
    assert lab.contained("--container-remap-root", f"--container-mounts={lab.home}:/h", "sh", "-c",
                         "id -u; echo $HOME; touch /h/by-root") == "0\n/root\n"
    assert (lab.home / "by-root").stat().st_uid == uid


def test_the_home_is_mounted_unless_refused(lab):
    look = ("sh", "-c", f"ls {lab.home}/bash.sqsh 2>/dev/null || echo none")
    assert lab.contained(*look) == f"{lab.squashfs}\n"
    assert lab.contained("--no-container-mount-home", *look) == "none\n"


def test_the_entrypoint_runs_only_if_asked(lab):
    image = "--container-image=registry.test#muster/entrypoint:1"
    assert lab.srun(image, "sh", "-c", "echo ${ENTRYPOINT-none}").stdout == "none\n"
    done = lab.srun(image, "--container-entrypoint", "--container-entrypoint-log", "sh", "-c", "echo $ENTRYPOINT")
    assert done.stdout == "ran\n"
    assert "the entrypoint ran" in done.stderr


def test_an_entrypoint_that_runs_nothing_is_an_error_with_a_hint(lab):
    err = lab.refused("--container-image=registry.test#muster/stubborn:1", "--container-entrypoint", "true")
    assert "pyxis: container exited too soon\n" in err
    assert "pyxis: if the image has an unusual entrypoint, try using --no-container-entrypoint\n" in err


# ---- names and saving

def test_a_named_container_is_kept_and_used_again(lab):
    node = ("-w", "n1", "--container-writable")
    lab.contained(*node, "--container-name=keep", "touch", "/etc/kept")
    done = lab.srun(*node, "--container-name=keep", "ls", "/etc/kept")
    assert done.stdout == "/etc/kept\n", done.stderr
    done = lab.srun(*node, f"--container-image={lab.squashfs}", "--container-name=keep:create", "true")
    assert 'pyxis: error: "create" flag was passed to --container-name but the container already exists' in done.stderr
    assert lab.containers() == ["pyxis_keep"]


def test_a_name_without_a_container_is_an_error(lab):
    done = lab.srun("--container-name=nosuch", "true")
    assert done.returncode == 1
    assert ('pyxis: error: a container with name "pyxis_nosuch" does not exist, and --container-image is not set'
            in done.stderr)


def test_a_container_can_be_saved(lab):
    saved = lab.home / "saved.sqsh"
    lab.contained("--container-writable", f"--container-save={saved}", "touch", "/etc/added")
    assert lab.srun(f"--container-image={saved}", "ls", "/etc/added").stdout == "/etc/added\n"


# ---- images that cannot be had

def test_a_missing_squashfs_is_named(lab):
    err = lab.refused("--container-image=/nonexistent/i.sqsh", "true")
    assert "pyxis: failed to create container filesystem for image: /nonexistent/i.sqsh\n" in err
    assert "pyxis:     [ERROR] No such file or directory: /nonexistent/i.sqsh\n" in err


def test_a_file_that_is_no_squashfs_is_named(lab):
    err = lab.refused("--container-image=/etc/passwd", "true")
    assert "pyxis:     [ERROR] Invalid image format: /etc/passwd\n" in err


@pytest.mark.parametrize("image, words", [
    ("registry.test#muster/nosuch:1",
     "[ERROR] URL https://registry.test/v2/muster/nosuch/manifests/1 returned error code: 404 Not Found"),
    ("private.test#team/train:1", "[ERROR] URL https://private.test/token returned error code: 401 Unauthorized"),
    ("nvcr.io#nvidia/tao:1", "[ERROR] Could not process JSON input"),
    ("nowhere.test:5000#a/b:1", "curl: (6) Could not resolve host: nowhere.test"),
    ("registry.test#muster/huge:1", "Write failed because No space left on device"),
    ("Registry.test/UPPER", "[ERROR] Invalid image reference: docker://Registry.test/UPPER"),
    # The registry is part of the name, which Docker Hub does not know, if there is no '#'.
    ("registry.test/muster/bash:1", "v2/registry.test/muster/bash/manifests/1 returned error code: 404 Not Found"),
])
def test_a_failing_import_says_why_in_enroots_words(lab, image, words):
    err = lab.refused(f"--container-image={image}", "true")
    assert f"pyxis: failed to import docker image: {image}\n" in err
    assert "pyxis: printing enroot log file:\n" in err
    assert words in err


@pytest.mark.parametrize("image, login", [("private.test#team/train:1", "ci"), ("nvcr.io#nvidia/tao:1", "$oauthtoken")])
def test_a_private_image_runs_with_credentials(lab, image, login):
    lab.log_in(image.split("#", maxsplit=1)[0], login, "wrong")
    lab.refused(f"--container-image={image}", "true")
    lab.log_in(image.split("#", maxsplit=1)[0], login, "open-sesame")
    assert lab.srun(f"--container-image={image}", "echo", "in").stdout == "in\n"


# ---- steps

def test_each_node_has_one_container_for_all_its_tasks(lab):
    out = lab.contained("--container-writable", "-N2", "--ntasks-per-node=2", "bash", "-c",
                        "echo $SLURM_NODEID >>/etc/tasks; until [[ $(wc -l </etc/tasks) == 2 ]]; do :; done; "
                        "echo $SLURM_PROCID $(cat /etc/tasks)")
    assert sorted(out.splitlines()) == ["0 0 0", "1 0 0", "2 1 1", "3 1 1"]


def test_exit_codes_and_signals_pass(lab):
    image = f"--container-image={lab.squashfs}"
    assert lab.srun(image, "sh", "-c", "exit 7").returncode == 7
    assert lab.srun(image, "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    assert lab.srun(image, "/no/such/program").returncode == 2


def test_a_batch_script_runs_in_the_container(lab):
    script = lab.home / "job.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH --container-image={lab.squashfs}\ngrep -c muster-test /etc/os-release\n",
                      encoding="utf-8")
    done = lab.run("sbatch", "--wait", "-o", lab.home / "batch.out", script)
    assert done.returncode == 0, done
    assert (lab.home / "batch.out").read_text(encoding="utf-8") == "1\n"


def test_a_step_can_be_canceled_in_the_middle_of_an_import(lab):
    lab.run("mkdir", "-p", lab.enroot_config)
    lab.run("touch", lab.enroot_config / "hold")
    step = lab.start("--job-name=held", "--container-image=registry.test#muster/slow:1", "true")
    eventually((lab.enroot_config / "held").exists, "the import waits")
    lab.run("scancel", "--name=held")
    step.communicate(timeout=COMMAND_TIMEOUT_S)
    assert step.returncode != 0


# ---- enroot import, as a step of its own

def magic(path):
    with open(path, "rb") as file:
        return file.read(4)


def test_import_writes_a_squashfs_once(lab):
    assert magic(lab.squashfs) == b"hsqs"
    again = lab.srun("enroot", "import", "-o", lab.squashfs, "--", f"docker://{BASH}")
    assert again.returncode == 1
    assert f"[ERROR] File already exists: {lab.squashfs}\n" in again.stderr


def test_a_killed_import_leaves_what_is_no_squashfs(lab):
    torn = lab.home / "torn.sqsh"
    done = lab.srun("enroot", "import", "-o", torn, "docker://registry.test#muster/torn:1")
    assert done.returncode == 128 + signal.SIGKILL
    assert magic(torn) == b"\0\0\0\0"


def test_an_import_that_fails_leaves_nothing(lab):
    target = lab.home / "none.sqsh"
    for image in ("muster/huge:1", "muster/nosuch:1"):
        assert lab.srun("enroot", "import", "-o", target, f"docker://registry.test#{image}").returncode == 1
        assert not target.exists()


def test_enroot_tells_its_version(lab):
    assert lab.srun("enroot", "version").stdout == "4.1.2\n"
