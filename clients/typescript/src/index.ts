// The entry for Node.js: finds the broker as the command `muster` does, and uploads and fetches files.

import { create } from "@bufbuild/protobuf";
import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { open, repeatUpload, type Session } from "./calls.js";
import { BaseClient, type Planned, type SubmitOptions } from "./client.js";
import { type BrokerOptions, type Config, load, TOKEN_PREFIX } from "./config.js";
import { BadRequest, ConfigurationError, Conflict, JobFileError, type MusterError } from "./errors.js";
import { FilesService, type UploadFilesRequest, UploadFilesRequestSchema } from "./gen/muster/v1/files_service_pb.js";
import type { Job as JobMessage } from "./gen/muster/v1/job_pb.js";
import { UploadSchema } from "./gen/muster/v1/job_spec_pb.js";
import { type FetchOptions, JobHandle as BaseHandle } from "./handle.js";
import { type Job, type JobLike, specOf, uploadsOf } from "./job.js";
import { type FetchResult, TreeWriter } from "./files.js";
import { openTransport } from "./transport.js";
import { chunksOf, CHUNK_BYTES, layout, type LocalTree, readTree, REMEDY } from "./tree.js";

export * from "./common.js";
export type { FetchResult, LeftOut } from "./files.js";

const MAX_DIGESTS_PER_REQUEST = 10_000;
// A file that changes while it is read is read at most this often.
const TRIES_OF_CHANGING_FILES = 3;
const JOB_FILE_TIMEOUT_MS = 900_000;
// Over the Connect protocol one call takes 16 MiB; this leaves some room for framing.
const MAX_WEB_UPLOAD_BYTES = 15 << 20;
// The head of a file, and the framing of its first chunk.
const PARCEL_FRAMING_BYTES = 128;

/** The way to the broker, and the time for which it is tried. */
export interface ClientOptions extends BrokerOptions {
  /** The time for one call, all its attempts together. Default: 30000. */
  callTimeoutMs?: number;
  /** The time for which a stream that broke off is resumed. Default: 600000. */
  streamPatienceMs?: number;
  /** Called at the first failure of a call that will be tried again. */
  onInterruption?: (error: MusterError, patienceMs: number) => void;
}

/** A job that was submitted. */
export class JobHandle extends BaseHandle {
  declare protected readonly client: Client;

  /**
   * Copies a file or a directory of a run into the directory `to`. The path is relative to the run's working directory, "." is all of it;
   * "results" is its results directory, if the working directory has nothing of that name. What the cluster does not send, such as sockets,
   * is no error: the result names it.
   */
  fetch(path = "results", options: FetchOptions & { to?: string } = {}): Promise<FetchResult> {
    return this.client.fetch(this, path, options);
  }

  override async rerun(options: SubmitOptions = {}): Promise<JobHandle> {
    return (await super.rerun(options)) as JobHandle;
  }
}

/** A file to send. */
type Parcel = { size: number; data: Uint8Array } | { size: number; path: Buffer };

/**
 * A broker, as its user sees it. Without options it finds the broker as the command `muster` does: by MUSTER_BROKER, a context, the
 * configuration file, or the socket of the user's own broker. It connects at its first call. Throws ConfigurationError.
 */
export class Client extends BaseClient<JobHandle> {
  readonly #config: Config;
  readonly #close: () => void;

  constructor(options: ClientOptions = {}) {
    const config = load(options, process.env);
    const { transport, close } = openTransport(config);
    super(sessionOf(config, transport, options), config.address.text);
    this.#config = config;
    this.#close = close;
  }

  /** Ends the connection, and the calls and streams on it. */
  close(): void {
    this.#close();
  }

  override job(id: number, message?: JobMessage): JobHandle {
    return new JobHandle(this, id, message);
  }

