"""Jobs that bring files of their user's machine along, by the command."""

import contextlib
import re
import signal
import stat

import pytest

from harness.wait import eventually

ERROR = 1


@pytest.fixture
def project(world):
    """A directory of code, with what stays behind."""
    directory = world.path("project")
    (directory / "lib").mkdir(parents=True)
    (directory / "train.sh").write_text("#!/bin/sh\ncat lib/words.txt\n")
    (directory / "train.sh").chmod(0o755)
    (directory / "lib" / "words.txt").write_text("hello from my machine\n")
    (directory / "key").write_text("secret")
    (directory / "key").chmod(0o600)
    (directory / ".gitignore").write_text("*.pyc\n")
    (directory / "lib" / "words.pyc").write_text("compiled")
    return directory


def uploads(broker):
    """Returns the number of files that each upload stored."""
    return [int(count) for count in re.findall(r'"files_uploaded".*?"stored": ?"?(\d+)', broker.log())]


def test_a_job_runs_among_the_files_of_its_workdir_and_a_second_one_uploads_nothing(world, broker, agent, project):
    job = world.write("job.yaml", "run: ./train.sh; ls -A lib; stat -c %a key train.sh; echo x > new\nworkdir: ./project\n")
    first = world.cli("submit", "--wait", job)
    assert first.stdout == "hello from my machine\nwords.txt\n600\n755\n"
    assert "uploaded" in first.stderr
    kept = sorted((broker.state_dir / "files" / "kept").iterdir())
    assert len(kept) == 5
    second = world.cli("submit", "--wait", job)
    assert second.stdout == first.stdout
    assert "uploaded" not in second.stderr
    assert sorted((broker.state_dir / "files" / "kept").iterdir()) == kept
    assert not (project / "new").exists()


def test_a_skypilot_task_finds_its_workdir_and_its_file_mounts(world, agent, project):
    config = world.write("large.json", "{}\n")
    task = world.write("task.yaml", f"num_nodes: 1\nworkdir: {project}\nsetup: test -x train.sh\n"
                                    f"run: ./train.sh; cat etc/config.json\nfile_mounts:\n  etc/config.json: {config}\n")
    assert world.cli("submit", "--wait", task).stdout == "hello from my machine\n{}\n"
    assert world.cli("sky", "exec", "box", task).stdout == "hello from my machine\n{}\n"
    assert world.cli("sky", "exec", "box", "--workdir", "project", "--", "cat", "lib/words.txt").stdout == (
        "hello from my machine\n")


def test_a_plan_uploads_the_list_of_the_files_alone(world, broker, agent, project):
    done = world.cli("plan", "--workdir", "project", "--", "ls")
    assert "brings along 4 files of" in done.stderr and "no file was uploaded" in done.stderr
    assert len(list((broker.state_dir / "files" / "kept").iterdir())) == 1


def test_a_directory_over_the_cap_is_refused_with_its_largest_files(world, project):
    world.make_broker(config="files:\n  max_job_bytes: 100\n").start()
    world.make_agent().start()
    (project / "data.bin").write_bytes(b"x" * 200)
    done = world.cli("run", "--workdir", "project", "--", "ls", check=False)
    assert done.returncode == ERROR
    assert "--workdir: " in done.stderr and "100 (100) are the most" in done.stderr
    assert '"data.bin" (200)' in done.stderr and ".musterignore" in done.stderr


def has_more_than(size, directory):
    """Tells whether a file in it is larger; others come and go."""
    with contextlib.suppress(FileNotFoundError):
        return any(path.stat().st_size > size for path in directory.iterdir())
    return False


def test_an_interrupted_upload_leaves_nothing(world, broker, agent, api, project):
    with open(project / "large.bin", "wb") as large:
        large.truncate(600 << 20)
    command = world.cli_start("run", "--wait", "--workdir", "project", "--", "ls")
    incoming = broker.state_dir / "files" / "incoming"
    eventually(lambda: has_more_than(1 << 20, incoming), "the upload has begun", poll_s=0.001)
    command.process.send_signal(signal.SIGINT)
    assert command.wait() == 130
    assert "nothing was submitted" in command.errors()
    eventually(lambda: not list(incoming.iterdir()), "what was half there is gone")
    assert not api.list_all()


def test_what_a_hostile_link_names_is_told_before_anything_is_sent(world, broker, agent, project):
    (project / "passwords").symlink_to("/etc/shadow")
    done = world.cli("run", "--workdir", "project", "--", "ls", check=False)
    assert done.returncode == ERROR
    assert "passwords" in done.stderr and "absolute target" in done.stderr
    assert not list((broker.state_dir / "files" / "kept").iterdir())
    assert stat.S_ISLNK((project / "passwords").lstat().st_mode)
