// The client without the files of this machine: for browsers, and the base of the one for Node.js.

import { create, type DescMessage, type DescMethodUnary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { call, type Limits, MAX_REQUEST_BYTES, once, open, follow, QUESTION_TIMEOUT_MS, type Session } from "./calls.js";
import { BadRequest, ConfigurationError, fromConnect, JobFileError, MusterError, NotPossible } from "./errors.js";
import type { Cluster, JobPlan } from "./gen/muster/v1/cluster_pb.js";
import { ClustersService } from "./gen/muster/v1/clusters_service_pb.js";
import { FileKind } from "./gen/muster/v1/file_tree_pb.js";
import { type FetchFilesResponse, FilesService } from "./gen/muster/v1/files_service_pb.js";
import { IdentityService, type WhoAmIResponse } from "./gen/muster/v1/identity_service_pb.js";
import type { Job as JobMessage, Transition } from "./gen/muster/v1/job_pb.js";
import type { JobSpec } from "./gen/muster/v1/job_spec_pb.js";
import {
  type JobChange, type JobCount, JobGrouping, JobsService, type SubmitJobRequest, SubmitJobRequestSchema, type SubmitJobResponse,
  type WatchJobsRequest, WatchJobsRequestSchema,
} from "./gen/muster/v1/jobs_service_pb.js";
import { type FetchOptions, hasEnded, type JobHandle } from "./handle.js";
import { describe, idOf, idsOf, type Job, type JobFields, type JobLike, specOf, uploadsOf } from "./job.js";
import { LogPlace, type LogOptions, type LogPiece, WatchPlace } from "./streams.js";

// Limits of the API.
const MAX_JOBS_PER_SUBMIT = 10_000;
const MAX_JOBS_PER_CHANGE = 1000;
// A change by filter gives up after this many answers that changed no job, because the jobs keep changing themselves.
const MAX_ANSWERS_WITHOUT_JOBS = 100;
// Pages are as large as possible, so that listing everything takes fewer calls.
const PAGE = 1000;
// The tag and the length of one request within a message of several.
const REQUEST_FRAMING_BYTES = 8;

export interface SubmitOptions {
  /** The job starts only after it is released. */
  held?: boolean;
  /** A later submit with the same one gets the same job. Default, and for "": a new one for each call, which its repeats use. */
  requestId?: string;
}

/** Jobs, by number or by filter. */
export interface Which {
  jobs?: JobLike | JobLike[];
  /** A filter of docs/cli.md; "id > 0" takes all jobs. */
  filter?: string;
}

export interface ListOptions {
  /** A filter of docs/cli.md: 'state = RUNNING AND label.team = vision'. */
  filter?: string;
  /** Default: "id desc". */
  orderBy?: string;
  limit?: number;
  /** With the spec of each. */
  spec?: boolean;
}

export interface WatchOptions extends Which, Limits {
  /** Goes on behind a change's sequence. */
  after?: bigint;
  /** Default: from now on. */
  fromBeginning?: boolean;
  /** Stops when all have ended; only with `jobs`, up to 1000. */
  untilEnded?: boolean;
}

/** A tree of files that is uploaded with a job. */
export interface UploadTree {
  readonly sha256: string;
}

/** A job that is about to be submitted. */
export interface Planned<T extends UploadTree = UploadTree> {
  spec: JobSpec;
  trees: T[];
}

/** A broker, as its user sees it. It connects at its first call. */
export abstract class BaseClient<H extends JobHandle> {
  protected constructor(protected readonly session: Session, /** Its address. */ readonly broker: string) {}

  /** Returns a job by its number. It asks the broker only when you ask something of the job. */
  abstract job(id: number, message?: JobMessage): H;

  protected call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, request: MessageInitShape<I>, timeoutMs?: number,
  ): Promise<MessageShape<O>> {
    return call(this.session, method, request, timeoutMs);
  }

  // ---- submit

  /**
   * Submits a job, exactly once: a command (a text for a shell, or a list of a program and its arguments), a Job, or, in Node.js, the
   * path of a job file with one job ("train.yaml"). Throws CannotBePlaced, BadRequest and other MusterErrors.
   */
  async submit(what: string | string[] | Job, fields: JobFields & SubmitOptions = {}): Promise<H> {
    const { held, requestId, ...rest } = fields;
    if (typeof what === "string" && /^\S+\.ya?ml$/.test(what)) {
      const jobs = await this.submitFile(what, { held, requestId });
      const [only] = jobs;
      if (!only || jobs.length > 1) throw new JobFileError(`${what} has ${jobs.length} jobs, which are submitted now; use submitFile for such`);
      return only;
    }
    const [job] = await this.submitMany([describe(what, rest)], { held, requestIds: requestId === undefined ? undefined : [requestId] });
    return job as H;
  }

  /**
   * Submits jobs: all or none, as long as they fit into one message of 4 MiB and 10000 jobs; more go in several. If one of these fails,
   * the error has the jobs of those before it as `submitted`.
   */
  async submitMany(
    several: (string | string[] | Job)[], options: JobFields & { held?: boolean; requestIds?: string[] } = {},
  ): Promise<H[]> {
    const { held, requestIds, ...fields } = options;
    const planned = await this.prepare(several.map((what) => describe(what, fields)));
    const answers: SubmitJobResponse[] = [];
    const handles = (): H[] => answers.map((answer) => {
      const job = this.job(Number(answer.jobId));
      job.warnings = answer.warnings;
      return job;
    });
    try {
      await this.#submitSpecs(planned, held ?? false, requestIds, false, answers);
    } catch (error) {
      if (error instanceof MusterError) error.submitted = handles();
      throw error;
    }
    return handles();
  }

  /** Submits the jobs of a job file, all or none. Only in Node.js, with the command `muster` in PATH, which reads the file. */
  submitFile(path: string, options?: SubmitOptions): Promise<H[]>;
  submitFile(path: string): Promise<H[]> {
    return Promise.reject(new JobFileError(`${path}: a browser reads no job files; describe the job by its fields`));
  }

  /** Checks a job as submit would, and submits nothing. Returns its spec. */
  async validate(what: string | string[] | Job, fields: JobFields = {}): Promise<JobSpec> {
    const planned = await this.prepare([describe(what, fields)]);
    await this.#submitSpecs(planned, false, undefined, true, []);
    return (planned[0] as Planned).spec;
  }

  /** Returns what a job would become on each cluster that could take it, and when it would start. The best cluster comes first. */
  async plan(what: string | string[] | Job, fields: JobFields = {}): Promise<JobPlan[]> {
    const planned = await this.prepare([describe(what, fields)]);
    await this.sendTrees(planned, true);
    return (await this.call(JobsService.method.planJob, { spec: planned[0]?.spec }, QUESTION_TIMEOUT_MS)).plans;
  }

  /** Makes specs, and reads the files that go along. */
  protected prepare(several: Job[]): Promise<Planned[]> {
    return Promise.resolve().then(() => several.map((job) => {
      if (uploadsOf(job).length > 0) throw new ConfigurationError("workdir and files are of this machine, and a browser has none: use Node.js");
      return { spec: specOf(job), trees: [] };
    }));
  }

  /** Sends what the broker lacks of the trees, or of the lists of files alone. */
  protected sendTrees(planned: Planned[], listsAlone: boolean): Promise<void>;
  protected sendTrees(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Files go after the broker has said that the jobs are good, so that nothing is sent for a job that no cluster can take. `answers` gets
   * those that come before an error, too.
   */
  async #submitSpecs(
    planned: Planned[], held: boolean, requestIds: string[] | undefined, validateOnly: boolean, answers: SubmitJobResponse[],
  ): Promise<void> {
    // An empty request id counts as none: a repeat without an id would make a second job.
    const ids = (requestIds ?? planned.map(() => "")).map((id) => id || newRequestId());
    if (ids.length !== planned.length) throw new BadRequest(`requestIds has ${ids.length} names for ${planned.length} jobs`);
    const requests = planned.map((job, at) => create(SubmitJobRequestSchema, { spec: job.spec, requestId: ids[at], held }));
    if (planned.some((job) => job.trees.length > 0)) {
      // The broker needs the trees themselves to judge the job, and checks that it has them.
      await this.sendTrees(planned, true);
      await this.#sendJobs(requests, true, []);
      if (validateOnly) return;
      await this.sendTrees(planned, false);
    }
    await this.#sendJobs(requests, validateOnly, answers);
  }

  async #sendJobs(requests: SubmitJobRequest[], validateOnly: boolean, answers: SubmitJobResponse[]): Promise<void> {
    for (const request of requests) request.validateOnly = validateOnly;
    const [only] = requests;
    if (only && requests.length === 1) {
      answers.push(await this.call(JobsService.method.submitJob, only));
      return;
    }
    let part: SubmitJobRequest[] = [];
    let bytes = 0;
    const send = async (): Promise<void> => {
      if (part.length > 0) answers.push(...(await this.call(JobsService.method.submitJobs, { requests: part })).responses);
      [part, bytes] = [[], 0];
    };
    for (const request of requests) {
      const size = toBinary(SubmitJobRequestSchema, request).length + REQUEST_FRAMING_BYTES;
      if (part.length === MAX_JOBS_PER_SUBMIT || bytes + size > MAX_REQUEST_BYTES) await send();
      part.push(request);
      bytes += size;
    }
    await send();
  }

  // ---- look

  /** One job, whole: muster.v1.Job. Throws NotFound. */
  async get(job: JobLike): Promise<JobMessage> {
    const { job: found } = await this.call(JobsService.method.getJob, { jobId: BigInt(idOf(job)) });
    return found as JobMessage;
  }

  /** Jobs page by page, the newest first. */
  async *list(options: ListOptions = {}): AsyncGenerator<H> {
    let left = options.limit ?? Infinity;
    for (let pageToken = ""; left > 0; ) {
      const page = await this.call(JobsService.method.listJobs, {
        filter: options.filter ?? "", orderBy: options.orderBy ?? "id desc", includeSpec: options.spec ?? false, pageToken, pageSize: Math.min(left, PAGE),
      });
      for (const message of page.jobs) yield this.job(Number(message.id), message);
      left -= page.jobs.length;
      pageToken = page.nextPageToken;
      if (!pageToken) return;
    }
  }

  /** Counts the jobs that a filter takes. */
  async count(filter = ""): Promise<number> {
    return Number((await this.call(JobsService.method.countJobs, { filter })).total);
  }

  /** The same in groups, the largest first: "state", "cluster", "user", "project", "label=KEY". */
  async countBy(by: string | string[], filter = ""): Promise<JobCount[]> {
    let label = "";
    const groupBy = (typeof by === "string" ? [by] : by).map((group) => {
      const [name = "", key = ""] = group.split(/=(.*)/s);
      const number = JobGrouping[name.toUpperCase() as keyof typeof JobGrouping] as JobGrouping | undefined;
      if (!number || (name === "label") !== Boolean(key)) {
        throw new BadRequest(`by has "${group}"; groups are state, cluster, user, project and label=KEY`);
      }
      label = key || label;
      return number;
    });
    return (await this.call(JobsService.method.countJobs, { filter, groupBy, label })).counts;
  }

  /** The clusters that the broker knows, by name. */
  async clusters(): Promise<Cluster[]> {
    return (await this.call(ClustersService.method.listClusters, {})).clusters;
  }

  /** Says who this client's user is to the broker. */
  whoAmI(): Promise<WhoAmIResponse> {
    return this.call(IdentityService.method.whoAmI, {});
  }

  /** The history of a job, the oldest step first. */
  async *transitions(job: JobLike): AsyncGenerator<Transition> {
    for (let pageToken = ""; ; ) {
      const page = await this.call(JobsService.method.listTransitions, { jobId: BigInt(idOf(job)), pageSize: PAGE, pageToken });
      yield* page.transitions;
      pageToken = page.nextPageToken;
      if (!pageToken) return;
    }
  }

  // ---- change

  /** Asks that jobs end: by number, in calls of 1000 that are all or none, or all of a filter. Returns them as they are now. */
  cancel(which: Which & { reason?: string }): Promise<JobMessage[]> {
    return this.#change(JobsService.method.cancelJobs, which);
  }

  /** Keeps jobs from starting before they are released. */
  hold(which: Which & { reason?: string }): Promise<JobMessage[]> {
    return this.#change(JobsService.method.holdJobs, which);
  }

  /** Releases held jobs. */
  release(which: Which & { reason?: string }): Promise<JobMessage[]> {
    return this.#change(JobsService.method.releaseJobs, which);
  }

  async #change(
    method: typeof JobsService.method.cancelJobs | typeof JobsService.method.holdJobs | typeof JobsService.method.releaseJobs,
    which: Which & { reason?: string },
  ): Promise<JobMessage[]> {
    const ids = idsOf(which.jobs ?? []);
    const { filter = "", reason = "" } = which;
    if (ids.length > 0 === (filter.trim() !== "")) throw new BadRequest("name jobs or a filter, and one of them; 'id > 0' takes all jobs");
    const changed: JobMessage[] = [];
    // The three requests, and the three answers, have the same fields.
    const ask = (jobIds: number[]): Promise<{ jobs: JobMessage[]; more: boolean }> =>
      this.call(method as typeof JobsService.method.cancelJobs, { jobIds: jobIds.map(BigInt), filter, reason });
    for (let at = 0; at < ids.length; at += MAX_JOBS_PER_CHANGE) changed.push(...(await ask(ids.slice(at, at + MAX_JOBS_PER_CHANGE))).jobs);
    for (let without = 0; ids.length === 0 && without < MAX_ANSWERS_WITHOUT_JOBS; ) {
      const answer = await ask([]);
      changed.push(...answer.jobs);
      if (!answer.more) break;
      without = answer.jobs.length > 0 ? 0 : without + 1;
    }
    return changed;
  }

  /** Submits ended jobs again, at most 1000, all or none, and returns the new jobs. */
  async rerun(which: Which & SubmitOptions): Promise<H[]> {
    const answer = await this.call(JobsService.method.rerunJobs, {
      jobIds: idsOf(which.jobs ?? []).map(BigInt), filter: which.filter ?? "", held: which.held ?? false, requestId: which.requestId || newRequestId(),
    });
    return answer.jobs.map((job) => this.job(Number(job.jobId)));
  }

  // ---- follow

  /** Every change of the jobs, once and in order, across restarts of the broker. Throws WaitTimeout. */
  async *watch(options: WatchOptions = {}): AsyncGenerator<JobChange> {
    for await (const change of follow(this.session, new WatchPlace(watchRequest(options)), options)) if (change) yield change;
  }

  /** Waits until all have ended, in whichever way, and returns them. Throws WaitTimeout. */
  async wait<T extends JobLike>(jobs: T[], limits: Limits = {}): Promise<H[]> {
    const handles = jobs.map((job) => this.#handle(job));
    const ended = new Map<number, JobMessage | undefined>();
    for await (const job of this.asCompleted(handles, limits)) ended.set(job.id, job.message);
    for (const handle of handles) handle.message = ended.get(handle.id) ?? handle.message;
    return handles;
  }

  /** The jobs as they end. Throws WaitTimeout. */
  async *asCompleted(jobs: JobLike[], limits: Limits = {}): AsyncGenerator<H> {
    const left = new Map<number, H>();
    for (const job of jobs) {
      const handle = this.#handle(job);
      if (!left.has(handle.id)) left.set(handle.id, handle);
    }
    if (left.size === 0) return;
    const ids = [...left.keys()].sort((one, other) => one - other);
    const many = ids.length > MAX_JOBS_PER_CHANGE;
    const filter = many ? `id >= ${ids[0]} AND id <= ${ids[ids.length - 1]}` : "";
    const request = watchRequest(many ? { filter } : { jobs: ids, fromBeginning: true, untilEnded: true });
    let began = !many;
    for await (const change of follow(this.session, new WatchPlace(request), limits)) {
      if (!began) {
        // More than a watch takes by number: all of the range are watched, and ours are picked out. From here on each change is
        // seen, so that those who have ended before can be looked up.
        began = true;
        const ended = `(${filter}) AND (state = SUCCEEDED OR state = FAILED OR state = CANCELED)`;
        for await (const job of this.list({ filter: ended, orderBy: "id" })) yield* takeEnded(left, job.message);
      }
      yield* takeEnded(left, change?.job);
      if (left.size === 0) return;
    }
  }

  #handle(job: JobLike): H {
    return typeof job === "object" && "refresh" in job ? (job as H) : this.job(idOf(job));
  }

  // ---- output and files

  /** The bytes of a rank's output, each once and in order; see JobHandle.logs. */
  logPieces(job: JobLike, options: LogOptions & Limits = {}): AsyncGenerator<LogPiece> {
    return follow(this.session, new LogPlace(idOf(job), options), options);
  }

  /** Reads one file of a run into memory. Throws NotFound, and NotPossible: it is a directory. */
  async read(job: JobLike, path: string, options: FetchOptions = {}): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const { piece } of this.fetchPieces(job, path, options)) {
      if (piece.case === "entry" && piece.value.kind !== FileKind.FILE) throw new NotPossible(`${path} is no file; name one in it`);
      if (piece.case === "leftOut") throw new NotPossible(`${path} ${piece.value.why}`);
      if (piece.case === "chunk") chunks.push(piece.value);
    }
    const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  protected async *fetchPieces(job: JobLike, path: string, options: FetchOptions): AsyncGenerator<FetchFilesResponse> {
    const request = {
      jobId: BigInt(idOf(job)), run: options.run ?? 0, rank: options.rank ?? 0, path: path === "." ? new Uint8Array() : new TextEncoder().encode(path),
    };
    try {
      yield* open(this.session, FilesService.method.fetchFiles, once(FilesService.method.fetchFiles.input, request));
    } catch (thrown) {
      throw fromConnect(thrown);
    }
  }
}

export type Client = BaseClient<JobHandle>;

function watchRequest(options: WatchOptions): WatchJobsRequest {
  const start: WatchJobsRequest["start"] = options.after !== undefined
    ? { case: "after", value: options.after }
    : create(WatchJobsRequestSchema, { start: options.fromBeginning ? { case: "beginning", value: {} } : { case: "now", value: {} } }).start;
  return create(WatchJobsRequestSchema, {
    jobIds: idsOf(options.jobs ?? []).map(BigInt), filter: options.filter ?? "", untilTerminal: options.untilEnded ?? false, start,
  });
}

function* takeEnded<H extends JobHandle>(left: Map<number, H>, message: JobMessage | undefined): Iterable<H> {
  const job = message && left.get(Number(message.id));
  if (!job || !hasEnded(message)) return;
  left.delete(job.id);
  job.message = message;
  yield job;
}

function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