  override async submitFile(path: string, options: SubmitOptions = {}): Promise<JobHandle[]> {
    const { address, context, token, caFile } = this.#config;
    if (address.isConnect) {
      throw new JobFileError(
        `${path}: the command muster, which reads job files, does not speak with ${address.text}; name the broker by unix:PATH, HOST:PORT or tls:HOST:PORT`,
      );
    }
    const where = context ? ["--context", context] : ["--broker", address.text];
    if (caFile) where.push("--ca-file", caFile);
    // A path is neither a flag nor standard input.
    const file = path.startsWith("-") ? `./${path}` : path;
    const argv = [...where, "submit", file, "-o", "name", "--request-id", options.requestId || crypto.randomUUID(), ...(options.held ? ["--hold"] : [])];
    const text = token();
    const env = text.startsWith(TOKEN_PREFIX) ? { ...process.env, MUSTER_TOKEN: text } : process.env;
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile("muster", argv, { env, timeout: JOB_FILE_TIMEOUT_MS }, (error, stdout, stderr) => {
        if (error?.code === "ENOENT") {
          reject(new JobFileError(`${path}: job files are read by the command muster, and it is not in PATH; install it, or describe the job by its fields`));
        } else if (error) {
          reject(new JobFileError(stderr.trim() || `muster submit ${path}: ${error.message}`));
        } else {
          resolve(stdout);
        }
      });
      child.stdin?.end();
    });
    return output.split(/\s+/).filter(Boolean).map((word) => this.job(Number(word)));
  }

  /** Copies a file or a directory of a run to this machine; see JobHandle.fetch. */
  async fetch(job: JobLike, path = "results", options: FetchOptions & { to?: string } = {}): Promise<FetchResult> {
    const writer = new TreeWriter(options.to ?? ".", path);
    try {
      for await (const piece of this.fetchPieces(job, path, options)) writer.take(piece);
      return writer.finish();
    } finally {
      writer.abandon();
    }
  }

  protected override async prepare(several: Job[]): Promise<Planned<LocalTree>[]> {
    const planned = several.map((job) => ({ spec: specOf(job), trees: [] as LocalTree[] }));
    const wanted = several.map((job) => uploadsOf(job).map(([path, place]): [string, string] => [path.replace(/^~(?=\/|$)/, homedir()), place]));
    if (wanted.every((one) => one.length === 0)) return planned;
    const { maxJobBytes } = await this.call(FilesService.method.findMissingFiles, {});
    const known = new Map<string, LocalTree>();
    for (const [at, job] of planned.entries()) {
      let left = maxJobBytes;
      for (const [path, place] of wanted[at] ?? []) {
        const [directory, name] = layout(path, place);
        const key = JSON.stringify([path, name, place !== ""]);
        const tree = known.get(key) ?? (await readAgain(() => readTree(path, left, place === "", name)));
        known.set(key, tree);
        if (tree.tree.totalBytes > left) {
          throw new BadRequest(`with ${path} the job brings along more than ${maxJobBytes} bytes of files; ${REMEDY}`, { code: "INVALID_ARGUMENT" });
        }
        left -= tree.tree.totalBytes;
        job.trees.push(tree);
        job.spec.uploads.push(create(UploadSchema, { treeSha256: tree.sha256, path: directory }));
      }
    }
    return planned;
  }

  protected override async sendTrees(planned: Planned[], listsAlone: boolean): Promise<void> {
    const parcels = new Map<string, Parcel>();
    for (const tree of (planned as Planned<LocalTree>[]).flatMap((job) => job.trees)) {
      parcels.set(tree.sha256, { size: tree.data.length, data: tree.data });
      if (listsAlone) continue;
      for (const entry of tree.tree.entries) {
        const path = tree.sources.get(entry.sha256);
        if (path) parcels.set(entry.sha256, { size: Number(entry.sizeBytes), path });
      }
    }
    let digests = [...parcels.keys()].sort();
    const missing = async (): Promise<number> => {
      const found: string[] = [];
      for (let at = 0; at < digests.length; at += MAX_DIGESTS_PER_REQUEST) {
        const sha256 = digests.slice(at, at + MAX_DIGESTS_PER_REQUEST);
        found.push(...(await this.call(FilesService.method.findMissingFiles, { sha256 })).missingSha256);
      }
      digests = found;
      return found.length;
    };
    await repeatUpload(this.session, missing, async () => {
      for (const batch of this.#batches(digests, parcels)) await this.#upload(batch, parcels);
    });
  }

  /** Splits an upload into the calls that it needs: several over the Connect protocol, otherwise one. */
  #batches(digests: string[], parcels: Map<string, Parcel>): string[][] {
    const { isConnect, text } = this.#config.address;
    if (!isConnect) return [digests];
    const made: string[][] = [];
    let left = 0;
    for (const sha256 of digests) {
      const parcel = parcels.get(sha256) as Parcel;
      const bytes = parcel.size + PARCEL_FRAMING_BYTES;
      if (bytes > MAX_WEB_UPLOAD_BYTES) {
        throw new ConfigurationError(
          `${"path" in parcel ? parcel.path.toString() : "the list of files"} has ${parcel.size} bytes, and a file that goes along through ` +
            `${text} has at most ${MAX_WEB_UPLOAD_BYTES - PARCEL_FRAMING_BYTES}: use unix:PATH, HOST:PORT or tls:HOST:PORT`,
        );
      }
      if (bytes > left) {
        made.push([]);
        left = MAX_WEB_UPLOAD_BYTES;
      }
      left -= bytes;
      made[made.length - 1]?.push(sha256);
    }
    return made;
  }

  /** Makes one attempt at an upload. */
  async #upload(digests: string[], parcels: Map<string, Parcel>): Promise<void> {
    // The library replaces an error of the requests by its own, so the original is kept here.
    let broken: unknown;
    async function* requests(): AsyncGenerator<UploadFilesRequest> {
      try {
        for (const sha256 of digests) yield* partsOf(sha256, parcels.get(sha256) as Parcel);
      } catch (error) {
        broken = error;
        throw error;
      }
    }
    try {
      // The one answer comes when all files are on disk.
      await open(this.session, FilesService.method.uploadFiles, requests()).next();
    } catch (error) {
      throw broken ?? error;
    }
  }
}

