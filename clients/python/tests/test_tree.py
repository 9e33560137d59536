"""Directories become the trees that the command muster makes of them."""

import os
import random
import subprocess

import pytest

from muster import BadRequest
from muster._tree import fault_of_link, fault_of_path, read_tree, tree_of
from muster.v1 import file_tree_pb2 as trees

LARGE = 1 << 30


def paths(directory, rules_above=False, **arguments):
    return [entry.path.decode() for entry in read_tree(str(directory), LARGE, rules_above, **arguments).tree.entries]



def fill(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_entries_have_what_the_files_have(tmp_path):
    fill(tmp_path, {"a": "1", "b/run.sh": "22", "key": "333"})
    (tmp_path / "b" / "run.sh").chmod(0o755)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("b/run.sh")
    local = read_tree(str(tmp_path), LARGE, False)
    found = {entry.path.decode(): entry for entry in local.tree.entries}
    assert list(found) == ["a", "b/run.sh", "empty", "key", "link"]
    assert found["b/run.sh"].executable and not found["a"].executable
    assert found["key"].owner_only and not found["a"].owner_only
    assert found["empty"].kind == trees.FILE_KIND_DIRECTORY
    assert found["link"].link_target == b"b/run.sh"
    assert local.tree.total_bytes == 6
    assert trees.FileTree.FromString(local.data) == local.tree


def test_rules_leave_files_out(tmp_path):
    fill(tmp_path, {".git/config": "", ".gitignore": "*.log\n/build/\n!keep.log\n", ".musterignore": "secret\n", "a.log": "", "keep.log": "",
                    "build/x": "", "sub/build/x": "", "sub/a.log": "", "secret": "", "sub/.gitignore": "!a.log\n"})
    assert paths(tmp_path) == [".gitignore", ".musterignore", "keep.log", "sub/.gitignore", "sub/a.log", "sub/build/x"]


def test_rules_above_count_for_a_working_directory_alone(tmp_path):
    fill(tmp_path, {".git/info/exclude": "x\n", ".gitignore": "*.log\n", "sub/a.log": "", "sub/x": "", "sub/y": ""})
    assert paths(tmp_path / "sub", rules_above=True) == ["y"]
    assert paths(tmp_path / "sub") == ["a.log", "x", "y"]


def test_a_skyignore_counts_in_place_of_gits(tmp_path):
    fill(tmp_path, {".skyignore": "b\n", ".gitignore": "a\n", "a": "", "b": ""})
    assert paths(tmp_path) == [".gitignore", ".skyignore", "a"]


def test_git_leaves_out_the_same_files(tmp_path):
    """Random directories and patterns: git's own answers."""
    chance = random.Random(20)
    names = ["a", "b", "ab", "a.c", "x y", "[a]", "b-"]
    patterns = ["a", "*.c", "/a", "a/", "!a", "**/b", "a/**", "a/**/b", "[ab]", "[!a]", "[^a]*", "[a-b]b", "a*b", "?", "\\[a\\]", "x\\ y",
                "# no", "b ", "!*.c", "[[:alpha:]]", "[]a]", "a[", "/*/b", "b/a/", "[b-]*"]
    for round in range(60):
        root = tmp_path / str(round)
        for _ in range(12):
            path = root.joinpath(*chance.choices(names, k=chance.randint(1, 3)))
            if not path.exists() and all(not above.is_file() for above in path.parents):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")
        root.mkdir(exist_ok=True)
        (root / ".gitignore").write_text("\n".join(chance.choices(patterns, k=4)) + "\n")
        subprocess.run(["git", "init", "-q", root], check=True)
        listed = subprocess.run(["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"],
                                cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
        files = [path for path in paths(root) if not (root / path).is_dir()]
        assert sorted(files) == sorted(name for name in listed if name), (root / ".gitignore").read_text()


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../../x", b"..", b""])
def test_links_that_lead_out_are_refused(target):
    assert fault_of_link(b"a", target) or target == b".."
    assert not fault_of_link(b"d/e/a", b"../../x")


@pytest.mark.parametrize("path", [b"", b"/a", b"a/", b"a//b", b"a/../b", b".", b"x" * 256, b"a\0b"])
def test_paths_that_are_none_are_refused(path):
    assert fault_of_path(path)


def test_what_no_job_takes_is_refused(tmp_path):
    fill(tmp_path, {"large": "x" * 100, "small": "x"})
    with pytest.raises(BadRequest, match='101 bytes of files.*"large" .100.*musterignore'):
        read_tree(str(tmp_path), 50, False)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadRequest, match='"pipe" is no file'):
        read_tree(str(tmp_path), LARGE, False)


def test_a_tree_of_memory_is_one_of_files(tmp_path):
    fill(tmp_path, {"a/b": "x", "c": "y"})
    made = tree_of({"c": b"y", "a/b": b"x"})
    assert made.sha256 == read_tree(str(tmp_path), LARGE, False).sha256
