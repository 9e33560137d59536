// The entry for browsers: the Connect protocol, without configuration and without files of this machine.

import { createConnectTransport } from "@connectrpc/connect-web";
import type { Session } from "./calls.js";
import { BaseClient } from "./client.js";
import { ConfigurationError, type MusterError } from "./errors.js";
import type { Job } from "./gen/muster/v1/job_pb.js";
import { JobHandle } from "./handle.js";

export * from "./common.js";
export { JobHandle };

/** The broker, and the time for which it is tried. */
export interface ClientOptions {
  /**
   * The address of the broker's `http.tls_listen` or of a proxy in front of it: "https://HOST:PORT". A token goes to an http:// address only
   * if that is of this machine. Default: where the page came from.
   */
  broker?: string;
  /** A token, or a function that returns one for each call. */
  token?: string | (() => string);
  /** The time for one call, all its attempts together. Default: 30000. */
  callTimeoutMs?: number;
  /** The time for which a stream that broke off is resumed. Default: 600000. */
  streamPatienceMs?: number;
  /** Called at the first failure of a call that will be tried again. */
  onInterruption?: (error: MusterError, patienceMs: number) => void;
}

/** Returns whether nobody else can read what is sent there. */
function isPrivate(broker: string): boolean {
  const { protocol, hostname } = new URL(broker);
  return protocol === "https:" || hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** A broker, as its user sees it from a page. */
export class Client extends BaseClient<JobHandle> {
  constructor(options: ClientOptions = {}) {
    const broker = options.broker ?? globalThis.location?.origin;
    if (!broker || !/^https?:\/\//.test(broker) || !URL.canParse(broker)) {
      throw new ConfigurationError(`broker address "${broker ?? ""}": a browser needs https://HOST:PORT or http://HOST:PORT`);
    }
    const { token = "" } = options;
    const session: Session = {
      transport: createConnectTransport({
        baseUrl: broker,
        useBinaryFormat: true,
        // The answer then shows the redirection; otherwise it would look like a broken connection.
        fetch: (input, init) => globalThis.fetch(input, { ...init, redirect: "manual" }),
      }),
      authorization: () => {
        const text = typeof token === "string" ? token : token();
        if (text && !isPrivate(broker)) throw new ConfigurationError(`the token would travel to ${broker} in the clear; use https://HOST:PORT`);
        return text && `Bearer ${text}`;
      },
      address: broker,
      callMs: options.callTimeoutMs ?? 30_000,
      streamMs: options.streamPatienceMs ?? 600_000,
      onInterruption: options.onInterruption,
      wasAnswered: false,
    };
    super(session, broker);
  }

  override job(id: number, message?: Job): JobHandle {
    return new JobHandle(this, id, message);
  }
}
