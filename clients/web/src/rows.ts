// The jobs of a filter as rows, in the broker's order. The tasks of an array are one row, if that is asked for.

import type { Job } from "../client/gen/muster/v1/job_pb.js";
import { TransitionKind } from "../client/gen/muster/v1/job_pb.js";
import { type JobChange, JobsService } from "../client/gen/muster/v1/jobs_service_pb.js";
import { broker } from "./broker.js";

export const PAGE = 200;
// Rows that one step of scrolling wants; an array costs a call of its own.
const STEP_ROWS = 40;
const STEP_CALLS = 40;
// Pages of newer jobs that are put on top of the list; with more it begins anew.
const NEWER_PAGES = 5;
// These tell a task of an array; docs/job-file.md has them.
const PLACE = "MUSTER_ARRAY_PLACE";
const COUNT = "SLURM_ARRAY_TASK_COUNT";
const MASK = { paths: [`env.${PLACE}`, `env.${COUNT}`] };

/** The tasks of an array: jobs with numbers in a row. */
export interface TaskArray {
  first: bigint;
  last: bigint;
  /** Rises with each change of a task that is heard of. */
  changes: number;
}

export interface Row {
  /** The job; of an array, one of its tasks. */
  job: Job;
  array?: TaskArray;
}

/** The filter with another condition. */
export const narrow = (filter: string, condition: string): string => (filter.trim() ? `(${filter}) AND ${condition}` : condition);

export const tasksOf = (array: TaskArray): string => `id >= ${array.first} AND id <= ${array.last}`;

function arrayOf(job: Job): TaskArray | undefined {
  const place = Number(job.spec?.env[PLACE] ?? NaN);
  const count = Number(job.spec?.env[COUNT] ?? NaN);
  if (!Number.isInteger(place) || !Number.isInteger(count) || place >= count || count < 2 || BigInt(place) >= job.id) return undefined;
  const first = job.id - BigInt(place);
  return { first, last: first + BigInt(count) - 1n, changes: 0 };
}

export class Rows {
  rows: Row[] = [];
  isWhole = false;
  /** Newer jobs are there, which may be tasks of an array. */
  hasNewer = false;
  /** A step is under way; another one would read the list at another place. */
  isBusy = false;
  readonly #at = new Map<bigint, Row>();
  readonly #arrays: TaskArray[] = [];
  #token = "";
  /** The condition that leaves out what lies before the next page. */
  #beyond = "";

  constructor(readonly filter: string, readonly orderBy: string, groups: boolean) {
    this.groups = groups && (orderBy === "" || orderBy === "id");
  }

  /** True if arrays are one row. */
  readonly groups: boolean;

  async more(): Promise<void> {
    const enough = this.rows.length + STEP_ROWS;
    for (let calls = 0; calls < STEP_CALLS && !this.isWhole && this.rows.length < enough; ++calls) await this.#page();
  }

  async #page(): Promise<void> {
    const page = await this.#list(this.#beyond ? narrow(this.filter, this.#beyond) : this.filter, this.#token);
    this.#take(page.jobs, page.nextPageToken);
  }

  #list(filter: string, pageToken = "") {
    return broker.ask(JobsService.method.listJobs, {
      filter, orderBy: this.orderBy || "id desc", pageSize: PAGE, pageToken, ...(this.groups ? { specMask: MASK } : {}),
    });
  }

  #arrayWith(id: bigint): TaskArray | undefined {
    return this.#arrays.find((one) => one.first <= id && id <= one.last);
  }

  #push(rows: Row[], job: Job): void {
    if (this.#at.has(job.id) || this.#arrayWith(job.id)) return;
    const array = this.groups ? arrayOf(job) : undefined;
    const row: Row = array ? { job, array } : { job };
    if (array) this.#arrays.push(array);
    else this.#at.set(job.id, row);
    rows.push(row);
  }

  get #newest(): bigint {
    const [top] = this.rows;
    return top?.array?.last ?? top?.job.id ?? 0n;
  }

  /** Returns the number of rows that came on top. */
  take(change: JobChange): number {
    const { job } = change;
    if (!job) return 0;
    const known = this.#at.get(job.id);
    if (known) {
      const old = known.job;
      // The feed leaves out why a queued job waits, and the spec.
      if (!job.stateReason && old.state === job.state) job.stateReason = old.stateReason;
      known.job = job;
      return 0;
    }
    const array = this.#arrayWith(job.id);
    if (array) array.changes += 1;
    if (array || this.orderBy || change.transition?.kind !== TransitionKind.SUBMITTED || job.id <= this.#newest) return 0;
    if (this.groups) {
      this.hasNewer = true;
      return 0;
    }
    const fresh: Row[] = [];
    this.#push(fresh, job);
    this.rows.unshift(...fresh);
    return fresh.length;
  }

  /** Reads the first pages once more: how their jobs are now, and the newer ones. Returns the number of rows that came on top. */
  async catchUp(): Promise<number> {
    this.hasNewer = false;
    const newest = this.#newest;
    const fresh: Job[] = [];
    let token = "";
    let beyond = "";
    for (let pages = 1; ; ++pages) {
      const page = await this.#list(beyond ? narrow(this.filter, beyond) : this.filter, token);
      for (const job of page.jobs) {
        const known = this.#at.get(job.id);
        if (known) known.job = job;
        else if (job.id > newest) fresh.push(job);
      }
      const oldest = page.jobs.at(-1);
      const array = oldest && this.groups ? arrayOf(oldest) : undefined;
      token = array ? "" : page.nextPageToken;
      if (array) beyond = `id < ${array.first}`;
      // Below are rows that are there.
      if (this.orderBy || !oldest || oldest.id <= newest || !page.nextPageToken) break;
      if (pages === NEWER_PAGES) return this.#beginWith(fresh, page.nextPageToken, beyond);
    }
    for (const array of this.#arrays) array.changes += 1;
    if (this.orderBy) return 0;
    const rows: Row[] = [];
    for (const job of fresh) this.#push(rows, job);
    this.rows.unshift(...rows);
    return rows.length;
  }

  /** More jobs came than are put on top: the list begins anew. */
  #beginWith(jobs: readonly Job[], token: string, beyond: string): number {
    this.rows = [];
    this.#at.clear();
    this.#arrays.length = 0;
    this.#beyond = beyond;
    this.#take(jobs, token);
    return 0;
  }

  #take(jobs: readonly Job[], token: string): void {
    for (const job of jobs) this.#push(this.rows, job);
    this.#token = token;
    this.isWhole = !token;
    const last = jobs.at(-1);
    const array = last && this.#arrayWith(last.id);
    if (!array) return;
    // The rest of the array is stepped over.
    this.#beyond = this.orderBy === "id" ? `id > ${array.last}` : `id < ${array.first}`;
    this.#token = "";
  }
}
