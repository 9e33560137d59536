import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Client as BrowserClient } from "../src/browser.js";
import { FileKind } from "../src/gen/muster/v1/file_tree_pb.js";
import { TreeWriter } from "../src/files.js";
import { FetchFilesResponseSchema, FileLeftOutCode } from "../src/gen/muster/v1/files_service_pb.js";
import { StateReasonSchema } from "../src/gen/muster/v1/facts_pb.js";
import { JobState } from "../src/gen/muster/v1/job_pb.js";
import { LogEnd, LogStream, type ReadLogRequest, type SubmitJobRequest, type SubmitJobsRequest, type WatchJobsRequest } from "../src/gen/muster/v1/jobs_service_pb.js";
import * as muster from "../src/index.js";
import { directoryFor, info, refuse, retryIn, startBroker, stream } from "./broken_broker.js";

const seven = (): object => ({ jobId: 7n });

for (const web of [false, true]) {
  test(`a submit is repeated under the same request id, ${web ? "through the Connect protocol" : "through gRPC"}`, async (t) => {
    const told: string[] = [];
    const it = await startBroker(t, {
      submitJob: [refuse(Code.Unavailable, "the connection broke"), refuse(Code.ResourceExhausted, "later", info("TOO_MANY_WAIT"), retryIn(10)), seven],
    }, { web, onInterruption: (error) => told.push(error.code) });
    assert.equal((await it.client.submit("true")).id, 7);
    const ids = new Set(it.requests.map((request) => (request as SubmitJobRequest).requestId));
    assert.ok(ids.size === 1 && !ids.has("") && it.requests.length === 3);
    assert.deepEqual(told, ["UNAVAILABLE"]);
  });
}

test("an empty request id is none", async (t) => {
  const it = await startBroker(t, {
    submitJob: [refuse(Code.Unavailable, "the connection broke"), seven, seven],
    rerunJobs: [() => ({ jobs: [{ jobId: 8n }] })],
    submitJobs: [() => ({ responses: [{ jobId: 9n }, { jobId: 10n }] })],
  });
  for (let count = 0; count < 2; count++) await it.client.submit("true", { requestId: "" });
  const [first, again, other] = it.requests.map((request) => (request as SubmitJobRequest).requestId);
  assert.ok(first && first === again && other && other !== first);
  await it.client.job(7).rerun({ requestId: "" });
  await it.client.submitMany(["true", "false"], { requestIds: ["", "mine"] });
  const [rerun, several] = it.requests.slice(3) as [SubmitJobRequest, SubmitJobsRequest];
  assert.ok(rerun.requestId);
  assert.ok(several.requests[0]?.requestId && several.requests[1]?.requestId === "mine");
});

test("the jobs of the messages before a failure come with the error", async (t) => {
  const it = await startBroker(t, {
    submitJobs: [() => ({ responses: [{ jobId: 7n }, { jobId: 8n }] }), refuse(Code.ResourceExhausted, "too many wait", info("TOO_MANY_WAIT"))],
  });
  const large = "#".repeat(1_500_000);
  await assert.rejects(it.client.submitMany([large, large, large]), (error) => {
    assert.ok(error instanceof muster.TooMuch);
    assert.deepEqual(error.submitted.map((job) => job.id), [7, 8]);
    return true;
  });
});

test("the entry for browsers has the same rules", async (t) => {
  const it = await startBroker(t, {
    submitJob: [refuse(Code.Unavailable, "the connection broke"), seven],
    readLog: [stream([piece(0, "one\ntwo\n"), piece(8, "", LogStream.STDOUT, LogEnd.COMPLETE)])],
  }, { web: true });
  const client = new BrowserClient({ broker: it.address });
  const job = await client.submit("true");
  assert.deepEqual(await all(job.logs({ stream: "stdout" })), ["one", "two"]);
  await assert.rejects(client.submit("true", { workdir: "." }), muster.ConfigurationError);
  assert.throws(() => new BrowserClient({ broker: "unix:/b.sock" }), muster.ConfigurationError);
});

