// A job that was submitted.

import type { Client, SubmitOptions } from "./client.js";
import type { Limits } from "./calls.js";
import { JobCanceled, JobFailed } from "./errors.js";
import { FailureCode, StateReasonCode, type SubmitWarning } from "./gen/muster/v1/facts_pb.js";
import { type Job, JobState, type Transition } from "./gen/muster/v1/job_pb.js";
import { Lines, type LogOptions, type LogPiece } from "./streams.js";

/** The reason why a job waits or did not succeed. */
export interface Why {
  /** "WAITS_FOR_RESOURCES", "OUT_OF_MEMORY": docs/concepts.md; empty: there is nothing to explain. */
  code: string;
  message: string;
  remedy: string;
  /** Lines of logs and events that led to the verdict. */
  quotes: string[];
}

/** The run and rank whose files are read. Default: rank 0 of the latest run. */
export interface FetchOptions {
  run?: number;
  rank?: number;
}

export function hasEnded(job: Job | undefined): boolean {
  return job !== undefined && (job.state === JobState.SUCCEEDED || job.state === JobState.FAILED || job.state === JobState.CANCELED);
}

/** "RUNNING"; the number of a state that only a newer broker knows. */
export function stateName(job: Job): string {
  return JobState[job.state] ?? String(job.state);
}

/** Explains a job by what the broker last said of it. */
export function whyOf(job: Job): Why {
  if (job.state === JobState.FAILED && job.failure) {
    const { code, message, remedy, quotes } = job.failure;
    return { code: FailureCode[code] ?? String(code), message, remedy, quotes: quotes.map((quote) => quote.text) };
  }
  if (job.stateReason) {
    const { code, message, remedy } = job.stateReason;
    return { code: StateReasonCode[code] ?? String(code), message, remedy, quotes: [] };
  }
  return { code: "", message: `job ${job.id} is ${stateName(job)}`, remedy: "", quotes: [] };
}

function sentence(why: Why): string {
  return [why.message, why.remedy, ...why.quotes.map((quote) => `> ${quote}`)].filter(Boolean).join("\n");
}

/** A job by its number, with what the broker said of it last. Reading `state` asks nothing; refresh() does. */
export class JobHandle {
  /** The whole job as last known, a muster.v1.Job. */
  message: Job | undefined;
  /** The warnings of the submit. */
  warnings: SubmitWarning[] = [];

  constructor(protected readonly client: Client, readonly id: number, message?: Job) {
    this.message = message;
  }

  /** Asks the broker for the whole job again, with the spec and all runs. Throws NotFound. */
  async refresh(): Promise<Job> {
    return (this.message = await this.client.get(this.id));
  }

  get name(): string | undefined {
    return this.message?.name;
  }

  /** As last known: QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED; undefined: nothing is known yet. */
  get state(): string | undefined {
    return this.message && stateName(this.message);
  }

  /** The cluster of its latest run; empty: it has none. */
  get cluster(): string | undefined {
    return this.message?.cluster;
  }

  /** The command's exit code; undefined: it has not ended, or a signal or something else ended it. */
  get exitCode(): number | undefined {
    const exit = this.message?.exit;
    return exit && !exit.signal ? exit.code : undefined;
  }

  /** Asks why it waits, or did not succeed. */
  async why(): Promise<Why> {
    return whyOf(await this.refresh());
  }

  /** Its history, the oldest step first; with `follow` on to its end, across restarts of the broker. Throws WaitTimeout. */
  async *events(options: Limits & { follow?: boolean } = {}): AsyncGenerator<Transition> {
    if (!options.follow) {
      yield* this.client.transitions(this.id);
      return;
    }
    for await (const change of this.client.watch({ ...options, jobs: this.id, fromBeginning: true, untilEnded: true })) {
      this.message = change.job ?? this.message;
      if (change.transition) yield change.transition;
    }
  }

  /** Waits until it has ended, in whichever way. Throws WaitTimeout. */
  async wait(limits: Limits = {}): Promise<this> {
    if (!hasEnded(this.message)) await this.client.wait([this], limits);
    return this;
  }

  /** Waits, and returns the job as it ended. Throws JobFailed, JobCanceled or WaitTimeout. */
  async result(limits: Limits = {}): Promise<Job> {
    await this.wait(limits);
    const job = this.message ?? (await this.refresh());
    if (job.state === JobState.FAILED) throw new JobFailed(`job ${job.id} has failed: ${sentence(whyOf(job))}`, job);
    if (job.state === JobState.CANCELED) throw new JobCanceled(`job ${job.id} was canceled`, job);
    return job;
  }

  /** The lines of a rank's output, without their ends, each once, across restarts of the broker. */
  async *logs(options: LogOptions & Limits = {}): AsyncGenerator<string> {
    const lines = new Lines();
    for await (const piece of this.logPieces(options)) yield* lines.take(piece);
    yield* lines.rest();
  }

  /** The bytes of a rank's output, each once and in order. */
  logPieces(options: LogOptions & Limits = {}): AsyncGenerator<LogPiece> {
    return this.client.logPieces(this.id, options);
  }

  /** All that the broker has of the output, as one text. */
  async log(options: LogOptions & Limits = {}): Promise<string> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    let text = "";
    for await (const piece of this.logPieces(options)) text += decoders[piece.stream].decode(piece.data, { stream: !piece.end });
    return text;
  }

  /** Reads one file of a run into memory; the path is relative to its working directory, or begins with "results/". */
  read(path: string, options: FetchOptions = {}): Promise<Uint8Array> {
    return this.client.read(this.id, path, options);
  }

  /** Asks that the job end; it ends when its cluster has ended it. */
  async cancel(reason = ""): Promise<this> {
    return this.#now(await this.client.cancel({ jobs: this.id, reason }));
  }

  /** Keeps the job from starting before it is released. Throws NotPossible if it runs or has ended. */
  async hold(reason = ""): Promise<this> {
    return this.#now(await this.client.hold({ jobs: this.id, reason }));
  }

  /** Releases the job, so that it may start. */
  async release(reason = ""): Promise<this> {
    return this.#now(await this.client.release({ jobs: this.id, reason }));
  }

  /** Submits the job again, and returns the new job. Throws NotPossible if it has not ended. */
  async rerun(options: SubmitOptions = {}): Promise<JobHandle> {
    const [job] = await this.client.rerun({ ...options, jobs: this.id });
    return job as JobHandle;
  }

  #now(changed: Job[]): this {
    this.message = changed[0] ?? this.message;
    return this;
  }

  toString(): string {
    if (!this.message) return `Job ${this.id}`;
    const why = whyOf(this.message);
    const parts = [`Job ${this.id} ${this.message.name}: ${stateName(this.message)}`, this.message.cluster && `on ${this.message.cluster}`];
    return (parts.filter(Boolean).join(", ") + (why.code && ` - ${why.message}`)).replace(/\s+/g, " ");
  }
}
