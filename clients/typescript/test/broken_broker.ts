// A broker that answers as a test tells it to: for what a real one seldom does.

import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { FilesService } from "../src/gen/muster/v1/files_service_pb.js";
import { JobsService } from "../src/gen/muster/v1/jobs_service_pb.js";
import { Client, type ClientOptions } from "../src/index.js";

type Answer = (request: unknown, signal: AbortSignal) => unknown;

/** The answers of each method, for one call after the other. */
export type Answers = Partial<Record<string, Answer[]>>;

export interface BrokenBroker {
  client: Client;
  address: string;
  requests: unknown[];
}

/** A directory that ends with the test. */
export function directoryFor(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), "muster-ts-test-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Starts one that speaks gRPC on a socket, or, with `web`, the Connect protocol on a port. */
export async function startBroker(t: TestContext, answers: Answers, options: ClientOptions & { web?: boolean } = {}): Promise<BrokenBroker> {
  const requests: unknown[] = [];
  const take = (name: string, request: unknown, signal: AbortSignal): unknown => {
    // A client may change its request for the next one.
    requests.push(structuredClone(request));
    const answer = answers[name]?.shift();
    if (!answer) throw new ConnectError(`${name} has no answer left`, Code.FailedPrecondition, undefined, [info("NO_ANSWER")]);
    return answer(request, signal);
  };
  const routes = (router: ConnectRouter): void => {
    for (const service of [JobsService, FilesService]) {
      const own = service.methods.map((method): [string, unknown] => {
        const name = method.localName;
        if (method.methodKind === "unary") return [name, (request: unknown, { signal }: { signal: AbortSignal }) => take(name, request, signal)];
        return [name, async function* (request: unknown, { signal }: { signal: AbortSignal }) {
          yield* take(name, request, signal) as AsyncIterable<unknown>;
        }];
      });
      router.service(service, Object.fromEntries(own));
    }
  };
  const handler = connectNodeAdapter({ routes });
  const web = options.web ?? false;
  const server = web ? createServer(handler) : createHttp2Server(handler);
  // A server alone waits for its connections to end, and a test that has ended waits for nobody.
  const connections = new Set<Socket>();
  server.on("connection", (connection: Socket) => {
    connections.add(connection);
    connection.on("close", () => connections.delete(connection));
  });
  const socket = join(directoryFor(t), "b.sock");
  await new Promise<void>((resolve) => (web ? server.listen(0, "127.0.0.1", resolve) : server.listen(socket, resolve)));
  const address = web ? `http://127.0.0.1:${(server.address() as AddressInfo).port}` : `unix:${socket}`;
  const client = new Client({ broker: address, ...options });
  t.after(() => {
    client.close();
    server.close();
    for (const connection of connections) connection.destroy();
  });
  return { client, address, requests };
}

export function info(reason: string, metadata: Record<string, string> = {}): { desc: DescMessage; value: MessageShape<DescMessage> } {
  return { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { domain: "muster", reason, metadata }) };
}

export function retryIn(ms: number): { desc: DescMessage; value: MessageShape<DescMessage> } {
  return { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: { seconds: 0n, nanos: ms * 1e6 } }) };
}

/** An answer that is an error. */
export function refuse(code: Code, message: string, ...details: { desc: DescMessage; value: MessageShape<DescMessage> }[]): Answer {
  return () => {
    throw new ConnectError(message, code, undefined, details);
  };
}

/** A stream of messages, which then ends or breaks. */
export function stream(messages: unknown[], breaks = false): Answer {
  return async function* () {
    yield* messages;
    // The messages are to arrive before the end.
    await new Promise((resolve) => setImmediate(resolve));
    if (breaks) throw new ConnectError("the connection broke", Code.Unavailable);
  };
}
