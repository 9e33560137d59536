import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { parseAddress } from "../src/address.js";
import { type BrokerOptions, type Config, load } from "../src/config.js";
import { BadRequest, ConfigurationError } from "../src/errors.js";
import { FileTreeSchema } from "../src/gen/muster/v1/file_tree_pb.js";
import { Client } from "../src/index.js";
import { faultOfPath, type LocalTree, nameOf, readTree } from "../src/tree.js";
import { directoryFor } from "./broken_broker.js";

const LARGE = 1n << 30n;

function fill(directory: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
}

function pathsIn(local: LocalTree): string[] {
  return local.tree.entries.map((entry) => nameOf(entry.path));
}

async function paths(directory: string, rulesAbove = false): Promise<string[]> {
  return pathsIn(await readTree(directory, LARGE, rulesAbove));
}

test("entries have what the files have", async (t) => {
  const directory = directoryFor(t);
  fill(directory, { a: "1", "b/run.sh": "22", key: "333" });
  chmodSync(join(directory, "b/run.sh"), 0o755);
  chmodSync(join(directory, "key"), 0o600);
  mkdirSync(join(directory, "empty"));
  symlinkSync("b/run.sh", join(directory, "link"));
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0x7a, 0xff])]), ""); // a name that is no UTF-8
  const local = await readTree(directory, LARGE, false);
  assert.deepEqual(pathsIn(local), ["a", "b/run.sh", "empty", "key", "link", "z\xff"]);
  const [a, run, , key, link] = local.tree.entries;
  assert.deepEqual([a?.executable, run?.executable, a?.ownerOnly, key?.ownerOnly], [false, true, false, true]);
  assert.equal(nameOf(link?.linkTarget ?? new Uint8Array()), "b/run.sh");
  assert.equal(local.tree.totalBytes, 6n);
  assert.deepEqual(pathsIn({ ...local, tree: fromBinary(FileTreeSchema, local.data) }), pathsIn(local));
});

test("rules leave files out", async (t) => {
  const directory = directoryFor(t);
  fill(directory, {
    ".git/config": "", ".gitignore": "*.log\n/build/\n!keep.log\n", ".musterignore": "secret\n", "a.log": "", "keep.log": "", "build/x": "",
    "sub/build/x": "", "sub/a.log": "", secret: "", "sub/.gitignore": "!a.log\n",
  });
  assert.deepEqual(await paths(directory), [".gitignore", ".musterignore", "keep.log", "sub/.gitignore", "sub/a.log", "sub/build/x"]);
});

test("rules above count for a working directory alone, and a skyignore in place of git's", async (t) => {
  const directory = directoryFor(t);
  fill(directory, { ".git/info/exclude": "x\n", ".gitignore": "*.log\n", "sub/a.log": "", "sub/x": "", "sub/y": "", "sky/.skyignore": "b\n", "sky/.gitignore": "a\n", "sky/a": "", "sky/b": "" });
  assert.deepEqual(await paths(join(directory, "sub"), true), ["y"]);
  assert.deepEqual(await paths(join(directory, "sub")), ["a.log", "x", "y"]);
  assert.deepEqual(await paths(join(directory, "sky")), [".gitignore", ".skyignore", "a"]);
});

/** A sequence that is the same in each run. */
function chanceFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

