// A directory of this machine as a FileTree, by the rules of docs/files.md. As clients/cpp/uploads/local_tree.h has it.
//
// Names are byte strings here: each character is one byte.

import { create, toBinary } from "@bufbuild/protobuf";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { BadRequest, ConfigurationError, Conflict } from "./errors.js";
import { FileKind, type FileTree, type FileTreeEntry, FileTreeEntrySchema, FileTreeSchema } from "./gen/muster/v1/file_tree_pb.js";
import { Rules } from "./ignore.js";

const MAX_ENTRIES = 50_000;
const MAX_PATH_BYTES = 1024;
const MAX_NAME_BYTES = 255;
const MAX_TREE_BYTES = 16 << 20;
// People write such files, or take one of some kB from a collection.
const MAX_IGNORE_FILE_BYTES = 1 << 20;
export const CHUNK_BYTES = 262_144;
// The files that an error about too many bytes names.
const MAX_NAMED = 3;
const LEAVE_OUT = "leave it out by a .musterignore file (in the form of .gitignore)";
export const REMEDY = "leave what the job does not need out by a .musterignore file (in the form of .gitignore), or keep data on the " +
  "cluster's storage and name its path there";
const OWNER_EXECUTES = 0o100;
const OTHERS = 0o077;

/** One that can be uploaded. */
export interface LocalTree {
  tree: FileTree;
  /** The tree's own bytes, a file like the others. */
  data: Uint8Array;
  sha256: string;
  /** The path of each file by digest. */
  sources: Map<string, Buffer>;
}

/** A byte string as file names are given to the system, and back. */
export function bytesOf(name: string): Buffer {
  return Buffer.from(name, "latin1");
}

export function nameOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

export function shown(name: string): string {
  return JSON.stringify(bytesOf(name).toString("utf8"));
}

function refused(root: string, why: string): BadRequest {
  return new BadRequest(`${root}: ${why}`, { code: "INVALID_ARGUMENT" });
}

/** The fault of a path of a tree; empty: none. */
export function faultOfPath(path: string): string {
  if (!path || path.startsWith("/") || path.endsWith("/") || path.includes("\0")) return "is no relative path of a file";
  if (path.length > MAX_PATH_BYTES) return `has more than ${MAX_PATH_BYTES} bytes`;
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return 'has an empty part, or "." or ".."';
  return parts.some((part) => part.length > MAX_NAME_BYTES) ? `has a part of more than ${MAX_NAME_BYTES} bytes` : "";
}

/** The fault of a link by the place where it leads, whatever else is there; empty: none. */
export function faultOfLink(path: string, target: string): string {
  if (!target || target.length > MAX_PATH_BYTES || target.includes("\0")) return "is a link that leads nowhere";
  if (target.startsWith("/")) return `is a link with an absolute target; use a relative one, or ${LEAVE_OUT}`;
  let depth = path.split("/").length - 1;
  for (const part of target.split("/")) {
    if (part === "..") depth--;
    else if (part && part !== ".") depth++;
    if (depth < 0) return `is a link that leads out of the tree; ${LEAVE_OUT}`;
  }
  return "";
}

function isThere(path: string, check: (info: Stats) => boolean, look = statSync): boolean {
  try {
    return check(look(bytesOf(path)));
  } catch {
    return false;
  }
}

class Walk {
  readonly #rules = new Rules();
  /** In front of paths in rules: from the root of the repository to ours. */
  #prefix = "";
  #ignore = ".gitignore";
  readonly entries: FileTreeEntry[] = [];

  constructor(readonly name: string, readonly root: string, rulesAbove: boolean) {
    if (isThere(`${root}/.skyignore`, (info) => info.isFile())) this.#ignore = ".skyignore";
    else this.#rulesOfRepository(rulesAbove);
    this.#enter("");
  }

