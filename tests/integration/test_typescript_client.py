"""The TypeScript client, installed by npm into an empty project: its own tests, the code of its page, and real jobs."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from harness import programs
from harness.daemons import BIN
from harness.restarts import lines_of_the_log, seen_across_restarts

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# npm fetches a hundred packages.
INSTALL_TIMEOUT_S = 900

# One worker installs it once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("typescript_client")]

COMPILER = {"target": "ES2022", "lib": ["ES2023", "DOM", "DOM.Iterable"], "module": "NodeNext", "moduleResolution": "NodeNext", "strict": True,
            "types": ["node"], "outDir": "out", "rootDir": "."}


@functools.cache
def path():
    """PATH with a Node.js that the package takes, and with Muster's programs."""
    node = subprocess.run([REPOSITORY / "deploy" / "find-node"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{BIN}:{node}:{os.environ['PATH']}"


def checked(*argv, **arguments):
    # The first word is sought in this PATH, too.
    return programs.checked("/usr/bin/env", f"PATH={path()}", *argv, **arguments)


@pytest.fixture(scope="module")
def package():
    """A copy of the package, made as docs/typescript.md says."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="muster-ts-"))
    copy = root / "repository" / "clients" / "typescript"
    shutil.copytree(REPOSITORY / "clients" / "typescript", copy, ignore=shutil.ignore_patterns("node_modules", "dist", "dist-test", "gen"))
    (root / "repository" / "proto").symlink_to(REPOSITORY / "proto")
    checked("npm", "ci", "--prefix", copy, cwd=root, timeout=INSTALL_TIMEOUT_S)
    yield copy
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def project(package):
    """A project of a user's that has installed it, and TypeScript."""
    root = package.parents[2] / "project"
    root.mkdir()
    (root / "package.json").write_text(json.dumps({"name": "mine", "private": True, "type": "module"}))
    own = json.loads((package / "package.json").read_text())["devDependencies"]
    checked("npm", "install", package, *(f"{name}@{own[name]}" for name in ("typescript", "@types/node")), cwd=root, timeout=INSTALL_TIMEOUT_S)
    return root


@pytest.fixture
def compile(package, project):
    """compile(NAME, SOURCE): the program that it becomes. With `check`, TypeScript checks the types, which takes it a while."""

    def make(name, source, check=False):
        (project / f"{name}.ts").write_text(source)
        if check:
            (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER, "files": [f"{name}.ts"]}))
            checked("npx", "tsc", cwd=project)
        else:
            checked(package / "node_modules" / ".bin" / "esbuild", f"{name}.ts", f"--outfile=out/{name}.js", cwd=project)
        return project / "out" / f"{name}.js"

    return make


@pytest.fixture
def home(world):
    made = world.path("home")
    made.mkdir()
    return made


def environment(world, broker):
    return {"MUSTER_BROKER": broker.address, "HOME": str(world.path("home")), "PATH": path()}


@pytest.fixture
def execute(compile, world, broker, home):
    """execute(NAME, SOURCE): runs it for the test's broker, in a directory of its own."""
    return lambda name, source, **how: checked("node", compile(name, source, **how), cwd=home, env=environment(world, broker))


def program_of(*bodies):
    """A program that runs the bodies one after the other, each in a block of its own, with a client. Imports come first, once."""
    imports = {"Client"}
    for body in bodies:
        for names in re.findall(r'^import \{(.*)\} from "@muster-jobs/client";$', body, re.MULTILINE):
            imports.update(name.strip() for name in names.split(","))
    bodies = [re.sub(r"^import .*$", "", body, flags=re.MULTILINE) for body in bodies]
    return (f'import {{ {", ".join(sorted(imports))} }} from "@muster-jobs/client";\nconst client = new Client();\n'
            + "".join(f"{{\n{body}\n}}\n" for body in bodies) + "client.close();\n")


def blocks(page):
    return re.findall(r"^```typescript\n(.*?)^```", (REPOSITORY / page).read_text(), re.MULTILINE | re.DOTALL)


def test_its_own_tests_pass_and_no_linter_finds_anything(package):
    checked("npm", "run", "lint", cwd=package)
    output = checked("npm", "test", cwd=package)
    assert re.search(r"^# pass [1-9]", output, re.MULTILINE) or re.search(r"pass [1-9]", output), output


def test_the_quickstart_of_its_page_runs(execute, agent):
    assert execute("quickstart", blocks("docs/typescript.md")[0], check=True) == "hello from box\n"


def test_the_example_of_its_readme_runs(execute, agent):
    assert execute("readme", blocks("clients/typescript/README.md")[0]) == "hello from box\n0\n"


