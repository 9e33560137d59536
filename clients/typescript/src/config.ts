// The broker, the token and the CA: from arguments, the environment, the user's contexts and configuration file. The order and the
// files are those of the command `muster`.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type Address, parseAddress } from "./address.js";
import { ConfigurationError } from "./errors.js";

// A larger file is neither a configuration, a token nor a certificate.
const MAX_FILE_BYTES = 1 << 20;
// A login's token is not used if less than this is left of its life.
const LOGIN_MARGIN_MS = 5000;
const TOKEN_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const TOKEN_PREFIX = "mst_";
const TOKEN_CHARACTERS = 40;
const TOKEN_SUM_CHARACTERS = 6;

/** The way to a broker, as its user chooses it. Without options the client finds the broker as the command `muster` does. */
export interface BrokerOptions {
  /** An address: unix:PATH, HOST:PORT, tls:HOST:PORT, http://HOST:PORT or https://HOST:PORT. */
  broker?: string;
  /** The name of a context of `muster context`. */
  context?: string;
  token?: string;
  tokenFile?: string;
  /** The CA by which the client knows the broker. */
  caFile?: string;
}

/** The end of the search. */
export interface Config {
  address: Address;
  /** "named by MUSTER_BROKER", for errors. */
  origin: string;
  /** The token for a call made now; empty: none. */
  token: () => string;
  context: string;
  /** PEM; empty: those that the system trusts. */
  ca: string;
  /** Where it is; empty: likewise. */
  caFile: string;
}

type Variables = Record<string, string | undefined>;
type Mapping = Record<string, unknown>;

/**
 * Finds the broker. The first that is given counts: the option `broker`, the option `context`, MUSTER_BROKER, MUSTER_CONTEXT, the user's
 * current context, `broker` of config.yaml, the socket of the user's own broker. Token: the options, MUSTER_TOKEN, MUSTER_TOKEN_FILE,
 * the context's token file, the context's login. Throws ConfigurationError.
 */