test("the entry for browsers reaches no module of Node.js", () => {
  execFileSync("node_modules/.bin/esbuild", ["dist-test/src/browser.js", "--bundle", "--platform=browser", "--format=esm", "--outfile=dist-test/bundle.js"], { stdio: "pipe" });
});

test("a lost answer is asked for again with the same request", async (t) => {
  const it = await startBroker(t, { submitJob: [seven, seven] });
  const path = join(directoryFor(t), "front.sock");
  let cut = true;
  const front = createServer((one) => {
    const back = connect(it.address.slice("unix:".length));
    const breaks = cut;
    cut = false;
    one.on("error", () => undefined).on("close", () => back.destroy()).pipe(back);
    back.on("error", () => undefined).on("close", () => one.destroy()).on("data", (data) => {
      // Whatever the broker says once it has the job is lost, and the connection breaks.
      if (breaks && it.requests.length > 0) one.destroy();
      else one.write(data);
    });
  });
  await new Promise<void>((resolve) => front.listen(path, resolve));
  const client = new muster.Client({ broker: `unix:${path}` });
  t.after(() => (client.close(), front.close()));
  assert.equal((await client.submit("true")).id, 7);
  assert.equal(it.requests.length, 2);
  assert.deepEqual(it.requests[0], it.requests[1]);
});

test("what no repeat mends comes at once with its facts", async (t) => {
  const why = create(StateReasonSchema, { message: "no", remedy: "Ask for less." });
  const it = await startBroker(t, {
    submitJob: [refuse(Code.FailedPrecondition, "no cluster", info("CANNOT_BE_PLACED", { request: "0" }), { desc: StateReasonSchema, value: why })],
  });
  await assert.rejects(it.client.submit("true"), (error) => {
    assert.ok(error instanceof muster.CannotBePlaced && error instanceof muster.NotPossible);
    assert.deepEqual([error.message, error.code, error.reason, error.metadata, error.remedy, error.why?.message, error.name],
      ["no cluster", "FAILED_PRECONDITION", "CANNOT_BE_PLACED", { request: "0" }, "Ask for less.", "no", "CannotBePlaced"]);
    return true;
  });
});

test("each status has its class", async (t) => {
  for (const [code, kind] of [
    [Code.InvalidArgument, muster.BadRequest], [Code.NotFound, muster.NotFound], [Code.AlreadyExists, muster.AlreadyExists],
    [Code.PermissionDenied, muster.NotAllowed], [Code.Unauthenticated, muster.NotLoggedIn], [Code.Unimplemented, muster.NotHonoured],
    [Code.ResourceExhausted, muster.TooMuch], [Code.Aborted, muster.Conflict], [Code.Internal, muster.MusterError],
  ] as const) {
    const it = await startBroker(t, { countJobs: [refuse(code, "so it is", info("SOME_REASON"))] });
    await assert.rejects(it.client.count(), (error) => {
      assert.ok(error instanceof muster.MusterError);
      assert.deepEqual([error.constructor, error.reason, error.message], [kind, "SOME_REASON", "so it is"]);
      return true;
    });
  }
});

test("patience for RetryInfo is bounded", async (t) => {
  const later = refuse(Code.ResourceExhausted, "later", info("BUSY"), retryIn(900));
  const it = await startBroker(t, { countJobs: [later, later, later] }, { callTimeoutMs: 1500 });
  await assert.rejects(it.client.count(), (error) => error instanceof muster.TooMuch && error.retryAfterMs === 900);
  assert.equal(it.requests.length, 2);
});

test("nobody there is told soon with the address", async (t) => {
  const path = join(directoryFor(t), "none.sock");
  await assert.rejects(new muster.Client({ broker: `unix:${path}` }).count(), (error) =>
    error instanceof muster.BrokerUnavailable && error.message.includes(`${path} (given as broker)`));
});

