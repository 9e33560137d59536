// Writes the files of a run below a directory of this machine, whatever the cluster sends.
//
// As muster cp does: nothing is written outside of the target, links that are there are not followed, a file gets its name when it is
// whole, and links are made last. Names are byte strings here: each character is one byte.

import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, symlinkSync, writeSync } from "node:fs";
import { MusterError, TooMuch } from "./errors.js";
import { FileKind, type FileTreeEntry } from "./gen/muster/v1/file_tree_pb.js";
import { FileLeftOutCode, type FetchFilesResponse } from "./gen/muster/v1/files_service_pb.js";
import { bytesOf, faultOfLink, faultOfPath, nameOf, shown } from "./tree.js";

function isDirectory(path: string): boolean {
  return statSync(bytesOf(path), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isLink(path: string): boolean {
  return lstatSync(bytesOf(path), { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash) || "/";
}

// No program reads a longer list of left-out files, and a hostile cluster could fill the memory with one.
const MAX_LEFT_OUT = 10_000;

/** A file that exists but was not sent. */
export interface LeftOut {
  /** Relative to what was asked for; empty: that itself. */
  path: string;
  /** "is a socket". */
  why: string;
  /** "PATH_INVALID", "SPECIAL_FILE", "LINK_INVALID", "UNREADABLE"; "UNSPECIFIED": the agent is of an earlier release. */
  code: string;
}

/** What came. */
export interface FetchResult {
  /** The path of the copy; empty if everything was left out. */
  path: string;
  leftOut: LeftOut[];
}

/** One fetch. `name` is what was asked for: it becomes target/name if the target is a directory, else the target itself. */
export class TreeWriter {
  readonly #target: string;
  readonly #name: string;
  #root: string | undefined;
  #file: { handle: number; part: string; place: string; mode: number } | undefined;
  readonly #links: { place: string; path: string; target: string }[] = [];
  #isFile = false;
  readonly #leftOut: LeftOut[] = [];

  constructor(target: string, name: string) {
    this.#target = nameOf(Buffer.from(target));
    this.#name = nameOf(Buffer.from(name));
  }

  /** Throws MusterError if the broker sends an invalid tree. */
  take({ piece }: FetchFilesResponse): void {
    if (piece.case === "entry") {
      this.#endFile();
      this.#begin(piece.value);
    } else if (piece.case === "chunk") {
      if (!this.#file) throw new MusterError("the broker sent bytes of no file");
      for (let at = 0; at < piece.value.length; ) at += writeSync(this.#file.handle, piece.value, at);
    } else if (piece.case === "leftOut") {
      const { path, why, code } = piece.value;
      if (this.#leftOut.length === MAX_LEFT_OUT) throw new TooMuch(`more than ${MAX_LEFT_OUT} files are left out; fetch a part of it`);
      this.#leftOut.push({ path: Buffer.from(path).toString(), why, code: FileLeftOutCode[code] ?? String(code) });
    }
  }

  /** Ends the last file and makes the links. */
  finish(): FetchResult {
    this.#endFile();
    for (const { place, path, target } of this.#links) {
      // A link that was just made may be part of the path of the next one.
      this.#checkWay(path);
      rmSync(bytesOf(place), { force: true });
      symlinkSync(bytesOf(target), bytesOf(place));
    }
    return { path: bytesOf(this.#root ?? "").toString(), leftOut: this.#leftOut };
  }

  /** Removes an incomplete file. */
  abandon(): void {
    if (!this.#file) return;
    closeSync(this.#file.handle);
    rmSync(bytesOf(this.#file.part), { force: true });
    this.#file = undefined;
  }

  #begin(entry: FileTreeEntry): void {
    const path = nameOf(entry.path);
    if (this.#root === undefined) {
      this.#beginRoot(path, entry);
      return;
    }
    const fault = this.#isFile ? "comes after a file that was all that was asked for" : faultOfPath(path);
    if (fault) throw new MusterError(`the broker sent a file that is refused: ${shown(path)} ${fault}`);
    this.#checkWay(path);
    const place = `${this.#root}/${path}`;
    if (entry.kind === FileKind.DIRECTORY) {
      this.#makeDirectory(place);
    } else if (entry.kind === FileKind.SYMLINK) {
      const target = nameOf(entry.linkTarget);
      const fault = faultOfLink(path, target);
      if (fault) throw new MusterError(`the broker sent a link that is refused: ${shown(path)} ${fault}`);
      this.#links.push({ place, path, target });
    } else if (entry.kind === FileKind.FILE) {
      this.#open(place, entry);
    } else {
      throw new MusterError(`the broker sent a file that is refused: ${shown(path)} is neither a file nor a directory nor a link`);
    }
  }

  /** Takes the first entry, which is what was asked for: a directory or a file. */
  #beginRoot(path: string, entry: FileTreeEntry): void {
    if (path) throw new MusterError(`the broker sent a file that is refused: ${shown(path)} comes before what was asked for`);
    this.#isFile = entry.kind === FileKind.FILE;
    if (!this.#isFile && entry.kind !== FileKind.DIRECTORY) {
      throw new MusterError(`the broker sent a file that is refused: ${shown(this.#name)} is neither a file nor a directory`);
    }
    const root = this.#rootFor();
    this.#root = root;
    if (this.#isFile) this.#open(root, entry);
    else if (root === this.#target) mkdirSync(bytesOf(root), { recursive: true });
    else this.#makeDirectory(root);
  }

  #makeDirectory(place: string): void {
    if (isLink(place)) throw this.#isInTheWay(place);
    mkdirSync(bytesOf(place), { recursive: true });
  }

  #rootFor(): string {
    const isWhole = (this.#name === "" || this.#name === ".") && !this.#isFile;
    if (!isDirectory(this.#target) || isWhole) return this.#target;
    const base = this.#name.replace(/\/+$/, "").split("/").pop();
    return `${this.#target.replace(/\/+$/, "") || "/"}/${!base || base === "." ? "files" : base}`;
  }

  #open(place: string, entry: FileTreeEntry): void {
    mkdirSync(bytesOf(parentOf(place)), { recursive: true });
    const part = `${parentOf(place)}/.muster-${randomBytes(8).toString("hex")}`;
    const mode = entry.ownerOnly ? (entry.executable ? 0o700 : 0o600) : entry.executable ? 0o755 : 0o644;
    this.#file = { handle: openSync(bytesOf(part), "wx", 0o600), part, place, mode };
  }

  /** No directory on the way may be a link, which may lead anywhere. */
  #checkWay(path: string): void {
    let way = this.#root ?? "";
    for (const part of path.split("/").slice(0, -1)) {
      way += `/${part}`;
      if (isLink(way)) throw this.#isInTheWay(way);
    }
  }

  #isInTheWay(place: string): MusterError {
    return new MusterError(`${bytesOf(place).toString()} is a link, and a directory is to be there; remove it`);
  }

  #endFile(): void {
    if (!this.#file) return;
    const { handle, part, place, mode } = this.#file;
    this.#file = undefined;
    closeSync(handle);
    chmodSync(bytesOf(part), mode);
    renameSync(bytesOf(part), bytesOf(place));
  }
}
