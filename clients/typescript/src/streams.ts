// The places at which streams continue after their connections broke, so that nothing is lost or comes twice.

import { create, type MessageShape } from "@bufbuild/protobuf";
import type { Place } from "./calls.js";
import { BadRequest } from "./errors.js";
import {
  type JobChange, JobsService, LogEnd, LogPositionSchema, LogStream, type ReadLogRequest, ReadLogRequestSchema, type ReadLogResponse,
  type ReadLogResponseSchema, type WatchJobsRequest, type WatchJobsRequestSchema, type WatchJobsResponseSchema,
} from "./gen/muster/v1/jobs_service_pb.js";

const MAX_TAIL_LINES = 100_000;

/** The place of a watch. It gives undefined for a heartbeat. */
export class WatchPlace implements Place<typeof WatchJobsRequestSchema, typeof WatchJobsResponseSchema, JobChange | undefined> {
  readonly method = JobsService.method.watchJobs;

  constructor(readonly request: WatchJobsRequest) {}

  *take(message: MessageShape<typeof WatchJobsResponseSchema>): Iterable<JobChange | undefined> {
    if (message.heartbeat) {
      if (message.heartbeat.sequence > this.#after()) this.#goOnAfter(message.heartbeat.sequence);
      yield undefined;
    }
    for (const change of message.changes) {
      if (this.request.start.case === "after" && change.sequence <= this.request.start.value) continue;
      // This is set before the change is given away, because the reader may never ask for the next one.
      this.#goOnAfter(change.sequence);
      yield change;
    }
  }

  isOver(): boolean {
    return false;
  }

  #after(): bigint {
    return this.request.start.case === "after" ? this.request.start.value : -1n;
  }

  #goOnAfter(sequence: bigint): void {
    this.request.start = { case: "after", value: sequence };
  }
}

/** Bytes of one output of a rank. */
export interface LogPiece {
  stream: "stdout" | "stderr";
  /** The place of the first byte in that output. */
  offset: number;
  data: Uint8Array;
  /** The end of the output after the piece, e.g. "COMPLETE" or "TRUNCATED"; empty if the output goes on. */
  end: string;
}

/** The part of a log that is read. */
export interface LogOptions {
  /** Goes on until the log is complete. */
  follow?: boolean;
  /** Begins with the last so many lines, 1 to 100000. Default: the whole log. */
  tail?: number;
  /** Default: both. */
  stream?: "both" | "stdout" | "stderr";
  rank?: number;
  /** Default: the latest. */
  run?: number;
}

const STREAMS = { both: LogStream.UNSPECIFIED, stdout: LogStream.STDOUT, stderr: LogStream.STDERR };

/** The place of a log: the request for the rest. */
export class LogPlace implements Place<typeof ReadLogRequestSchema, typeof ReadLogResponseSchema, LogPiece> {
  readonly method = JobsService.method.readLog;
  readonly request: ReadLogRequest;
  readonly #tailBegins = new Map<LogStream, bigint>();
  readonly #goingOn: Set<LogStream>;

  constructor(jobId: number, options: LogOptions) {
    const stream = STREAMS[options.stream ?? "both"] as LogStream | undefined;
    if (stream === undefined) throw new BadRequest(`stream is "${options.stream}"; it is "both", "stdout" or "stderr"`);
    const tail = options.tail;
    if (tail !== undefined && !(Number.isInteger(tail) && tail >= 1 && tail <= MAX_TAIL_LINES)) {
      throw new BadRequest(`tail is ${tail}; it is 1 to ${MAX_TAIL_LINES} lines, or left out for the whole log`);
    }
    this.request = create(ReadLogRequestSchema, {
      jobId: BigInt(jobId), run: options.run ?? 0, rank: options.rank ?? 0, stream, follow: options.follow ?? false, tailLines: tail ?? 0,
    });
    this.#goingOn = new Set(stream === LogStream.UNSPECIFIED ? [LogStream.STDOUT, LogStream.STDERR] : [stream]);
  }

  *take(piece: ReadLogResponse): Iterable<LogPiece> {
    if (!this.#goingOn.has(piece.stream) || this.#notesTail(piece)) return;
    const position = this.#position(piece.stream);
    let { data, offset } = piece;
    // A piece may begin before what was asked for, if the archive's own pieces do.
    if (offset < position.offset) {
      data = data.subarray(Number(position.offset - offset));
      offset = position.offset;
    }
    position.offset = offset + BigInt(data.length);
    let end = "";
    if (piece.end !== LogEnd.UNSPECIFIED) {
      this.#goingOn.delete(piece.stream);
      end = LogEnd[piece.end] ?? String(piece.end);
    }
    if (data.length > 0 || end) {
      yield { stream: piece.stream === LogStream.STDERR ? "stderr" : "stdout", offset: Number(offset), data, end };
    }
  }

  isOver(): boolean {
    return this.#goingOn.size === 0;
  }

  #position(stream: LogStream): { offset: bigint } {
    let found = this.request.positions.find((one) => one.stream === stream);
    if (!found) this.request.positions.push((found = create(LogPositionSchema, { stream })));
    return found;
  }

  /** Notes where the last lines begin. Until each output's first message has said so, a new stream asks for them again. */
  #notesTail(piece: ReadLogResponse): boolean {
    if (this.request.tailLines === 0 || piece.end !== LogEnd.UNSPECIFIED) return false;
    this.#tailBegins.set(piece.stream, piece.offset);
    if (this.#tailBegins.size < this.#goingOn.size) return true;
    this.request.tailLines = 0;
    for (const [stream, offset] of this.#tailBegins) this.#position(stream).offset = offset;
    return true;
  }
}

/** Pieces as lines of text: each output's own, without their ends, undecodable bytes replaced. */
export class Lines {
  readonly #decoders = new Map<string, TextDecoder>();
  readonly #rests = new Map<string, string>();

  *take(piece: LogPiece): Iterable<string> {
    let decoder = this.#decoders.get(piece.stream);
    // A byte order mark is part of the text, as it is for every other client.
    if (!decoder) this.#decoders.set(piece.stream, (decoder = new TextDecoder("utf-8", { ignoreBOM: true })));
    const text = (this.#rests.get(piece.stream) ?? "") + decoder.decode(piece.data, { stream: !piece.end });
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    this.#rests.set(piece.stream, piece.end ? "" : rest);
    yield* lines;
    if (piece.end && rest) yield rest;
  }

  *rest(): Iterable<string> {
    for (const rest of this.#rests.values()) if (rest) yield rest;
  }
}
