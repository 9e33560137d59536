"""The Go client, fetched by `go get` into an empty module: its own tests, the code of its page, and real jobs."""

import os
import pathlib
import re
import shutil
import tempfile

import pytest

from harness.daemons import BIN
from harness.programs import checked
from harness.restarts import lines_of_the_log, seen_across_restarts

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MODULE = REPOSITORY / "clients" / "go"
# A first build of the modules takes minutes on a busy machine.
BUILD_TIMEOUT_S = 1200

# One worker fetches it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("go_client")]

IMPORTS = ("context", "errors", "fmt", "os", "time")
USES = "var _, _, _, _ = context.Background, errors.New, fmt.Sprint, time.Now\nvar _ = os.Args\n"
MAIN = """
func main() {
	ctx := context.Background()
	client, err := muster.NewClient(muster.Options{})
	for _, part := range parts {
		if err == nil {
			err = part(ctx, client)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""


@pytest.fixture(scope="module")
def go():
    """The environment in which `go` is the one that this repository needs."""
    program = checked(REPOSITORY / "tests" / "support" / "find-go").strip()
    return {"PATH": f"{pathlib.Path(program).parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def module(go):
    """A module of a user's, into which the client came as docs/go.md says."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="muster-go-"))
    checked("go", "mod", "init", "example.com/mine", cwd=root, env=go)
    checked("go", "mod", "edit", "-replace", f"muster.dev/api={MODULE}", cwd=root, env=go)
    checked("go", "get", "muster.dev/api@v0.0.0", cwd=root, env=go, timeout=BUILD_TIMEOUT_S)
    (root / "quickstart").mkdir()
    (root / "quickstart" / "main.go").write_text(blocks("docs/go.md")[0])
    checked("go", "mod", "tidy", cwd=root, env=go, timeout=BUILD_TIMEOUT_S)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def build(go, module):
    """build(NAME, SOURCE): the program that it becomes."""

    def make(name, source):
        directory = module / name
        directory.mkdir(exist_ok=True)
        (directory / "main.go").write_text(source)
        checked("go", "build", "-o", module / "bin" / name, f"./{name}", cwd=module, env=go, timeout=BUILD_TIMEOUT_S)
        return module / "bin" / name

    return make


@pytest.fixture
def home(world):
    made = world.path("home")
    made.mkdir()
    return made