test("git leaves out the same files", async (t) => {
  const chance = chanceFrom(20);
  const pick = <T>(from: T[]): T => from[chance(from.length)] as T;
  const names = ["a", "b", "ab", "a.c", "x y", "[a]", "b-"];
  const patterns = ["a", "*.c", "/a", "a/", "!a", "**/b", "a/**", "a/**/b", "[ab]", "[!a]", "[^a]*", "[a-b]b", "a*b", "?", "\\[a\\]", "x\\ y", "# no", "b ",
    "!*.c", "[[:alpha:]]", "[]a]", "a[", "/*/b", "b/a/", "[b-]*"];
  for (let round = 0; round < 60; round++) {
    const directory = directoryFor(t);
    for (let file = 0; file < 12; file++) {
      const path = Array.from({ length: 1 + chance(3) }, () => pick(names)).join("/");
      try {
        fill(directory, { [path]: "x" });
      } catch {
        // A part of the path is a file already, or the path a directory: such a one is left out.
      }
    }
    const rules = `${Array.from({ length: 4 }, () => pick(patterns)).join("\n")}\n`;
    fill(directory, { ".gitignore": rules });
    execFileSync("git", ["init", "-q", directory]);
    const listed = execFileSync("git", ["-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"], { cwd: directory, encoding: "utf8" });
    const found = (await paths(directory)).filter((path) => statSync(join(directory, path)).isFile());
    assert.deepEqual(found.sort(), listed.split("\0").filter(Boolean).sort(), rules);
  }
});

test("what no job takes is refused", async (t) => {
  const directory = directoryFor(t);
  fill(directory, { large: "x".repeat(100), small: "x" });
  await assert.rejects(readTree(directory, 50n, false), (error) => error instanceof BadRequest && /101 bytes of files.*"large" \(100\).*musterignore/.test(error.message));
  execFileSync("mkfifo", [join(directory, "pipe")]);
  await assert.rejects(readTree(directory, LARGE, false), /"pipe" is no file/);
  for (const path of ["", "/a", "a/", "a//b", "a/../b", ".", "x".repeat(256), "a\0b"]) assert.ok(faultOfPath(path), path);
});

// ---- the broker and the token are found as the command muster finds them

function tokenOf(body: string): string {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let text = `mst_${body.repeat(30).slice(0, 30)}`;
  let number = createHash("sha256").update(text).digest().readBigUInt64BE(0);
  for (let count = 0; count < 6; count++, number /= 62n) text += alphabet[Number(number % 62n)] ?? "";
  return text;
}

const [TOKEN, OTHER] = [tokenOf("a"), tokenOf("b")];

function homeFor(t: TestContext): { home: string; write: (name: string, text: string, mode?: number) => string; find: (options?: BrokerOptions, variables?: Record<string, string>) => Config } {
  const home = directoryFor(t);
  const write = (name: string, text: string, mode = 0o600): string => {
    fill(join(home, ".config/muster"), { [name]: text });
    chmodSync(join(home, ".config/muster", name), mode);
    return join(home, ".config/muster", name);
  };
  return { home, write, find: (options = {}, variables = {}) => load(options, { HOME: home, ...variables }) };
}

const contexts = (token: string): string => `# Written by: muster context
current: "lab"
contexts:
  "lab":
    broker: "127.0.0.1:7070"
  "far":
    broker: "127.0.0.1:7071"
    token_file: "${token}"
`;

test("each source of the broker wins over the next", (t) => {
  const { home, write, find } = homeFor(t);
  const broker = (options?: BrokerOptions, variables?: Record<string, string>): string => find(options, variables).address.text;
  assert.equal(broker(), `unix:${home}/.local/state/muster/broker.sock`);
  assert.equal(broker({}, { XDG_STATE_HOME: "/run/s" }), "unix:/run/s/muster/broker.sock");
  write("config.yaml", "broker: 127.0.0.1:1\n");
  assert.equal(broker(), "127.0.0.1:1");
  write("contexts.yaml", contexts(""));
  assert.equal(broker(), "127.0.0.1:7070");
  assert.equal(broker({ token: TOKEN }, { MUSTER_CONTEXT: "far" }), "127.0.0.1:7071");
  assert.equal(broker({}, { MUSTER_CONTEXT: "far", MUSTER_BROKER: "127.0.0.1:2" }), "127.0.0.1:2");
  assert.equal(broker({ context: "lab" }, { MUSTER_BROKER: "127.0.0.1:2" }), "127.0.0.1:7070");
  assert.equal(broker({ broker: "127.0.0.1:3" }, { MUSTER_BROKER: "127.0.0.1:2" }), "127.0.0.1:3");
  assert.throws(() => find({ context: "near" }), /no context "near"; there are: far, lab/);
});