function sessionOf(config: Config, transport: Session["transport"], options: ClientOptions): Session {
  return {
    transport,
    authorization: () => {
      const token = config.token();
      if (token && !config.address.isTls && !config.address.staysHere) {
        throw new ConfigurationError(`the token would travel to ${config.address.text} in the clear; use tls:HOST:PORT or https://HOST:PORT`);
      }
      return token && `Bearer ${token}`;
    },
    address: `${config.address.text} (${config.origin})`,
    callMs: options.callTimeoutMs ?? 30_000,
    streamMs: options.streamPatienceMs ?? 600_000,
    onInterruption: options.onInterruption,
    wasAnswered: false,
  };
}

async function readAgain(read: () => Promise<LocalTree>): Promise<LocalTree> {
  for (let tried = 1; ; tried++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof Conflict) || tried === TRIES_OF_CHANGING_FILES) throw error;
    }
  }
}

/** Gives the messages of one file. A file that has changed ends them with a Conflict. */
async function* partsOf(sha256: string, parcel: Parcel): AsyncGenerator<UploadFilesRequest> {
  yield create(UploadFilesRequestSchema, { part: { case: "head", value: { sha256, sizeBytes: BigInt(parcel.size) } } });
  const chunk = (value: Uint8Array): UploadFilesRequest => create(UploadFilesRequestSchema, { part: { case: "chunk", value } });
  if ("data" in parcel) {
    for (let at = 0; at < parcel.size; at += CHUNK_BYTES) yield chunk(parcel.data.subarray(at, at + CHUNK_BYTES));
    return;
  }
  let left = parcel.size;
  for await (const piece of chunksOf(parcel.path)) {
    if (piece.length > left) break;
    left -= piece.length;
    if (piece.length > 0) yield chunk(piece);
  }
  if (left > 0) throw new Conflict(`${parcel.path.toString()} has changed while it was read`, { code: "ABORTED" });
}
