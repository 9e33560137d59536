// The transports of Node.js: gRPC over HTTP/2, and the Connect protocol over HTTP/1.1 for web addresses.

import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { connect } from "node:net";
import type { Config } from "./config.js";

// Pings notice a peer that vanished silently; the broker accepts one every 15 s at most.
const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;

/** A transport, which connects at the first call, and a function that ends its connections. */
export function openTransport(config: Config): { transport: Transport; close: () => void } {
  const { address, ca } = config;
  if (address.isConnect) {
    const agent = address.isTls ? new HttpsAgent({ keepAlive: true, ...(ca && { ca }) }) : new HttpAgent({ keepAlive: true });
    const transport = createConnectTransport({ baseUrl: address.url, httpVersion: "1.1", nodeOptions: { agent } });
    return { transport, close: () => agent.destroy() };
  }
  const sessionManager = new Http2SessionManager(
    address.url,
    { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS },
    address.socket ? { createConnection: () => connect(address.socket) } : ca ? { ca } : {},
  );
  return { transport: createGrpcTransport({ baseUrl: address.url, sessionManager }), close: () => sessionManager.abort() };
}
