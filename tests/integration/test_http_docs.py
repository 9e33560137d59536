"""docs/http.md does what it says: its commands run in order, and their answers are as shown. Beside it the made files."""

import json
import pathlib
import re
import subprocess

import pytest

from harness.connect import Connect, port_of
from harness.daemons import BIN

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HTTP = "heartbeat_interval: 3s\nhttp:\n  listen: 127.0.0.1:0\n  open_metrics: true\n"
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```", re.MULTILINE | re.DOTALL)
METRIC = re.compile(r"\b(?:muster|process)_[a-z_]+\b")


@pytest.fixture
def broker(world):
    return world.make_broker(config=HTTP).start()


def url_of(broker):
    return f"http://127.0.0.1:{port_of(broker)}"


def contains(real, shown):
    """Tells whether all that is shown is there."""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(key in real and contains(real[key], value) for key, value in shown.items())
    if isinstance(shown, list):
        return isinstance(real, list) and all(any(contains(entry, part) for entry in real) for part in shown)
    return real == shown


def test_the_commands_of_the_page_answer_as_it_shows(world, broker, agent):
    blocks = BLOCK.findall((REPOSITORY / "docs/http.md").read_text())
    script, shown = ["set -eu -o pipefail"], []
    for number, (kind, text) in enumerate(blocks):
        if kind == "json":
            shown.append((number - 1, json.loads(text)))
            continue
        script.append(f"{{ {text.replace('http://127.0.0.1:7071', url_of(broker))}\n}} >out-{number}")
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=world.root, text=True, capture_output=True, timeout=120,
                          check=False, env={"PATH": f"{BIN}:/usr/bin:/bin", "MUSTER_BROKER": broker.address,
                                            "HOME": str(world.root)})
    assert done.returncode == 0, done.stderr
    assert len(shown) == 4
    for number, expected in shown:
        real = json.loads(world.path(f"out-{number}").read_text())
        assert contains(real, expected), (real, expected)
    last = world.path(f"out-{max(n for n, (kind, _) in enumerate(blocks) if kind == 'sh')}").read_text()
    assert 'muster_queue_fill{queue="streams"}' in last
    log = next(world.path(f"out-{n}").read_text() for n, (_, text) in enumerate(blocks) if "ReadLog" in text)
    assert "aGVsbG8K" in log  # "hello\n" in base64


def metrics_of(broker):
    caller = Connect(port_of(broker))
    answer, body = caller.request("GET", "/metrics")
    caller.close()
    assert answer.status == 200
    return body.decode()


@pytest.mark.parametrize("path", ["deploy/monitoring/alerts.yml", "deploy/monitoring/grafana.json", "docs/http.md"])
def test_every_metric_that_is_named_is_there(broker, agent, path):
    there = set(re.findall(r"^([a-z_]+)", metrics_of(broker), re.MULTILINE))
    named = set(METRIC.findall((REPOSITORY / path).read_text()))
    assert named and named <= there, named - there


def test_every_queue_that_metrics_show_is_on_the_page(broker):
    page = (REPOSITORY / "docs/http.md").read_text()
    queues = set(re.findall(r'queue="(\w+)"', metrics_of(broker)))
    assert queues and all(f"`{queue}`" in page for queue in queues)


def test_metrics_are_what_prometheus_reads(broker, agent):
    """Each family has its type before its values, and none comes twice."""
    types, values = {}, {}
    for line in metrics_of(broker).splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types and kind in ("gauge", "counter")
            types[name] = kind
        elif not line.startswith("#"):
            name, value = re.fullmatch(r"([a-z_]+(?:\{.*\})?) (\S+)", line).groups()
            assert name not in values
            values[name] = float(value)
            assert name.partition("{")[0] in types
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in types.items())
    assert values['muster_cluster_connected{cluster="box",kind="MACHINES"}'] == 1


def test_openapi_is_up_to_date_and_whole():
    done = subprocess.run([REPOSITORY / "docs/make-openapi", "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (REPOSITORY / "docs/openapi.json").read_text()
    page = json.loads(text)
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert named <= set(page["components"]["schemas"])
    protos = "".join(path.read_text() for path in (REPOSITORY / "proto/muster/v1").glob("*.proto"))
    assert len(page["paths"]) == len(re.findall(r"^  rpc ", protos, re.MULTILINE))


def test_openapi_describes_what_the_broker_takes(world, broker):
    """A request of each call without a stream, made of its schema, is JSON that the broker can read."""
    page = json.loads((REPOSITORY / "docs/openapi.json").read_text())
    schemas = page["components"]["schemas"]
    token = world.cli("token", "create", "t", "--user", "ada").stdout.strip()
    caller = Connect(port_of(broker), token)
    calls = 0
    for path, entry in page["paths"].items():
        content = entry["post"]["requestBody"]["content"]
        if "application/json" not in content:
            continue
        message = example(content["application/json"]["schema"], schemas, 4)
        status, body = caller.call(path.removeprefix("/muster.v1."), message)
        reasons = [detail["debug"].get("reason") for detail in body.get("details", [])] if status != 200 else []
        assert not {"BAD_JSON", "NO_SUCH_METHOD"} & set(reasons), (path, message, body)
        calls += 1
    assert calls > 30
    caller.close()


def example(schema, schemas, depth):
    """A value that fits, with the fields down to a depth. Only one field of each message: the others may exclude it."""
    if "allOf" in schema:
        schema = schema["allOf"][0]
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rpartition("/")[2]], schemas, depth)
    if "enum" in schema:
        return schema["enum"][-1]
    if schema.get("type") == "array":
        return [example(schema["items"], schemas, depth - 1)] if depth > 0 else []
    if schema.get("type") == "object":
        fields = list(schema.get("properties", {}).items())[:1] if depth > 0 else []
        return {name: example(field, schemas, depth - 1) for name, field in fields}
    plain = {"boolean": True, "integer": 1, "number": 0.5, "string": "eHh4"}
    if schema.get("format") in ("int64", "uint64", "date-time") or "pattern" in schema:
        return {"int64": "1", "uint64": "1", "date-time": "2026-01-02T03:04:05Z"}.get(schema.get("format"), "3s")
    return plain[schema["type"]]