def environment(world, broker):
    return {"MUSTER_BROKER": broker.address, "HOME": str(world.path("home")), "PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.fixture
def execute(world, broker, home):
    """execute(PROGRAM): runs it for the test's broker, in a directory of its own."""
    return lambda program, *arguments: checked(program, *arguments, cwd=home, env=environment(world, broker))


def program_of(*bodies):
    """A program that runs statements of several functions; each has ctx and client, and returns an error."""
    parts = "".join(f"\tfunc(ctx context.Context, client *muster.Client) error {{\n{body}\nreturn nil\n}},\n" for body in bodies)
    imports = "".join(f'\t"{name}"\n' for name in (*IMPORTS, "muster.dev/api/muster"))
    return f"package main\n\nimport (\n{imports})\n\n{USES}\nvar parts = []func(context.Context, *muster.Client) error{{\n{parts}}}\n{MAIN}"


def blocks(page):
    return re.findall(r"^```go\n(.*?)^```", (REPOSITORY / page).read_text(), re.MULTILINE | re.DOTALL)


def test_its_own_tests_pass_and_go_finds_nothing_to_mend(go):
    assert not checked("gofmt", "-l", MODULE, env=go)
    checked("go", "vet", "./...", cwd=MODULE, env=go, timeout=BUILD_TIMEOUT_S)
    assert "ok" in checked("go", "test", "-count=1", "./...", cwd=MODULE, env=go, timeout=BUILD_TIMEOUT_S)


def test_its_modules_are_those_that_it_uses(go, world):
    copy = world.path("copy")
    shutil.copytree(MODULE, copy)
    checked("go", "mod", "tidy", "-diff", cwd=copy, env=go, timeout=BUILD_TIMEOUT_S)


def test_its_generated_packages_are_those_of_the_protos(go, world):
    root = world.path("repository")
    shutil.copytree(MODULE, root / "clients" / "go")
    (root / "proto").symlink_to(REPOSITORY / "proto")
    checked("./generate", cwd=root / "clients" / "go", env=go, timeout=BUILD_TIMEOUT_S)

    def code(directory):
        """Each file without the version of protoc, which follows Debian's."""
        return {path.name: re.sub(r"^//.*protoc .*$", "", path.read_text(), flags=re.MULTILINE)
                for path in (directory / "muster" / "v1").rglob("*.go")}

    assert code(root / "clients" / "go") == code(MODULE), "clients/go/generate makes others: run it"


def test_the_quickstart_of_its_page_runs(build, execute, agent):
    assert execute(build("quickstart", blocks("docs/go.md")[0])) == "hello from box\n"


def test_the_code_of_its_page_runs_in_order(build, execute, home, agent):
    (home / "project").mkdir()
    (home / "project" / "train.py").write_text("import os\nos.makedirs('results', exist_ok=True)\nopen('results/model', 'w').write('m')\n")
    (home / "train.yaml").write_text("name: train\nrun: echo trained\n")
    output = execute(build("page", program_of(*blocks("docs/go.md")[1:])))
    for expected in ("SUCCEEDED box", "two\n", "FAILURE_CODE_COMMAND_FAILED", "CANNOT_BE_PLACED", "spec.priority"):
        assert expected in output, output
    assert (home / "results" / "answer").read_text() == "42\n"


def test_a_submit_that_is_repeated_makes_one_job(build, execute, agent, api):
    assert execute(build("repeat", program_of("""
first, err := client.Submit(ctx, muster.Job{Script: "true"}, muster.RequestID("mine"))
if err != nil {
	return err
}
second, err := client.Submit(ctx, muster.Job{Script: "true"}, muster.RequestID("mine"))
if err != nil {
	return err
}
_, err = client.Submit(ctx, muster.Job{Script: "false"}, muster.RequestID("mine"))
fmt.Println(first.ID == second.ID, errors.Is(err, muster.ErrAlreadyExists))
"""))) == "true true\n"
    assert len(api.list_all()) == 1


def test_files_go_along_and_results_come_back(build, execute, home, agent):
    (home / "project" / "bin").mkdir(parents=True)
    (home / "project" / ".gitignore").write_text("*.log\n")
    (home / "project" / "noise.log").write_text("x")
    (home / "project" / "large").write_bytes(bytes(3 << 20))
    (home / "project" / "bin" / "go").write_text("#!/bin/sh\nls > results/listed; cat etc/config >> results/listed; wc -c <large >>results/listed; mkfifo results/pipe\n")
    (home / "project" / "bin" / "go").chmod(0o755)
    (home / "config").write_text("configured\n")
    assert execute(build("files", program_of("""
job, err := client.Submit(ctx, muster.Job{Args: []string{"bin/go"}, Workdir: "project", Files: map[string]string{"etc/config": "config"}})
if err != nil {
	return err
}
if _, err := job.Result(ctx); err != nil {
	return err
}
fetched, err := job.Fetch(ctx, muster.FetchOptions{To: "here"})
fmt.Println(fetched.Path, fetched.LeftOut)
return err
"""))) == "here [{pipe is a device, a pipe or a socket SPECIAL_FILE}]\n"
    assert (home / "here" / "listed").read_text() == "bin\netc\nlarge\nresults\nconfigured\n3145728\n"


def test_what_is_wrong_comes_as_an_error_of_its_kind(build, execute, agent):
    assert execute(build("kinds", program_of("""
submit := func(job muster.Job) error {
	handle, err := client.Submit(ctx, job)
	if err == nil {
		_, err = handle.Result(ctx)
	}
	return err
}
_, absent := client.Job(4711).Refresh(ctx)
for _, one := range []struct{ err, kind error }{
	{submit(muster.Job{Script: "true", Nodes: 2}), muster.ErrCannotBePlaced}, {submit(muster.Job{Script: "true", Priority: 5000}), muster.ErrBadRequest},
	{absent, muster.ErrNotFound}, {submit(muster.Job{Script: "exit 3"}), muster.ErrJobFailed},
	{submit(muster.Job{Script: "true", Clusters: []string{"nowhere"}}), muster.ErrNotFound},
} {
	reason := ""
	var refused *muster.Error
	if errors.As(one.err, &refused) {
		reason = fmt.Sprint(refused.Code, " ", refused.Reason, " ", len(refused.Fields))
	}
	fmt.Println(errors.Is(one.err, one.kind), reason)
}
"""))).splitlines() == ["true FAILED_PRECONDITION CANNOT_BE_PLACED 0", "true INVALID_ARGUMENT  1", "true NOT_FOUND UNKNOWN_JOB 0", "true ",
                        "true NOT_FOUND UNKNOWN_CLUSTER 0"]


def test_more_jobs_than_a_watch_takes_by_number_are_waited_for(build, execute, agent):
    assert execute(build("many", program_of("""
var all []muster.Job
for range 1100 {
	all = append(all, muster.Job{Script: "true", CPUs: 0.01, Time: time.Hour})
}
jobs, err := client.SubmitMany(ctx, all)
if err != nil {
	return err
}
if _, err := client.Cancel(ctx, muster.Which{Filter: fmt.Sprintf("id > %d", jobs[50].ID)}); err != nil {
	return err
}
if err := client.Wait(ctx, jobs...); err != nil {
	return err
}
for _, job := range jobs {
	if state := job.State(); state != "CANCELED" && state != "SUCCEEDED" {
		fmt.Println(job)
	}
}
fmt.Println(len(jobs))
"""))) == "1100\n"


def test_a_restart_of_the_broker_costs_no_line_and_no_change(build, world, broker, agent, home):
    program = build("restart", program_of("""
job, err := client.Submit(ctx, muster.Job{Script: os.Args[1]})
if err != nil {
	return err
}
watched := make(chan []uint64)
go func() {
	var states []uint64
	for step, err := range job.Events(ctx, true) {
		if err != nil {
			fmt.Println(err)
		}
		states = append(states, step.GetJobSequence())
	}
	watched <- states
}()
for line, err := range job.Logs(ctx, muster.LogOptions{Follow: true}) {
	if err != nil {
		return err
	}
	fmt.Println(line)
}
states, at := <-watched, 0
for step, err := range job.Events(ctx, false) {
	if err != nil {
		return err
	}
	if at >= len(states) || states[at] != step.GetJobSequence() || step.GetJobSequence() != uint64(at+1) {
		fmt.Println("a change is missing or came twice", states)
	}
	at++
}
if err := job.Wait(ctx); err != nil {
	return err
}
fmt.Println(job.State(), at == len(states))
"""))
    seen = seen_across_restarts(world, broker, [program], environment(world, broker), cwd=home)
    assert seen == [*lines_of_the_log(), "SUCCEEDED", "true"]
