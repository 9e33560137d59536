"""Completion in the shells themselves, and the manual pages as man and mandoc read them."""

import os
import pty
import re
import select
import subprocess

import pytest

from harness.daemons import BIN

# A shell that is not idle says something within this time.
SILENCE_S = 30


class Shell:
    """An interactive shell on a terminal."""

    def __init__(self, world, *argv):
        environment = {**world._environment(), "MUSTER_BROKER": world.broker.address, "TERM": "xterm", "PS1": "> ",
                       "PATH": f"{BIN}:{os.environ['PATH']}"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(world.root)
            os.execvpe(argv[0], argv, environment)
        self.seen = ""

    def type(self, text):
        os.write(self.terminal, text.encode())

    def await_text(self, pattern):
        """Returns the match of the pattern in what the shell has written since the last one."""
        while not (match := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.terminal], [], [], SILENCE_S)
            assert ready, f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        self.seen = self.seen[match.end():]
        return match

    def completed(self, text):
        """The line that a tab makes of the text, without the blank behind it, which zsh takes back."""
        self.type(text + "\t")
        # To the beginning of the line and to its end: then it can be printed.
        self.type("\x01echo '[\x05]'\r")
        return self.await_text(r"[\r\n]\[([^\r\n]*)\]\r")[1].rstrip()

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture(name="shell", params=["bash", "zsh"])
def shell_fixture(request, world, agent):
    argv = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[request.param]
    shell = Shell(world, *argv)
    if request.param == "zsh":
        shell.type("autoload -U compinit; compinit -u -D; bindkey -e; PROMPT='> '; unsetopt prompt_sp\r")
    shell.type(f"source <(muster completion {request.param}); echo rea''dy\r")
    shell.await_text("ready\r")
    yield shell
    shell.end()


def test_a_shell_completes_verbs_flags_and_states(world, shell):
    assert shell.completed("muster lis") == "muster list"
    assert shell.completed("muster list --order") == "muster list --order-by"
    assert shell.completed("muster list --state=failed,run") == "muster list --state=failed,running"


def test_a_shell_completes_jobs_and_clusters_of_the_broker(world, shell, api):
    number = world.cli("run", "-q", "--name", "my:training", "--", "sleep", "1000").stdout.strip()
    assert shell.completed("muster cancel ") == f"muster cancel {number}"
    assert shell.completed("muster check b") == "muster check box"
    assert shell.completed("muster cp ") == f"muster cp {number}:"
    world.cli("run", "-q", "--name", "another", "--", "sleep", "1000")
    shell.type("muster show \t\t")
    shell.await_text("my:training")


def test_a_shell_completes_files(world, shell):
    world.write("first.yaml", "run: true\n")
    assert shell.completed("muster submit fi") == "muster submit first.yaml"


# Names that a shell would read as something else, and what a user begins to type of each.
ODD_NAMES = {
    "with blank.yaml": "with", "single'quote.yaml": "single", 'double"quote.yaml': "double", "dollar$HOME.yaml": "dollar",
    "back`quote`.yaml": "back", "semicolon;touch broken.yaml": "semi", "amper&sand.yaml": "amper", "star*.yaml": "star",
    "paren(these)s.yaml": "paren", "slash\\back.yaml": "slash", "hash#.yaml": "hash", "bang!bang.yaml": "bang", "tilde~.yaml": "tilde",
    "angle<>.yaml": "angle", "ümlaut ß.yaml": "üm",
}


@pytest.fixture(name="bash")
def bash_fixture(world, broker):
    shell = Shell(world, "bash", "--norc", "--noprofile", "-i")
    # A completed word is judged by what a command gets of it.
    shell.type("set +o histexpand; export LC_ALL=C.UTF-8; told() { printf '<%s>' \"$@\"; printf 'told''\\n'; }\r")
    shell.type("source <(muster completion bash); echo rea''dy\r")
    shell.await_text("ready\r")
    yield shell
    shell.end()


def words_of(shell, text):
    """The words that a command gets of the line that a tab makes of the text."""
    shell.type(text + "\t")
    # The line's beginning becomes another command, and the line runs.
    shell.type("\x01told \x05\r")
    return re.findall(r"<([^<>]*(?:<>[^<>]*)?)>", shell.await_text(r"[\r\n](<[^\r\n]*>)told\r")[1])