  #addRules(path: string, base: string): void {
    if (!isThere(path, (info) => info.isFile())) return;
    const text = readFileSync(bytesOf(path), "latin1");
    if (text.length > MAX_IGNORE_FILE_BYTES) throw refused(bytesOf(path).toString(), "has more than 1 MiB, which is no list of patterns");
    this.#rules.add(text, base);
  }

  #rulesOfRepository(rulesAbove: boolean): void {
    const absolute = nameOf(realpathSync(bytesOf(this.root), { encoding: "buffer" }));
    let repository = absolute === "/" ? "" : absolute;
    while (!isThere(`${repository}/.git`, () => true, lstatSync)) {
      if (!rulesAbove || repository === "") return;
      repository = repository.slice(0, repository.lastIndexOf("/"));
    }
    this.#addRules(`${repository}/.git/info/exclude`, "");
    let above = repository;
    for (const part of absolute.slice(repository.length).split("/").filter(Boolean)) {
      this.#addRules(`${above}/.gitignore`, this.#prefix);
      above += `/${part}`;
      this.#prefix += `${part}/`;
    }
  }

  /** Takes what is in a directory; its path is empty or ends with '/'. */
  #enter(path: string): void {
    const [rules, entries] = [this.#rules.count, this.entries.length];
    for (const name of [this.#ignore, ".musterignore"]) this.#addRules(`${this.root}/${path}${name}`, this.#prefix + path);
    const names = readdirSync(bytesOf(`${this.root}/${path}`), { encoding: "buffer" }).map(nameOf).sort(compare);
    for (const name of names) this.#take(path + name, name);
    this.#rules.shrink(rules);
    // An empty directory is only known by an entry of its own.
    if (path && this.entries.length === entries) this.#add(path.slice(0, -1), FileKind.DIRECTORY);
  }

  #add(path: string, kind: FileKind): FileTreeEntry {
    if (this.entries.length === MAX_ENTRIES) {
      throw refused(this.name, `has more than ${MAX_ENTRIES} files, the most that a job may bring along from one directory; ${REMEDY}`);
    }
    const entry = create(FileTreeEntrySchema, { path: bytesOf(path), kind });
    this.entries.push(entry);
    return entry;
  }

  #take(path: string, name: string): void {
    if (name === ".git") return;
    const source = bytesOf(`${this.root}/${path}`);
    const info = lstatSync(source);
    if (this.#rules.leaveOut(this.#prefix + path, info.isDirectory())) return;
    const fault = faultOfPath(path);
    if (fault) throw refused(this.name, `${shown(path)} ${fault}; ${REMEDY}`);
    if (info.isDirectory()) {
      this.#enter(`${path}/`);
    } else if (info.isSymbolicLink()) {
      const target = readlinkSync(source, { encoding: "buffer" });
      const wrong = faultOfLink(path, nameOf(target));
      if (wrong) throw refused(this.name, `${shown(path)} ${wrong}`);
      this.#add(path, FileKind.SYMLINK).linkTarget = target;
    } else if (info.isFile()) {
      setMode(this.#add(path, FileKind.FILE), info);
    } else {
      throw refused(
        this.name,
        `${shown(path)} is no file, directory or link, but a device, a pipe or a socket; remove it, or name it in a .musterignore file`,
      );
    }
  }
}

/** Orders byte strings byte by byte. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function setMode(entry: FileTreeEntry, info: Stats): void {
  entry.executable = (info.mode & OWNER_EXECUTES) !== 0;
  entry.ownerOnly = (info.mode & OTHERS) === 0;
  entry.sizeBytes = BigInt(info.size);
}

/** The pieces of a file. */
export async function* chunksOf(path: Buffer): AsyncGenerator<Buffer> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    throw new ConfigurationError(`cannot read ${path.toString()}: ${(error as Error).message}`);
  }
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Size and digest are those of the bytes read, which may be fewer than before, and never more. */
async function digest(path: Buffer, entry: FileTreeEntry): Promise<void> {
  const hash = createHash("sha256");
  let size = 0n;
  for await (const chunk of chunksOf(path)) {
    hash.update(chunk);
    size += BigInt(chunk.length);
    if (size > entry.sizeBytes) {
      throw new Conflict(`${path.toString()} has changed: it had ${entry.sizeBytes} bytes a moment ago and has more now`, { code: "ABORTED" });
    }
  }
  [entry.sizeBytes, entry.sha256] = [size, hash.digest("hex")];
}

