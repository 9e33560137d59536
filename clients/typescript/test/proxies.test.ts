import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Client as BrowserClient } from "../src/browser.js";
import { fromConnect } from "../src/errors.js";
import * as muster from "../src/index.js";
import { startBroker } from "./broken_broker.js";

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What answers each request with that status, in HTML. `asked` counts them. */
async function startProxy(t: TestContext, status: number, headers: Record<string, string> = {}): Promise<{ broker: string; asked: () => number }> {
  let asked = 0;
  const broker = await serve(t, (request, answer) => {
    asked++;
    request.resume();
    answer.writeHead(status, { "content-type": "text/html", ...headers }).end(`<html>${status}</html>`);
  });
  return { broker, asked: () => asked };
}

const ENTRIES = [
  ["Node.js", (broker: string, callTimeoutMs: number) => new muster.Client({ broker, callTimeoutMs })],
  ["browsers", (broker: string, callTimeoutMs: number) => new BrowserClient({ broker, callTimeoutMs, token: "a token" })],
] as const;

for (const [entry, clientOf] of ENTRIES) {
  test(`no redirection is followed with the token, by the entry for ${entry}`, async (t) => {
    for (const status of [301, 302, 303, 307, 308]) {
      let heard = 0;
      const elsewhere = await serve(t, (_, answer) => {
        heard++;
        answer.end();
      });
      const { broker, asked } = await startProxy(t, status, { location: elsewhere });
      await assert.rejects(clientOf(broker, 60_000).submit("true"), (error) =>
        error instanceof muster.ConfigurationError && error.message.includes(elsewhere));
      assert.deepEqual([heard, asked()], [0, 1]);
    }
  });

  test(`what a proxy refuses is not repeated, by the entry for ${entry}`, async (t) => {
    for (const [status, kind] of [
      [400, muster.ConfigurationError], [411, muster.ConfigurationError], [413, muster.TooMuch], [414, muster.ConfigurationError],
      [401, muster.NotLoggedIn], [403, muster.NotAllowed], [404, muster.NotHonoured],
    ] as const) {
      const { broker, asked } = await startProxy(t, status);
      const client = clientOf(broker, 60_000);
      await assert.rejects(client.submit("true"), kind);
      await assert.rejects(client.job(7).wait(), kind);
      assert.equal(asked(), 2);
    }
  });

  test(`a proxy whose broker is away is asked again, by the entry for ${entry}`, async (t) => {
    const { broker, asked } = await startProxy(t, 503);
    await assert.rejects(clientOf(broker, 500).count(), muster.BrokerUnavailable);
    assert.ok(asked() > 1);
  });
}

test("a page sends its token to no other machine in the clear", async () => {
  for (const broker of ["http://broker.lab:8080", "http://127.0.0.1@broker.lab", "http://127.0.0.1.broker.lab:80", "http://[2001:db8::1]:80"]) {
    for (const token of ["a token", () => "a token"]) {
      await assert.rejects(new BrowserClient({ broker, token }).count(), (error) =>
        error instanceof muster.ConfigurationError && error.message.includes("in the clear"));
    }
  }
  for (const broker of ["https://127.0.0.1:1", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]) {
    await assert.rejects(new BrowserClient({ broker, token: "a token", callTimeoutMs: 1 }).count(), (error) => !(error instanceof muster.ConfigurationError));
  }
});

test("a mistake in a program is no connection that breaks", async (t) => {
  const it = await startBroker(t, {});
  assert.throws(() => fromConnect(new TypeError("mine")), TypeError);
  await assert.rejects(it.client.job(7).logs({ run: -1 }).next(), muster.BadRequest);
  await assert.rejects(it.client.job(7).read("x", { rank: -1 }), muster.BadRequest);
  await assert.rejects(it.client.watch({ jobs: 7, after: -1n }).next(), muster.BadRequest);
  assert.equal(it.requests.length, 0);
});