const change = (sequence: bigint, state = JobState.RUNNING): object => ({ sequence, job: { id: 7n, state } });

async function all<T>(from: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of from) found.push(one);
  return found;
}

test("a watch goes on behind the last change", async (t) => {
  const it = await startBroker(t, {
    watchJobs: [stream([{ changes: [change(1n), change(2n)] }, { heartbeat: { sequence: 5n } }], true), stream([{ changes: [change(5n), change(6n)] }])],
  });
  assert.deepEqual((await all(it.client.watch({ jobs: 7, fromBeginning: true }))).map((one) => one.sequence), [1n, 2n, 6n]);
  assert.deepEqual(it.requests.map((request) => (request as WatchJobsRequest).start.case), ["beginning", "after"]);
  assert.equal((it.requests[1] as WatchJobsRequest).start.value, 5n);
});

function piece(offset: number, data: string, output = LogStream.STDOUT, end = LogEnd.UNSPECIFIED): object {
  return { stream: output, offset: BigInt(offset), data: Buffer.from(data), end };
}

test("a log goes on behind the last byte of each output", async (t) => {
  const it = await startBroker(t, {
    readLog: [
      stream([piece(0, "one\ntw"), piece(0, "err\n", LogStream.STDERR, LogEnd.COMPLETE)], true),
      stream([piece(0, "", LogStream.STDERR, LogEnd.COMPLETE), piece(2, "e\ntwo\nlast"), piece(12, "", LogStream.STDOUT, LogEnd.COMPLETE)]),
    ],
  });
  assert.deepEqual(await all(it.client.job(7).logs({ follow: true })), ["one", "err", "two", "last"]);
  assert.deepEqual((it.requests[1] as ReadLogRequest).positions.map((one) => [one.stream, one.offset]), [[LogStream.STDOUT, 6n], [LogStream.STDERR, 4n]]);
});

test("a tail is asked for again until its begin is known", async (t) => {
  const begins = [piece(100, ""), piece(50, "", LogStream.STDERR)];
  const it = await startBroker(t, {
    readLog: [
      stream(begins.slice(0, 1), true), stream([...begins, piece(100, "a\n")], true),
      stream([piece(102, "b\n", LogStream.STDOUT, LogEnd.COMPLETE), piece(50, "c\n", LogStream.STDERR, LogEnd.COMPLETE)]),
    ],
  });
  assert.deepEqual(await all(it.client.job(7).logs({ follow: true, tail: 2 })), ["a", "b", "c"]);
  assert.deepEqual(it.requests.map((request) => (request as ReadLogRequest).tailLines), [2, 2, 0]);
});

test("a log can be left in the middle", async (t) => {
  const it = await startBroker(t, { readLog: [stream([piece(0, "one\ntwo\nthree\n"), piece(14, "", LogStream.STDOUT, LogEnd.COMPLETE)])] });
  for await (const line of it.client.job(7).logs({ stream: "stdout" })) {
    assert.equal(line, "one");
    break;
  }
});

test("a wait ends in time, and with its signal", async (t) => {
  const silent = async function* (_: unknown, signal: AbortSignal): AsyncGenerator<object> {
    yield { heartbeat: { sequence: 1n } };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const it = await startBroker(t, { watchJobs: [silent, silent] });
  await assert.rejects(it.client.job(7).wait({ timeoutMs: 300 }), muster.WaitTimeout);
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error("enough")), 100);
  await assert.rejects(it.client.job(7).wait({ signal: stop.signal }), /enough/);
});

const root = { piece: { case: "entry", value: { kind: FileKind.DIRECTORY } } };
const entry = (path: string, kind: FileKind, linkTarget = ""): object => ({
  piece: { case: "entry", value: { path: Buffer.from(path), kind, linkTarget: Buffer.from(linkTarget) } },
});