/** Reads a directory, or a file, which becomes a tree of one under `name`. Throws BadRequest, or Conflict: it changes. */
export async function readTree(path: string, maxBytes: bigint, rulesAbove: boolean, name = ""): Promise<LocalTree> {
  const root = nameOf(Buffer.from(path));
  let info: Stats;
  try {
    info = statSync(path);
  } catch (error) {
    throw new ConfigurationError(`cannot read ${path}: ${(error as Error).message}`);
  }
  let entries: FileTreeEntry[];
  if (info.isDirectory()) {
    entries = new Walk(path, root, rulesAbove).entries;
  } else if (info.isFile()) {
    const entry = create(FileTreeEntrySchema, { path: Buffer.from(name || path.slice(path.lastIndexOf("/") + 1)), kind: FileKind.FILE });
    setMode(entry, info);
    entries = [entry];
  } else {
    throw refused(path, "is neither a file nor a directory");
  }
  checkBytes(path, entries, maxBytes);
  const sources = new Map<string, Buffer>();
  for (const entry of entries) {
    if (entry.kind !== FileKind.FILE) continue;
    const source = info.isDirectory() ? bytesOf(`${root}/${nameOf(entry.path)}`) : bytesOf(root);
    await digest(source, entry);
    sources.set(entry.sha256, source);
  }
  return finish(path, entries, sources);
}

function totalOf(entries: FileTreeEntry[]): bigint {
  return entries.reduce((sum, entry) => sum + entry.sizeBytes, 0n);
}

function checkBytes(path: string, entries: FileTreeEntry[], maxBytes: bigint): void {
  const total = totalOf(entries);
  if (total <= maxBytes) return;
  const largest = [...entries].sort((one, other) => Number(other.sizeBytes - one.sizeBytes)).slice(0, MAX_NAMED);
  const named = largest.map((entry) => `${shown(nameOf(entry.path))} (${entry.sizeBytes})`).join(", ");
  throw refused(path, `has ${total} bytes of files, and ${maxBytes} are the most that a job may bring along; the largest are ${named}; ${REMEDY}`);
}

function finish(path: string, entries: FileTreeEntry[], sources: Map<string, Buffer>): LocalTree {
  entries.sort((one, other) => Buffer.compare(one.path, other.path));
  const tree = create(FileTreeSchema, { entries, totalBytes: totalOf(entries) });
  const data = toBinary(FileTreeSchema, tree);
  if (data.length > MAX_TREE_BYTES) throw refused(path, `the list of files has ${data.length} bytes, and ${MAX_TREE_BYTES} are the most; ${REMEDY}`);
  return { tree, data, sha256: createHash("sha256").update(data).digest("hex"), sources };
}

/** The directory of an upload and the name of a lone file there. Throws BadRequest: the place is the cluster's. */
export function layout(path: string, place: string): [string, string] {
  if (/^[/~]/.test(place)) {
    throw new BadRequest(
      `files: "${place}" is a place of the cluster, which all its jobs share; write a relative path, which is one of the run's own directory`,
    );
  }
  let clean = place.replace(/^(\.\/)+/, "").replace(/\/+$/, "");
  if (clean === ".") clean = "";
  if (isThere(nameOf(Buffer.from(path)), (info) => info.isDirectory())) return [clean, ""];
  if (!clean) throw new BadRequest(`workdir: ${path} is no directory of this machine; files go under files`);
  const slash = clean.lastIndexOf("/");
  return [clean.slice(0, Math.max(slash, 0)), clean.slice(slash + 1)];
}
