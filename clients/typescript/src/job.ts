// A job as its user describes it.

import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { BadRequest } from "./errors.js";
import { JobDependencySchema, JobOutcome } from "./gen/muster/v1/job_dependency_pb.js";
import {
  CommandSchema, GpuRequestSchema, type JobSpec, JobSpecSchema, PlacementSchema, ResourcesSchema, RetryPolicySchema,
} from "./gen/muster/v1/job_spec_pb.js";
import { SecretUseSchema } from "./gen/muster/v1/secret_use_pb.js";
import * as units from "./units.js";

const MAX_RETRIES = 99;

/** A job by its number, or what submit returned. */
export type JobLike = number | bigint | { readonly id: number };

/** The fields of a job but its command. Every one has a default; the broker checks all of them. */
export interface JobFields {
  /** Default: the first word of the command. */
  name?: string;
  /** Default: "default". */
  project?: string;
  /** 1 to 10000; the command starts once on each. Default: 1. */
  nodes?: number;
  /** Cores of each node. Default: the cluster's. */
  cpus?: number | string;
  /** Memory of each node: bytes, or "16Gi". */
  memory?: number | string;
  /** GPUs of each node: 8, "H100", "H100:8", "H100:0.5". */
  gpus?: number | string;
  /** The longest that it may run: seconds, or "1h30m". */
  time?: number | string;
  /** A container image. */
  image?: string;
  env?: Record<string, string>;
  labels?: Record<string, string>;
  /** -1000 to 1000, higher first. */
  priority?: number;
  /** The only clusters that may take it. Default: any. */
  clusters?: string | string[];
  /** Slurm: the partition; Kubernetes: the namespace. */
  pool?: string;
  /** A shell script that runs once on each node before the command. */
  setup?: string;
  /** A directory of this machine; the command starts in a copy of it. Only in Node.js. */
  workdir?: string;
  /** Files and directories of this machine to upload, as place in the run's directory: path here. Only in Node.js. */
  files?: Record<string, string>;
  /** A directory of the cluster, absolute; not together with workdir and files. */
  workingDirectory?: string;
  /** A directory of the cluster, e.g. "lustre:///lustre/ada/run7". */
  resultsDirectory?: string;
  /** Jobs that have to succeed first. */
  after?: JobLike | JobLike[];
  /** Jobs that have to end first, in any way. */
  afterEnded?: JobLike | JobLike[];
  /** Jobs that have to fail or to be canceled first. */
  afterFailed?: JobLike | JobLike[];
  /** Variable: the secret's name. */
  secrets?: Record<string, string>;
  /** The number of further runs that may follow one that its cluster failed. Default: 10. */
  retries?: number;
  /** All other fields of muster.v1.JobSpec: { slurm: { qos: "high" } }. The fields above override it. */
  spec?: MessageInitShape<typeof JobSpecSchema>;
}

/** A job with its command: a string is a shell script, an array is a program with its arguments. */
export interface Job extends JobFields {
  command?: string | string[];
}

export function idOf(job: JobLike): number {
  const id = typeof job === "object" ? job.id : Number(job);
  if (!Number.isSafeInteger(id) || id < 0) throw new BadRequest(`${id} is no number of a job`);
  return id;
}

/** Returns the numbers of several jobs, each once. */
export function idsOf(jobs: JobLike | JobLike[]): number[] {
  return [...new Set((Array.isArray(jobs) ? jobs : [jobs]).map(idOf))];
}

/** A command or a Job, with fields in place of its own. */
export function describe(what: string | string[] | Job, fields: JobFields): Job {
  return typeof what === "string" || Array.isArray(what) ? { ...fields, command: what } : { ...what, ...fields };
}

/** Returns the message for the broker, without the files to upload. Throws BadRequest, which names the field. */
export function specOf(job: Job): JobSpec {
  // This replaces fields of the copy, never those of the user's own message.
  const spec = clone(JobSpecSchema, create(JobSpecSchema, job.spec));
  for (const name of ["name", "project", "image", "setup", "workingDirectory", "resultsDirectory"] as const) spec[name] = job[name] || spec[name];
  spec.nodes = job.nodes ?? (spec.nodes || 1);
  spec.priority = job.priority ?? spec.priority;
  spec.env = { ...spec.env, ...job.env };
  spec.labels = { ...spec.labels, ...job.labels };
  setCommand(job, spec);
  setResources(job, spec);
  setPlacement(job, spec);
  for (const [variable, name] of Object.entries(job.secrets ?? {})) spec.secrets.push(create(SecretUseSchema, { variable, name }));
  for (const [jobs, outcome] of [[job.after, JobOutcome.SUCCEEDED], [job.afterEnded, JobOutcome.ENDED], [job.afterFailed, JobOutcome.FAILED]] as const) {
    for (const id of idsOf(jobs ?? [])) spec.dependsOn.push(create(JobDependencySchema, { jobId: BigInt(id), outcome }));
  }
  return spec;
}

function setCommand(job: Job, spec: JobSpec): void {
  if (typeof job.command === "string") {
    spec.command = create(CommandSchema, { form: { case: "script", value: job.command } });
  } else if (job.command) {
    if (job.command.length === 0) throw new BadRequest("command is empty");
    spec.command = create(CommandSchema, { form: { case: "argv", value: { args: job.command } } });
  } else if (!spec.command && spec.roles.length === 0) {
    throw new BadRequest("command is required: a text for a shell, or a list of a program and its arguments");
  }
}

function setResources(job: Job, spec: JobSpec): void {
  if (job.time !== undefined) spec.timeLimit = units.duration(job.time);
  if (job.cpus === undefined && job.memory === undefined && job.gpus === undefined) return;
  const resources = (spec.resources ??= create(ResourcesSchema));
  if (job.cpus !== undefined) resources.cpuMillis = units.millis(job.cpus, 10_000_000, "cpus");
  if (job.memory !== undefined) resources.memoryBytes = units.size(job.memory);
  if (job.gpus !== undefined) resources.gpus = [create(GpuRequestSchema, units.gpus(job.gpus))];
}

function setPlacement(job: Job, spec: JobSpec): void {
  if (job.clusters !== undefined || job.pool) {
    const placement = (spec.placement ??= create(PlacementSchema));
    placement.clusters.push(...(typeof job.clusters === "string" ? [job.clusters] : (job.clusters ?? [])));
    placement.pool = job.pool || placement.pool;
  }
  if (job.retries === undefined) return;
  if (!Number.isInteger(job.retries) || job.retries < 0 || job.retries > MAX_RETRIES) {
    throw new BadRequest(`retries is ${job.retries}; it is 0 to ${MAX_RETRIES}`);
  }
  (spec.retry ??= create(RetryPolicySchema)).maxRuns = job.retries + 1;
}

/** Returns the files to upload as [path here, place in the run's directory]; an empty place is the directory itself. */
export function uploadsOf(job: Job): [string, string][] {
  const found: [string, string][] = job.workdir === undefined ? [] : [[job.workdir, ""]];
  return [...found, ...Object.entries(job.files ?? {}).map(([place, path]): [string, string] => [path, place])];
}
