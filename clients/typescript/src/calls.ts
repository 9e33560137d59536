// The rules of repeats: those of the C++ library and of clients/python.

import { create, type DescMessage, type DescMethodStreaming, type DescMethodUnary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { BadRequest, BrokerUnavailable, CallTimeout, fromConnect, isTransport, mayPass, type MusterError, WaitTimeout } from "./errors.js";

/** The most bytes of one request: the default limit of a gRPC server, less some room for framing. */
export const MAX_REQUEST_BYTES = (4 << 20) - (64 << 10);
// A person waits for the answer of a call, but not for a stream.
const MAX_CALL_BACKOFF_MS = 1000;
const MAX_STREAM_BACKOFF_MS = 5000;
const FIRST_BACKOFF_MS = 100;
// A call that a cluster's agent answers may take longer.
export const QUESTION_TIMEOUT_MS = 120_000;
// Nobody listens on the socket, and no broker has answered this client yet.
const ABSENT_PATIENCE_MS = 2000;

/** Limits of one wait or stream. */
export interface Limits {
  /** WaitTimeout comes after this time. Default: never. */
  timeoutMs?: number;
  /** Ends it. */
  signal?: AbortSignal;
}

/** A broker as a client reaches it, and the time for which it tries. */
export interface Session {
  readonly transport: Transport;
  /** The value of the header of a call made now; empty: none. Throws ConfigurationError. */
  authorization(): string;
  /** The address for errors, with who named it. */
  readonly address: string;
  readonly callMs: number;
  readonly streamMs: number;
  readonly onInterruption: ((error: MusterError, patienceMs: number) => void) | undefined;
  wasAnswered: boolean;
}

function patienceOf(session: Session, error: MusterError, mostMs: number): number {
  return session.wasAnswered || !isTransport(error) ? mostMs : Math.min(mostMs, ABSENT_PATIENCE_MS);
}

/** Adds the address and the remedy to a failure of the transport; an answer of the broker stays as it is. */
function explain(session: Session, error: MusterError): MusterError {
  if (!isTransport(error)) return error;
  if (error.code === "DEADLINE_EXCEEDED") {
    return new CallTimeout(`the broker at ${session.address} did not answer in time`, { code: error.code });
  }
  return new BrokerUnavailable(
    `cannot reach the broker at ${session.address}: ${error.message}. Is it running there? Another one is named by ` +
      "new Client({ broker }) or MUSTER_BROKER",
    { code: error.code },
  );
}

/** Gives pauses that double, with jitter, so that many clients do not come back at the same time. */
class Backoff {
  #nextMs = FIRST_BACKOFF_MS;

  constructor(readonly mostMs: number) {}

  pauseMs(leastMs = 0): number {
    const pause = this.#nextMs * (0.5 + Math.random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, this.mostMs);
    return pause >= leastMs ? pause : leastMs * (1 + Math.random() / 2);
  }

  reset(): void {
    this.#nextMs = FIRST_BACKOFF_MS;
  }
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}

function headers(session: Session): Headers {
  const authorization = session.authorization();
  return new Headers(authorization ? { authorization } : undefined);
}

/** The size of a request. Throws BadRequest: a value does not fit into its field, so that no repeat can send it. */
function sizeOf<I extends DescMessage>(kind: I, request: MessageShape<I>): number {
  try {
    return toBinary(kind, request).length;
  } catch (error) {
    throw new BadRequest(`the request cannot be sent: ${(error as Error).message}`, { code: "INVALID_ARGUMENT" });
  }
}

/** Makes a call, and repeats it while that helps. No repeat does harm: those that submit have a request id. */
export async function call<I extends DescMessage, O extends DescMessage>(
  session: Session, method: DescMethodUnary<I, O>, init: MessageInitShape<I>, timeoutMs = session.callMs,
): Promise<MessageShape<O>> {
  const request = create(method.input, init);
  const size = sizeOf(method.input, request);
  if (size > MAX_REQUEST_BYTES) {
    throw new BadRequest(
      `the request has ${size} bytes and the broker takes ${MAX_REQUEST_BYTES}: keep large scripts and data in files, e.g. in workdir`,
      { code: "INVALID_ARGUMENT" },
    );
  }
  const start = performance.now();
  const backoff = new Backoff(MAX_CALL_BACKOFF_MS);
  for (let first = true; ; first = false) {
    const header = headers(session);
    let error: MusterError;
    try {
      const leftMs = Math.max(1, Math.ceil(start + timeoutMs - performance.now()));
      const answer = await session.transport.unary(method, undefined, leftMs, header, request);
      session.wasAnswered = true;
      return answer.message;
    } catch (thrown) {
      error = fromConnect(thrown);
    }
    session.wasAnswered ||= !isTransport(error);
    const patienceMs = patienceOf(session, error, timeoutMs);
    const pauseMs = backoff.pauseMs(error.retryAfterMs);
    if (!mayPass(error) || performance.now() + pauseMs >= start + patienceMs) throw explain(session, error);
    if (first) session.onInterruption?.(error, patienceMs);
    await sleep(pauseMs);
  }
}

/** Opens one stream of answers. Leaving it ends it. */
export async function* open<I extends DescMessage, O extends DescMessage>(
  session: Session, method: DescMethodStreaming<I, O>, requests: AsyncIterable<MessageInitShape<I>>, signal?: AbortSignal,
): AsyncGenerator<MessageShape<O>> {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
  try {
    const answer = await session.transport.stream(method, controller.signal, undefined, headers(session), requests);
    for await (const message of answer.message) yield message;
  } finally {
    signal?.removeEventListener("abort", stop);
    controller.abort();
  }
}

/** The one request of a stream. Throws BadRequest: see sizeOf. */
export function once<I extends DescMessage>(kind: I, init: MessageInitShape<I>): AsyncGenerator<MessageInitShape<I>> {
  const request = create(kind, init);
  sizeOf(kind, request);
  // eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous sequence of one
  return (async function* () {
    yield request;
  })();
}

/** The place at which a stream continues after its connection broke: the request for the rest. */
export interface Place<I extends DescMessage, O extends DescMessage, T> {
  readonly method: DescMethodStreaming<I, O>;
  readonly request: MessageInitShape<I>;
  /** Returns the new part of a message. */
  take(message: MessageShape<O>): Iterable<T>;
  isOver(): boolean;
}

/** Gives the messages of a stream, and opens it again where it broke off. */
export async function* follow<I extends DescMessage, O extends DescMessage, T>(
  session: Session, place: Place<I, O, T>, limits: Limits = {},
): AsyncGenerator<T> {
  const resume = new Resume(session, limits);
  try {
    while (!place.isOver()) {
      try {
        for await (const message of open(session, place.method, once(place.method.input, place.request), resume.signal)) {
          resume.gotMessage();
          for (const item of place.take(message)) yield item;
        }
        return;
      } catch (thrown) {
        await sleep(resume.pauseMs(thrown), resume.signal).catch((stopped: unknown) => {
          throw resume.isOver() ?? stopped;
        });
      }
    }
  } finally {
    resume.close();
  }
}

/** The rule by which a stream that broke off is opened again. */
class Resume {
  readonly #controller = new AbortController();
  readonly #backoff = new Backoff(MAX_STREAM_BACKOFF_MS);
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  #timeIsUp = false;
  #sinceMs: number | undefined;
  readonly #stop = (): void => this.#controller.abort(this.limits.signal?.reason);

  constructor(readonly session: Session, readonly limits: Limits) {
    if (limits.signal?.aborted) this.#stop();
    else limits.signal?.addEventListener("abort", this.#stop, { once: true });
    if (limits.timeoutMs !== undefined) {
      this.#timer = setTimeout(() => {
        this.#timeIsUp = true;
        this.#controller.abort();
      }, Math.max(0, limits.timeoutMs));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Returns the error of a wait whose time is over, else undefined. */
  isOver(): Error | undefined {
    if (this.#timeIsUp) return new WaitTimeout("the time for waiting is over; what was waited for goes on");
    return this.limits.signal?.aborted ? reasonOf(this.limits.signal) : undefined;
  }

  gotMessage(): void {
    this.session.wasAnswered = true;
    this.#sinceMs = undefined;
    this.#backoff.reset();
  }

  /** Returns the pause before the stream is opened again. Throws the error if opening it again does not help. */
  pauseMs(thrown: unknown): number {
    const over = this.isOver();
    if (over) throw over;
    const error = fromConnect(thrown);
    const interrupted = error.code === "UNAVAILABLE" || error.code === "ABORTED" ||
      (error.code === "RESOURCE_EXHAUSTED" && error.retryAfterMs !== undefined);
    if (!interrupted) throw error;
    this.session.wasAnswered ||= !isTransport(error);
    const patienceMs = patienceOf(this.session, error, this.session.streamMs);
    const now = performance.now();
    if (this.#sinceMs === undefined) {
      this.#sinceMs = now;
      this.session.onInterruption?.(error, patienceMs);
    }
    const pauseMs = this.#backoff.pauseMs(error.retryAfterMs);
    if (now + pauseMs >= this.#sinceMs + patienceMs) throw explain(this.session, error);
    return pauseMs;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.limits.signal?.removeEventListener("abort", this.#stop);
  }
}

/** Makes an upload, and repeats it while that helps; `missing` returns before each try the files that are left to send. */
export async function repeatUpload(session: Session, missing: () => Promise<number>, attempt: () => Promise<void>): Promise<void> {
  const backoff = new Backoff(MAX_STREAM_BACKOFF_MS);
  let since = performance.now();
  for (let before = Infinity; ; ) {
    const left = await missing();
    if (left === 0) return;
    if (left < before) since = performance.now();
    before = left;
    let error: MusterError;
    try {
      return await attempt();
    } catch (thrown) {
      error = fromConnect(thrown);
    }
    const pauseMs = backoff.pauseMs(error.retryAfterMs);
    if (!mayPass(error) || performance.now() + pauseMs >= since + patienceOf(session, error, session.streamMs)) {
      throw explain(session, error);
    }
    await sleep(pauseMs);
  }
}