export function load(options: BrokerOptions, variables: Variables): Config {
  const directory = directoryOf(variables, "XDG_CONFIG_HOME", ".config");
  let [context, chosen]: [string, Mapping] = ["", {}];
  let [broker, origin] = [options.broker ?? "", "given as broker"];
  if (!broker) {
    if (options.context || !variables.MUSTER_BROKER) [context, chosen] = contextOf(directory, options.context || variables.MUSTER_CONTEXT || "");
    [broker, origin] = brokerOf(variables, directory, context, chosen);
  }
  const address = parseAddress(broker);
  const token = tokenOf(variables, directory, options, context, chosen, broker);
  const caFile = address.isTls ? options.caFile || variables.MUSTER_CA_FILE || textOf(chosen.ca_file) : "";
  const ca = address.isTls ? caOf(address, caFile) : "";
  return { address, origin, token, context, ca, caFile };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function directoryOf(variables: Variables, variable: string, inHome: string): string {
  const xdg = variables[variable] ?? "";
  if (xdg.startsWith("/")) return join(xdg, "muster");
  return variables.HOME ? join(variables.HOME, inHome, "muster") : "";
}

function read(path: string): string {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw new ConfigurationError(`${path} has more than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(path, "utf8");
  } catch (error) {
    throw error instanceof ConfigurationError ? error : new ConfigurationError(`cannot read ${path}: ${(error as Error).message}`);
  }
}

/** The mapping in a file, its scalars as texts; empty: there is no such file. */
function readYaml(path: string): Mapping {
  if (!path || !existsSync(path)) return {};
  let content: unknown;
  try {
    content = parse(read(path), { schema: "failsafe" });
  } catch (error) {
    throw error instanceof ConfigurationError ? error : new ConfigurationError(`${path}: ${(error as Error).message}`);
  }
  if (content === null || content === "") return {};
  if (typeof content !== "object" || Array.isArray(content)) throw new ConfigurationError(`${path}: it is no mapping`);
  return content as Mapping;
}

/** The context of that name, or the user's current one; an empty name: there is none. */
function contextOf(directory: string, wanted: string): [string, Mapping] {
  const content = readYaml(directory && join(directory, "contexts.yaml"));
  const contexts = (content.contexts ?? {}) as Record<string, Mapping>;
  const name = wanted || textOf(content.current);
  if (!name) return ["", {}];
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found && typeof found === "object") return [name, found];
  const known = Object.keys(contexts).sort().join(", ");
  throw new ConfigurationError(
    `there is no context "${name}"; ${known ? `there are: ${known}` : "muster context set NAME --broker ADDRESS makes one"}`,
  );
}

/** The address and who named it. */
function brokerOf(variables: Variables, directory: string, context: string, chosen: Mapping): [string, string] {
  if (context) {
    const broker = textOf(chosen.broker);
    if (!broker) throw new ConfigurationError(`the context "${context}" has no broker; muster context set ${context} --broker ADDRESS`);
    return [broker, `named by the context "${context}"`];
  }
  if (variables.MUSTER_BROKER) return [variables.MUSTER_BROKER, "named by MUSTER_BROKER"];
  const path = directory && join(directory, "config.yaml");
  const named = textOf(readYaml(path).broker);
  if (named) return [named, `named in ${path}`];
  const state = directoryOf(variables, "XDG_STATE_HOME", ".local/state");
  if (!state) throw new ConfigurationError("no broker is named: give new Client({ broker }) or set MUSTER_BROKER");
  return [`unix:${state}/broker.sock`, "tried because none is named by new Client({ broker }), by MUSTER_BROKER or by a context"];
}

/** Finds the token, and returns a function that gives it to each call. */
function tokenOf(variables: Variables, directory: string, options: BrokerOptions, context: string, chosen: Mapping, broker: string): () => string {
  let text = "";
  if (options.token) text = checkToken(options.token, "token");
  else if (options.tokenFile) text = readTokenFile(options.tokenFile);
  else if (variables.MUSTER_TOKEN) text = checkToken(variables.MUSTER_TOKEN, "MUSTER_TOKEN");
  else if (variables.MUSTER_TOKEN_FILE) text = readTokenFile(variables.MUSTER_TOKEN_FILE);
  else if (textOf(chosen.token_file)) text = readTokenFile(textOf(chosen.token_file));
  else if (context && directory) {
    const login = join(directory, "logins", `${createHash("sha256").update(context).digest("hex").slice(0, 32)}.json`);
    if (existsSync(login)) return () => loginToken(login, broker);
  }
  return () => text;
}

/** The CA by which the client knows the broker. A web address may do without: the system's CAs know it then. */
function caOf(address: Address, path: string): string {
  if (!path && address.isConnect) return "";
  if (!path) {
    throw new ConfigurationError(
      `broker address "${address.text}": it needs the CA by which you know the broker: caFile, MUSTER_CA_FILE or a context; muster token ` +
        "create --bundle on the broker's host makes all that muster context import takes",
    );
  }
  const ca = read(path);
  if (!ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ConfigurationError(`the CA's file ${path} has no certificate; it has -----BEGIN CERTIFICATE-----`);
  }
  return ca;
}

/** The token without blanks around it. The error names the source, and never the token. */
function checkToken(text: string, source: string): string {
  const token = text.trim();
  const body = token.slice(0, -TOKEN_SUM_CHARACTERS);
  let number = createHash("sha256").update(body).digest().readBigUInt64BE(0);
  let sum = "";
  for (let count = 0; count < TOKEN_SUM_CHARACTERS; count++) {
    sum += TOKEN_ALPHABET[Number(number % BigInt(TOKEN_ALPHABET.length))] ?? "";
    number /= BigInt(TOKEN_ALPHABET.length);
  }
  if (token.length !== TOKEN_CHARACTERS || !token.startsWith(TOKEN_PREFIX) || !token.endsWith(sum)) {
    throw new ConfigurationError(
      `${source} has no whole token: a token is "${TOKEN_PREFIX}" and ${TOKEN_CHARACTERS - TOKEN_PREFIX.length} letters and digits; copy it ` +
        "again, or make another one",
    );
  }
  return token;
}

/** A file that only its owner may read. */
function readPrivate(path: string, remedy: string): string {
  const data = read(path);
  const mode = statSync(path).mode & 0o777;
  if (mode & 0o077) {
    throw new ConfigurationError(`${path} has mode ${mode.toString(8).padStart(4, "0")}, so that others may read it; ${remedy}`);
  }
  return data;
}

function readTokenFile(path: string): string {
  return checkToken(readPrivate(path, `chmod 600 ${path}, and revoke the token if others could use it`), `the token file ${path}`);
}

/** The ID token of `muster login`, which `muster` renews: the file is read again for each call. */
function loginToken(path: string, broker: string): string {
  const data = readPrivate(path, "muster logout, then muster login");
  let [token, known, end] = ["", "", NaN];
  try {
    const kept = JSON.parse(data) as Mapping;
    [token, known] = [textOf(kept.id_token), textOf(kept.broker)];
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Mapping;
    end = Number(claims.exp);
  } catch {
    // A damaged file is told below.
  }
  if (!Number.isFinite(end)) throw new ConfigurationError(`the login ${path} is damaged; muster login makes another`);
  if (known !== broker) throw new ConfigurationError(`the login ${path} is for the broker ${known}; muster login makes one for ${broker}`);
  if (end * 1000 < Date.now() + LOGIN_MARGIN_MS) {
    throw new ConfigurationError("the login is over; muster whoami renews it, or muster login makes another");
  }
  return token;
}
