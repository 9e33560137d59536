// The spec of a job as a command and as a program that submit the same job.

import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type JobSpec, JobSpecSchema } from "../client/gen/muster/v1/job_spec_pb.js";
import { toYaml } from "./yaml.js";

// A terminal takes these for its own, even where a text is pasted; escapes of JSON do not say them.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\u061c\ufeff]/;
const ALL_UNSAFE = new RegExp(UNSAFE, "g");
// Without "%", which names processes in fish.
const PLAIN = /^[A-Za-z0-9_@+:,./-][A-Za-z0-9_@+=:,./-]*$/;
const UNITS: [number, string][] = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"]];
const TIMES: [number, string][] = [[3600, "h"], [60, "m"], [1, "s"]];
const WIDTH = 100;

const isText = (value: JsonValue | undefined): value is string => typeof value === "string";

function json(value: JsonValue, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(ALL_UNSAFE, (one) => one === "\n" ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A word for sh, bash, zsh and fish, which takes backslashes between quotes for its own. */
const shell = (word: string): string => PLAIN.test(word) ? word : `'${word.replace(/['\\]/g, "'\\$&'")}'`;

/** "16Gi", or the bytes. */
function sizeOf(bytes: string): string {
  const [unit, letters] = UNITS.find(([size]) => Number(bytes) % size === 0) ?? [1, ""];
  return `${Number(bytes) / unit}${letters}`;
}

/** "1h30m" of "5400s"; undefined: it has parts of a second. */
function timeOf(text: string): string | undefined {
  let left = Number(text.slice(0, -1));
  if (!Number.isInteger(left) || left < 1) return undefined;
  return TIMES.map(([size, letter]) => {
    const part = Math.floor(left / size);
    left %= size;
    return part > 0 ? `${part}${letter}` : "";
  }).join("");
}

function gpusOf(value: JsonValue | undefined): string | undefined {
  if (!Array.isArray(value) || value.length !== 1) return undefined;
  const { type, countMillis } = value[0] as { type?: string; countMillis?: string };
  const number = String(Number(countMillis ?? 0) / 1000);
  return type ? `${type}:${number}` : number;
}

/** Takes parts of a spec away as they are written down; the rest needs another form. */
class Parts {
  readonly rest: JsonObject;

  constructor(spec: JobSpec) {
    this.rest = toJson(JobSpecSchema, spec) as JsonObject;
  }

  take(name: string): JsonValue | undefined {
    const value = this.rest[name];
    delete this.rest[name];
    return value;
  }

  text(name: string): string | undefined {
    const value = this.rest[name];
    if (value === undefined || value === null || typeof value === "object") return undefined;
    delete this.rest[name];
    return String(value);
  }

  /** Takes a part if `form` can write it. */
  as(name: string, form: (value: JsonValue) => string | undefined): string | undefined {
    const value = this.rest[name];
    const text = value === undefined ? undefined : form(value);
    if (text !== undefined) delete this.rest[name];
    return text;
  }

  /** The same of a part of a part. */
  within(name: string): Parts | undefined {
    const value = this.rest[name];
    if (value === undefined || value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
    const parts = Object.create(Parts.prototype, { rest: { value } }) as Parts;
    return parts;
  }

  /** Drops a part of which nothing is left. */
  close(name: string): void {
    const value = this.rest[name];
    if (value !== null && typeof value === "object" && Object.keys(value).length === 0) delete this.rest[name];
  }

  pairs(name: string): [string, string][] {
    return Object.entries((this.take(name) ?? {}) as Record<string, string>);
  }
}

/** The words of `muster run`; undefined: it has no flags for all of the spec, or a terminal would not keep its texts. */
function runWords(spec: JobSpec): string[] | undefined {
  const parts = new Parts(spec);
  const words: string[] = [];
  const add = (flag: string, value: string | undefined): void => {
    if (value !== undefined) words.push(`--${flag}=${value}`);
  };
  for (const name of ["name", "project", "nodes", "image", "priority"]) add(name, parts.text(name));
  add("workdir", parts.text("workingDirectory"));
  add("time", parts.as("timeLimit", (value) => isText(value) ? timeOf(value) : undefined));
  const resources = parts.within("resources");
  add("cpus", resources?.as("cpuMillis", (value) => isText(value) ? String(Number(value) / 1000) : undefined));
  add("memory", resources?.as("memoryBytes", (value) => isText(value) ? sizeOf(value) : undefined));
  add("gpus", resources?.as("gpus", gpusOf));
  const placement = parts.within("placement");
  for (const cluster of (placement?.take("clusters") ?? []) as string[]) add("cluster", cluster);
  add("pool", placement?.text("pool"));
  for (const [flag, name] of [["env", "env"], ["label", "labels"]] as const) {
    for (const [key, value] of parts.pairs(name)) add(flag, `${key}=${value}`);
  }
  if (parts.rest["preemptible"] === true && parts.take("preemptible")) words.push("--preemptible");
  parts.close("resources");
  parts.close("placement");
  const command = parts.take("command") as { argv?: { args?: string[] } } | undefined;
  const args = command?.argv?.args;
  if (!args || Object.keys(parts.rest).length > 0) return undefined;
  const all = [...words, "--", ...args];
  return all.some((word) => UNSAFE.test(word)) ? undefined : all;
}

/** A command line that submits the job once more: `muster run`, or `muster submit` with its job file. */
export function toCommand(spec: JobSpec): string {
  const words = runWords(spec);
  if (!words) return `muster submit --as muster - <<'EOF'\n${json(toJson(JobSpecSchema, spec), 2)}\nEOF\n`;
  const lines = ["muster run"];
  let isProgram = false;
  for (const word of words.map(shell)) {
    const line = `${lines.at(-1)} ${word}`;
    // The program stays together; it is what a reader looks for.
    if (line.length > WIDTH && (!isProgram || word === "--")) lines.push(`  ${word}`);
    else lines[lines.length - 1] = line;
    isProgram ||= word === "--";
  }
  return `${lines.join(" \\\n")}\n`;
}

/** A value of Python. */
function python(value: JsonValue, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return json(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const inner = `${indent}    `;
  const items = Array.isArray(value)
    ? value.map((one) => python(one, inner))
    : Object.entries(value).map(([key, one]) => `${json(key)}: ${python(one, inner)}`);
  const line = `${open}${items.join(", ")}${close}`;
  if (line.length + indent.length <= WIDTH && !line.includes("\n")) return line;
  return `${open}\n${items.map((one) => `${inner}${one},\n`).join("")}${indent}${close}`;
}

/** A program for docs/python.md's client. */
export function toPython(spec: JobSpec): string {
  const parts = new Parts(spec);
  const fields: [string, JsonValue | undefined][] = [];
  const add = (name: string, value: JsonValue | undefined): void => {
    if (value !== undefined) fields.push([name, value]);
  };
  const command = parts.rest["command"] as { argv?: { args?: string[] }; script?: string; scriptArguments?: string[] } | undefined;
  const isPlain = command && !command.scriptArguments && (command.argv?.args ?? command.script) !== undefined;
  if (isPlain) parts.take("command");
  add("name", parts.text("name"));
  add("project", parts.text("project"));
  const nodes = parts.text("nodes");
  add("nodes", nodes === undefined || nodes === "1" ? undefined : Number(nodes));
  const resources = parts.within("resources");
  const cpus = resources?.as("cpuMillis", (value) => isText(value) ? String(Number(value) / 1000) : undefined);
  add("cpus", cpus === undefined ? undefined : Number(cpus));
  add("memory", resources?.as("memoryBytes", (value) => isText(value) ? sizeOf(value) : undefined));
  add("gpus", resources?.as("gpus", gpusOf));
  add("time", parts.as("timeLimit", (value) => isText(value) ? timeOf(value) : undefined));
  add("image", parts.text("image"));
  add("env", parts.take("env"));
  add("labels", parts.take("labels"));
  const priority = parts.text("priority");
  add("priority", priority === undefined ? undefined : Number(priority));
  const placement = parts.within("placement");
  add("clusters", placement?.take("clusters"));
  add("pool", placement?.text("pool"));
  add("setup", parts.text("setup"));
  add("working_directory", parts.text("workingDirectory"));
  add("results_directory", parts.text("resultsDirectory"));
  parts.close("resources");
  parts.close("placement");
  if (Object.keys(parts.rest).length > 0) add("fields", parts.rest);
  const lines = fields.map(([name, value]) => `    ${name}=${python(value ?? null, "    ")},\n`);
  const first = isPlain ? [`    ${python(command.argv?.args ?? command.script ?? "", "    ")},\n`] : [];
  return `import muster\n\njob = muster.Client().submit(muster.Job(\n${[...first, ...lines].join("")}))\nprint(job.id)\n`;
}

/** The texts that the page of a job offers. */
export function formsOf(spec: JobSpec): { yaml: string; json: string; command: string; python: string } {
  const value = toJson(JobSpecSchema, spec);
  return { yaml: toYaml(value), json: JSON.stringify(value, null, 2), command: toCommand(spec), python: toPython(spec) };
}
