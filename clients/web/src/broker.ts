// The calls of the page: the TypeScript client, with the token of this tab.

import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Client } from "../client/browser.js";
import { call, follow, type Limits, QUESTION_TIMEOUT_MS } from "../client/calls.js";
import { MusterError } from "../client/errors.js";
import type { JobChange, WatchJobsRequest } from "../client/gen/muster/v1/jobs_service_pb.js";
import { type LogPiece, LogPlace, WatchPlace } from "../client/streams.js";

const TOKEN_KEY = "muster.token";
// A page that stays open takes its streams up again until it is closed.
const STREAM_PATIENCE_MS = 7 * 24 * 3600 * 1000;
// A stream that lived longer was accepted, and its token ended since.
const ACCEPTED_MS = 2000;
// A stream that waits for another token tries again after this.
const AWAY_PAUSE_MS = 5000;
const AWAY = "the token of this login has ended, and the identity provider does not answer; the page keeps the login and tries again";

// The browser keeps it for this tab alone, and forgets it with the tab.
let token = sessionStorage.getItem(TOKEN_KEY) ?? "";

export const hasToken = (): boolean => token !== "";

export function setToken(text: string): void {
  token = text;
  if (text) sessionStorage.setItem(TOKEN_KEY, text);
  else sessionStorage.removeItem(TOKEN_KEY);
}

/** Forgets the token and all that belongs to it. */
export function forget(): void {
  token = "";
  for (const name of Object.keys(sessionStorage)) if (name.startsWith("muster.")) sessionStorage.removeItem(name);
}

/** There is another token; the login is over; the provider does not answer, and the login stays. */
export type Renewal = "renewed" | "over" | "away";

let renew: () => Promise<Renewal> = () => Promise.resolve("over");
/** Sets what is tried when the broker does not accept the token any more. */
export const onTokenEnd = (attempt: typeof renew): void => {
  renew = attempt;
};

/** Looks for another token than the one that the broker refused. */
function seekAnother(used: string): Renewal | Promise<Renewal> {
  if (!token) return "over";
  return token === used ? renew() : "renewed";
}

/** Makes a stream, and again with another token where its own has ended. */
async function* renewed<T>(stream: () => AsyncGenerator<T>): AsyncGenerator<T> {
  for (let hasRenewed = false; ; ) {
    const used = token;
    const openedMs = performance.now();
    try {
      yield* stream();
      return;
    } catch (thrown) {
      if (!isLoginError(asError(thrown))) throw thrown;
      if (performance.now() - openedMs > ACCEPTED_MS) hasRenewed = false;
      // A new token that is refused at once would be so again.
      const isLatest = token === used;
      if (hasRenewed && isLatest) throw thrown;
      const outcome = await seekAnother(used);
      if (outcome === "over") throw thrown;
      hasRenewed = isLatest && outcome === "renewed";
      if (outcome === "renewed") continue;
      listener?.(false);
      await new Promise((resolve) => setTimeout(resolve, AWAY_PAUSE_MS));
    }
  }
}

class Broker extends Client {
  /** Any call of the API. */
  ask<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, request: MessageInitShape<I>, timeoutMs?: number,
  ): Promise<MessageShape<O>> {
    return this.call(method, request, timeoutMs);
  }

  protected override async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, request: MessageInitShape<I>, timeoutMs?: number,
  ): Promise<MessageShape<O>> {
    const used = token;
    try {
      return await call(this.session, method, request, timeoutMs);
    } catch (thrown) {
      if (!isLoginError(asError(thrown))) throw thrown;
      const outcome = await seekAnother(used);
      if (outcome === "over") throw thrown;
      if (outcome === "away") throw new MusterError(AWAY, { code: "UNAVAILABLE" });
      return call(this.session, method, request, timeoutMs);
    }
  }

  /** A call that a cluster's agent answers. */
  question<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>): Promise<MessageShape<O>> {
    return this.ask(method, request, QUESTION_TIMEOUT_MS);
  }

  /** The changes, and undefined for each sign of life: the first says that no later change will be missed. */
  changes(request: WatchJobsRequest, limits: Limits): AsyncGenerator<JobChange | undefined> {
    const place = new WatchPlace(request);
    return renewed(() => follow(this.session, place, limits));
  }

  pieces(place: LogPlace, limits: Limits): AsyncGenerator<LogPiece> {
    return renewed(() => follow(this.session, place, limits));
  }
}

type Listener = (isConnected: boolean) => void;
let listener: Listener | undefined;
export const onConnection = (tell: Listener): void => {
  listener = tell;
};
/** Whoever has just had an answer calls this. */
export const isHeard = (): void => listener?.(true);

export const broker = new Broker({
  token: () => token,
  streamPatienceMs: STREAM_PATIENCE_MS,
  onInterruption: () => listener?.(false),
});

/** The error as the broker says it. */
export function asError(thrown: unknown): MusterError {
  return thrown instanceof MusterError ? thrown : new MusterError(thrown instanceof Error ? thrown.message : String(thrown));
}

export const isLoginError = (error: MusterError): boolean => error.code === "UNAUTHENTICATED";
