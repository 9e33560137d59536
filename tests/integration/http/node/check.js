// check.js URL FORM - makes calls with Connect's own client for Node.js, FORM "json" or "binary", and prints what came as JSON. The
// token is in MUSTER_TOKEN.
import { createHash } from "node:crypto";

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";

import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { FilesService } from "./gen/muster/v1/files_service_pb.js";
import { JobsService } from "./gen/muster/v1/jobs_service_pb.js";
import { JobState } from "./gen/muster/v1/job_pb.js";

const [baseUrl, form] = process.argv.slice(2);
const bearer = (next) => async (request) => {
  if (!request.header.has("Authorization")) request.header.set("Authorization", `Bearer ${process.env.MUSTER_TOKEN}`);
  return next(request);
};
const transport = createConnectTransport({
  baseUrl, httpVersion: "1.1", useBinaryFormat: form === "binary", interceptors: [bearer],
});
const jobs = createClient(JobsService, transport);
const files = createClient(FilesService, transport);
const seen = {};

async function errorOf(call) {
  try {
    await call();
  } catch (error) {
    const known = ConnectError.from(error);
    return { code: Code[known.code], reason: known.findDetails(ErrorInfoSchema)[0]?.reason ?? null };
  }
  return null;
}

async function drain(stream) {
  for await (const _ of stream);
}

const script = "echo hello from $MUSTER_CLUSTER";
const { jobId } = await jobs.submitJob({ spec: { name: "connect", command: { form: { case: "script", value: script } } } });
seen.job = String(jobId);
seen.states = [];
const beginning = { case: "beginning", value: {} };
for await (const message of jobs.watchJobs({ jobIds: [jobId], start: beginning, untilTerminal: true })) {
  for (const change of message.changes) {
    if (change.transition) seen.states.push(JobState[change.transition.jobState]);
  }
}
seen.log = "";
for await (const piece of jobs.readLog({ jobId, follow: true })) seen.log += new TextDecoder().decode(piece.data);
seen.name = (await jobs.getJob({ jobId })).job.spec.name;

seen.unknown = await errorOf(() => jobs.getJob({ jobId: 99n }));
seen.unknownStream = await errorOf(() => drain(jobs.readLog({ jobId: 99n })));
seen.late = await errorOf(() => drain(jobs.watchJobs({}, { timeoutMs: 200 })));
const aborter = new AbortController();
setTimeout(() => aborter.abort(), 200);
seen.aborted = await errorOf(() => drain(jobs.watchJobs({}, { signal: aborter.signal })));
seen.forged = await errorOf(() => jobs.listJobs({}, { headers: { Authorization: "Bearer no" } }));

const content = new TextEncoder().encode("from a client\n");
const sha256 = createHash("sha256").update(content).digest("hex");
async function* upload() {
  yield { part: { case: "head", value: { sha256, sizeBytes: BigInt(content.length) } } };
  yield { part: { case: "chunk", value: content } };
}
seen.stored = (await files.uploadFiles(upload())).storedFiles;
console.log(JSON.stringify(seen));