test("the token of a context goes to no other broker", (t) => {
  const { write, find } = homeFor(t);
  write("contexts.yaml", contexts(write("token", `${TOKEN}\n`)));
  assert.equal(find({ context: "far" }).token(), TOKEN);
  assert.equal(find({ context: "far", token: OTHER }).token(), OTHER);
  assert.equal(find({ context: "far" }, { MUSTER_TOKEN: OTHER }).token(), OTHER);
  assert.equal(find({ broker: "127.0.0.1:3" }).token(), "");
});

test("a bad token is refused and not shown", (t) => {
  const { write, find } = homeFor(t);
  assert.throws(() => find({ tokenFile: write("token", TOKEN, 0o644) }), /mode 0644/);
  const damaged = `${TOKEN.slice(0, -1)}!`;
  assert.throws(() => find({}, { MUSTER_TOKEN: damaged }), (error) =>
    error instanceof ConfigurationError && error.message.startsWith("MUSTER_TOKEN has no whole token") && !error.message.includes(damaged.slice(4, 20)));
  assert.throws(() => find({ broker: "tls:broker:7443" }), /needs the CA/);
  assert.equal(find({ broker: "https://broker:7443" }).ca, "");
});

test("addresses", () => {
  for (const [text, url, socket, isConnect, staysHere] of [
    ["unix:/run/b.sock", "http://localhost", "/run/b.sock", false, true], ["unix:///run/a b.sock", "http://localhost", "/run/a b.sock", false, true],
    ["127.0.0.1:7070", "http://127.0.0.1:7070", "", false, true], ["[::1]:7070", "http://[::1]:7070", "", false, true],
    ["broker.lab:7070", "http://broker.lab:7070", "", false, false], ["tls:broker.lab:7070", "https://broker.lab:7070", "", false, false],
    ["http://localhost:80", "http://localhost:80", "", true, true], ["https://lab/muster/", "https://lab/muster", "", true, false],
  ] as const) {
    const at = parseAddress(text);
    assert.deepEqual([at.url, at.socket, at.isConnect, at.staysHere], [url, socket, isConnect, staysHere], text);
  }
  for (const text of ["", "unix:", `unix:/${"x".repeat(107)}`, "host", ":1", "host:0", "host:65536", "::1:7070", "[::x]:1", "/run/b.sock", "ho st:1", "http://", "https://ada@lab"]) {
    assert.throws(() => parseAddress(text), /write unix:PATH, HOST:PORT/, text);
  }
});

test("the command that reads a job file gets the CA", async (t) => {
  const directory = directoryFor(t);
  fill(directory, { muster: `#!/bin/sh\nprintf '%s\\n' "$@" > "${directory}/said"\necho 7\n`, "ca.pem": "-----BEGIN CERTIFICATE-----\n" });
  chmodSync(join(directory, "muster"), 0o755);
  const before = process.env.PATH ?? "";
  process.env.PATH = `${directory}:${before}`;
  t.after(() => (process.env.PATH = before));
  const caFile = join(directory, "ca.pem");
  const client = new Client({ broker: "tls:127.0.0.1:7443", caFile });
  t.after(() => client.close());
  for (const [path, file] of [["-x.yaml", "./-x.yaml"], ["x.yaml", "x.yaml"], ["-", "./-"]] as const) {
    assert.deepEqual((await client.submitFile(path, { requestId: "mine", held: true })).map((job) => job.id), [7]);
    assert.deepEqual(readFileSync(join(directory, "said"), "utf8").trim().split("\n"), [
      "--broker", "tls:127.0.0.1:7443", "--ca-file", caFile, "submit", file, "-o", "name", "--request-id", "mine", "--hold",
    ]);
  }
});