def test_the_code_of_its_page_runs_in_order(execute, home, agent):
    (home / "project").mkdir()
    (home / "project" / "train.py").write_text("import os\nos.makedirs('results', exist_ok=True)\nopen('results/model', 'w').write('m')\n")
    (home / "train.yaml").write_text("name: train\nrun: echo trained\n")
    output = execute("page", program_of(*blocks("docs/typescript.md")[1:]), check=True)
    for expected in ("SUCCEEDED 0 box", "two\n", "3 The command", "HELD", "CANNOT_BE_PLACED", "spec.priority"):
        assert expected in output, output
    assert (home / "results" / "answer").read_text() == "42\n"


def test_a_submit_that_is_repeated_makes_one_job(execute, agent, api):
    assert execute("repeat", program_of("""
import { AlreadyExists } from "@muster-jobs/client";
const first = await client.submit("true", { requestId: "mine" });
const second = await client.submit("true", { requestId: "mine" });
const refused = await client.submit("false", { requestId: "mine" }).catch((error: unknown) => error);
console.log(first.id === second.id, refused instanceof AlreadyExists);
""")) == "true true\n"
    assert len(api.list_all()) == 1


def test_files_go_along_and_results_come_back(execute, home, agent):
    (home / "project" / "bin").mkdir(parents=True)
    (home / "project" / ".gitignore").write_text("*.log\n")
    (home / "project" / "noise.log").write_text("x")
    (home / "project" / "large").write_bytes(bytes(3 << 20))
    (home / "project" / "bin" / "go").write_text("#!/bin/sh\nls > results/listed; cat etc/config >> results/listed; cp large results/copy; mkfifo results/pipe\n")
    (home / "project" / "bin" / "go").chmod(0o755)
    (home / "config").write_text("configured\n")
    assert execute("files", program_of("""
const job = await client.submit(["bin/go"], { workdir: "project", files: { "etc/config": "config" } });
await job.result();
const { path, leftOut } = await job.fetch("results", { to: "here" });
console.log(path, JSON.stringify(leftOut), (await job.read("results/copy")).length);
""")) == 'here [{"path":"pipe","why":"is a device, a pipe or a socket","code":"SPECIAL_FILE"}] 3145728\n'
    assert (home / "here" / "listed").read_text() == "bin\netc\nlarge\nresults\nconfigured\n"
    assert (home / "here" / "copy").stat().st_size == 3 << 20


def test_what_is_wrong_comes_as_an_error_of_its_class(execute, agent):
    assert execute("kinds", program_of("""
import { MusterError } from "@muster-jobs/client";
for (const call of [
  () => client.submit("true", { nodes: 2 }), () => client.submit("true", { priority: 5000 }), () => client.job(4711).refresh(),
  async () => (await client.submit("exit 3")).result({ timeoutMs: 60_000 }), () => client.submit("true", { clusters: "nowhere" }),
  async () => (await client.submit("sleep 60")).wait({ timeoutMs: 200 }), async () => client.cancel({ filter: "id > 0" }),
]) {
  try {
    await call();
    console.log("done");
  } catch (error) {
    if (!(error instanceof MusterError)) throw error;
    console.log(error.name, error.code, error.reason, Object.keys(error.fields).join());
  }
}
""")).splitlines() == ["CannotBePlaced FAILED_PRECONDITION CANNOT_BE_PLACED ", "BadRequest INVALID_ARGUMENT  spec.priority",
                       "NotFound NOT_FOUND UNKNOWN_JOB ", "JobFailed   ", "NotFound NOT_FOUND UNKNOWN_CLUSTER ", "WaitTimeout   ", "done"]


def test_more_jobs_than_a_watch_takes_by_number_are_waited_for(execute, agent):
    assert execute("many", program_of("""
const jobs = await client.submitMany(Array<string>(1100).fill("true"), { cpus: 0.01, time: "1h" });
await client.cancel({ filter: `id > ${jobs[50].id}` });
console.log([...new Set((await client.wait(jobs, { timeoutMs: 250_000 })).map((job) => job.state))].sort().join());
""")) == "CANCELED,SUCCEEDED\n"


def test_a_restart_of_the_broker_costs_no_line_and_no_change(compile, world, broker, agent, home):
    program = compile("restart", program_of("""
const job = await client.submit(process.argv[2]);
const watched = (async () => {
  const seen: number[] = [];
  for await (const step of job.events({ follow: true })) seen.push(Number(step.jobSequence));
  return seen;
})();
for await (const line of job.logs({ follow: true })) console.log(line);
const seen = await watched;
const all: number[] = [];
for await (const step of job.events()) all.push(Number(step.jobSequence));
console.log((await job.wait()).state, seen.join() === all.join() && all.every((sequence, at) => sequence === at + 1));
"""))
    seen = seen_across_restarts(world, broker, ["/usr/bin/env", "node", program], environment(world, broker), cwd=home)
    assert seen == [*lines_of_the_log(), "SUCCEEDED", "true"]
