"""tests/lint: a break of the API is found, whichever commit brought in what it takes away; a service that goes past the
scope of its caller is found, too."""

import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROTO = "proto/muster/v1/thing.proto"
OLD = "  // Its name.\n  string name = 1;\n"
NEW = "  // Its size in bytes.\n  uint64 size_bytes = 2;\n"
WHO = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")


class Clone:
    """A repository with one proto and this repository's lint."""

    def __init__(self, directory):
        self.directory = directory
        for name in ("tests/lint", "tests/support/buf", "proto/buf.yaml"):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, directory / name)
        self.git("init", "-q")

    def git(self, *words):
        subprocess.run(["git", *WHO, *words], cwd=self.directory, check=True, timeout=60)

    def write(self, fields):
        path = self.directory / PROTO
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'syntax = "proto3";\n\npackage muster.v1;\n\n// A thing.\nmessage Thing {{\n{fields}}}\n')

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def lint(self, check="api"):
        done = subprocess.run(["tests/lint", check], cwd=self.directory, capture_output=True, text=True, timeout=300,
                              check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def clone(tmp_path):
    made = Clone(tmp_path)
    made.write(OLD)
    made.commit("Begin\n\nBreaks-API: the first one")
    made.write(OLD + NEW)
    made.commit("Add the size")
    assert made.lint() == (0, "lint.api: passed\n")
    return made


def assert_size_is_missed(clone):
    code, said = clone.lint()
    assert code == 1 and "lint.api: FAILED" in said
    assert 'field "2" with name "size_bytes" on message "Thing"' in said


def test_a_field_that_is_newer_than_the_last_declared_break_is_missed(clone):
    clone.write(OLD)
    assert_size_is_missed(clone)
    clone.commit("Take the size away")
    assert_size_is_missed(clone)
    clone.commit("Do something else")
    assert_size_is_missed(clone)


def test_a_commit_that_declares_a_break_is_not_compared_with_those_before(clone):
    clone.write(OLD)
    clone.commit("Take the size away\n\nBreaks-API: nobody uses the size")
    assert clone.lint() == (0, "lint.api: passed\n")


def test_a_branch_from_before_a_declared_break_can_be_merged_after_it(clone):
    clone.git("checkout", "-q", "-b", "other")
    clone.write("  // Its name, for people.\n  string name = 1;\n" + NEW)
    clone.commit("Say more of the name")
    clone.git("checkout", "-q", "-")
    clone.write(OLD)
    clone.commit("Take the size away\n\nBreaks-API: nobody uses the size")
    clone.git("merge", "-q", "--no-commit", "-s", "ours", "other")
    clone.commit("Merge")
    assert clone.lint() == (0, "lint.api: passed\n")


@pytest.mark.parametrize("folder", ["broker", "agents"])
@pytest.mark.parametrize("words, told", [
    ("  Mutex mutex_;\n  int size_;\n", "a.h: nothing is ABSL_GUARDED_BY(mutex_)\n"),
    ("  SharedMutex mutex_;\n", "a.h: nothing is ABSL_GUARDED_BY(mutex_)\n"),
    ("  std::mutex mutex_;\n", "a.h:1:  std::mutex mutex_;\n"),
    ("  std::shared_mutex mutex_;\n", "a.h:1:  std::shared_mutex mutex_;\n")])
def test_a_mutex_that_does_not_say_what_it_guards_is_found(tmp_path, folder, words, told):
    made = Clone(tmp_path)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "a.h").write_text(
        "  Mutex mutex_;\n  int size_ ABSL_GUARDED_BY(mutex_) = 0;\n"
        "  SharedMutex turn_;\n  void Change() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);\n")
    assert made.lint("locks") == (0, "lint.locks: passed\n")
    (tmp_path / folder / "a.h").write_text(words)
    assert made.lint("locks") == (1, f"lint.locks: FAILED\n{folder}/{told}")


@pytest.mark.parametrize("words", ["context_.store->GetJob(scope, id)", "services_.store", "Find(store::Scope::All(), id)"])
def test_a_service_for_clients_that_reads_the_store_itself_is_found(tmp_path, words):
    made = Clone(tmp_path)
    services = tmp_path / "broker" / "rpc"
    services.mkdir(parents=True)
    (services / "log_link.cc").write_text(f"job = {words};\n")
    (services / "jobs_service.cc").write_text("// const store::Store* store;\nGetJob(Caller(call), context_.app, *in);\n")
    use_cases = tmp_path / "broker" / "app"
    use_cases.mkdir()
    (use_cases / "rights.cc").write_text("return store::Scope::All();\n")
    assert made.lint("scopes") == (0, "lint.scopes: passed\n")
    (services / "jobs_service.cc").write_text(f"job = {words};\n")
    assert made.lint("scopes") == (1, f"lint.scopes: FAILED\nbroker/rpc/jobs_service.cc:1:job = {words};\n")


def test_a_use_case_that_reads_as_everybody_is_found(tmp_path):
    made = Clone(tmp_path)
    for name in ("rpc", "app"):
        (tmp_path / "broker" / name).mkdir(parents=True)
    (tmp_path / "broker" / "rpc" / "a.cc").write_text("\n")
    (tmp_path / "broker" / "app" / "get_job.cc").write_text("Read(store::Scope::All());\n")
    assert made.lint("scopes") == (1, "lint.scopes: FAILED\nbroker/app/get_job.cc:1:Read(store::Scope::All());\n")


def comments_complained_of(directory, name, text):
    """The first words of the sentences that are found, with their lines."""
    path = directory / name
    path.write_text(text)
    done = subprocess.run([REPOSITORY / "tests/support/check-comments", path], capture_output=True, text=True, timeout=60, check=False)
    found = [line.removeprefix(f"{path}:").split(":")[0] + " " + line.split('"')[1] for line in done.stdout.splitlines()]
    assert done.returncode == (1 if found else 0), done.stderr
    return found


@pytest.mark.parametrize("declared", ["func Why(job int) string {", "func (c *Client) Why(job int) string {", "type Why struct {",
                                      "var Why = 1", "const Why = 1", "\tWhy string", "\tWhy = 1"])
def test_a_comment_in_go_may_begin_with_the_name_that_it_describes(tmp_path, declared):
    assert not comments_complained_of(tmp_path, "a.go", f"// Why says why a job waits.\n{declared}\n")
    # It is the name only where the name is declared just below, and only at the comment's beginning.
    assert comments_complained_of(tmp_path, "a.go", f"// Why it waits.\n\n{declared}\n") == ["1 Why"]
    assert comments_complained_of(tmp_path, "a.go", f"// How says it.\n{declared}\n") == ["1 How"]
    assert comments_complained_of(tmp_path, "a.go", f"// Why says it.\n// Whether it does.\n{declared}\n") == ["2 Whether"]
    assert comments_complained_of(tmp_path, "a.cc", f"// Why says it.\n{declared}\n") == ["1 Why"]


@pytest.mark.parametrize("declared", ["func Whyever() {", "return Why", "func other() { Why() }", "package why"])
def test_a_comment_in_go_that_stands_above_something_else_has_no_exemption(tmp_path, declared):
    assert comments_complained_of(tmp_path, "a.go", f"// Why says why a job waits.\n{declared}\n") == ["1 Why"]