def test_bash_completes_a_file_to_one_word_whatever_its_name_holds(world, bash):
    for name in ODD_NAMES:
        world.path(name).write_text("run: true\n")
    for name, begun in ODD_NAMES.items():
        assert words_of(bash, f"muster submit {begun}") == ["muster", "submit", name], name
    assert words_of(bash, "muster submit -- with") == ["muster", "submit", "--", "with blank.yaml"]
    # An open quote stays the user's.
    assert words_of(bash, 'muster submit "with b') == ["muster", "submit", "with blank.yaml"]
    assert words_of(bash, "muster submit 'dollar") == ["muster", "submit", "dollar$HOME.yaml"]
    assert not world.path("broken.yaml").exists()


CONTEXTS = ["two words", "it's", 'say "no"', "$HOME", "`id`", "$(touch pwned)", "a;b", "x&y", "glob*", "back\\slash", "list,ed", "co:lon", "eq=ual",
            "üm laut"]


def test_bash_completes_a_value_to_one_word_whatever_it_holds(world, bash):
    for context in CONTEXTS:
        world.cli("context", "set", context, "--broker", world.broker.address)
    for context in CONTEXTS:
        begun = "".join("\\" + c for c in context[:2])
        assert words_of(bash, f"muster context use {begun}") == ["muster", "context", "use", context], context
    assert words_of(bash, "muster --context two") == ["muster", "--context", "two words"]
    assert words_of(bash, "muster list --context=two") == ["muster", "list", "--context=two words"]
    assert not world.path("pwned").exists()


def test_fish_completes_as_the_other_shells(world, agent):
    number = world.cli("run", "-q", "--name", "training", "--", "sleep", "1000").stdout.strip()
    world.write("first.yaml", "run: true\n")

    def completed(line):
        environment = {**world._environment(), "MUSTER_BROKER": world.broker.address,
                       "PATH": f"{BIN}:{os.environ['PATH']}"}
        script = f"muster completion fish | source; complete -C '{line}'"
        return subprocess.run(["fish", "--no-config", "-c", script], env=environment, cwd=world.root, check=True,
                              capture_output=True, text=True, timeout=60).stdout

    assert "list\tList jobs" in completed("muster lis")
    assert completed("muster list --state failed,ru") == "failed,running\n"
    assert re.fullmatch(rf"{number}\ttraining, [A-Z]+\n", completed("muster cancel "))
    assert "first.yaml" in completed("muster submit fi")


def test_every_manual_page_is_read_without_an_error(tmp_path):
    subprocess.run([BIN / "muster", "help", "--man-pages", tmp_path], check=True, timeout=60)
    pages = sorted(tmp_path.glob("*.1"))
    assert {"muster.1", "muster-submit.1", "muster-token-create.1"} <= {page.name for page in pages}
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", *pages], capture_output=True, text=True, check=False)
    assert lint.stdout == ""
    for page in pages:
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True, timeout=60,
                               env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100", "MAN_KEEP_FORMATTING": ""})
        assert shown.stderr == "", page
        assert "SYNOPSIS" in shown.stdout
    submit = subprocess.run(["man", "-l", tmp_path / "muster-submit.1"], capture_output=True, text=True, check=True)
    assert "--on-cluster-loss POLICY" in submit.stdout


def test_an_installation_has_the_command_with_its_pages_and_completions(tmp_path):
    build = BIN.parent
    assert (build / "cmake_install.cmake").exists(), f"MUSTER_BIN must be the bin of a build directory, and {BIN} is none"
    subprocess.run(["cmake", "--install", build, "--component", "cli", "--prefix", tmp_path], check=True,
                   capture_output=True, timeout=120)
    done = subprocess.run([tmp_path / "bin/muster", "version"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("muster ")
    for path in ("share/man/man1/muster.1", "share/man/man1/muster-submit.1",
                 "share/bash-completion/completions/muster", "share/zsh/site-functions/_muster",
                 "share/fish/vendor_completions.d/muster.fish"):
        assert (tmp_path / path).stat().st_size > 0, path