test("files from a hostile broker stay below the target", async (t) => {
  for (const one of [
    entry("../x", FileKind.FILE), entry("/tmp/x", FileKind.FILE), entry("a/../../x", FileKind.FILE), entry("link", FileKind.SYMLINK, "/etc"),
    entry("l", FileKind.SYMLINK, "../../x"),
  ]) {
    const target = directoryFor(t);
    const it = await startBroker(t, { fetchFiles: [stream([root, one])] });
    await assert.rejects(it.client.fetch(7, "results", { to: target }), /refused/);
    assert.deepEqual(readdirSync(join(target, "results")), []);
  }
});

// Each of these links stays below the target by its text; the last one goes through the others.
test("links from a hostile broker replace nothing outside of the target", async (t) => {
  const outside = directoryFor(t);
  const [target, victim] = [join(outside, "target"), join(outside, "victim")];
  mkdirSync(target);
  writeFileSync(victim, "mine");
  const chain = [
    entry("x", FileKind.DIRECTORY), entry("x/y", FileKind.SYMLINK, ".."), entry("l", FileKind.SYMLINK, "x/y/../.."), entry("l/victim", FileKind.SYMLINK, "x"),
  ];
  const it = await startBroker(t, { fetchFiles: [stream([root, ...chain])] });
  await assert.rejects(it.client.fetch(7, "results", { to: target }), /l is a link/);
  assert.ok(lstatSync(victim).isFile());
  assert.equal(readFileSync(victim, "utf8"), "mine");
});

test("what was asked for is a file or a directory", async (t) => {
  const below = entry("x", FileKind.FILE);
  for (const entries of [[entry("", FileKind.SYMLINK, "x")], [below], [entry("", FileKind.FILE), below], [root, entry("x", 99 as FileKind)]]) {
    const it = await startBroker(t, { fetchFiles: [stream(entries)] });
    await assert.rejects(it.client.fetch(7, "results", { to: directoryFor(t) }), /is refused/);
  }
});

test("files do not follow links that are there", async (t) => {
  for (const place of ["results", "results/d"]) {
    const [target, outside] = [directoryFor(t), directoryFor(t)];
    mkdirSync(dirname(join(target, place)), { recursive: true });
    symlinkSync(outside, join(target, place));
    const it = await startBroker(t, { fetchFiles: [stream([root, entry("d/x", FileKind.FILE)])] });
    await assert.rejects(it.client.fetch(7, "results", { to: target }), /is a link/);
    assert.deepEqual(readdirSync(outside), []);
  }
});

const leftOut = (path: string, why: string, code = 0): object => ({ piece: { case: "leftOut", value: { path: Buffer.from(path), why, code } } });

test("a fetch names what was not sent", async (t) => {
  const unreadable = leftOut("", "cannot be read", FileLeftOutCode.UNREADABLE);
  const it = await startBroker(t, {
    fetchFiles: [
      stream([root, leftOut("d/s", "is a socket", FileLeftOutCode.SPECIAL_FILE)]), stream([unreadable]), stream([unreadable]),
    ],
  });
  const to = directoryFor(t);
  assert.deepEqual(await it.client.fetch(7, "results", { to }), {
    path: join(to, "results"), leftOut: [{ path: "d/s", why: "is a socket", code: "SPECIAL_FILE" }],
  });
  assert.deepEqual(await it.client.fetch(7, "results", { to }), { path: "", leftOut: [{ path: "", why: "cannot be read", code: "UNREADABLE" }] });
  await assert.rejects(it.client.read(7, "results/x"), (error) => error instanceof muster.NotPossible && error.message === "results/x cannot be read");
  const writer = new TreeWriter(to, "results");
  const one = create(FetchFilesResponseSchema, { piece: { case: "leftOut", value: {} } });
  for (let count = 0; count < 10_000; count++) writer.take(one);
  assert.throws(() => writer.take(one), muster.TooMuch);
});
