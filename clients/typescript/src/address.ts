// The address of a broker, as people write it: unix:PATH, HOST:PORT, tls:HOST:PORT, http://HOST:PORT or https://HOST:PORT.

import { isIPv4, isIPv6 } from "node:net";
import { ConfigurationError } from "./errors.js";

// A socket's path in Linux, without its NUL.
const MAX_SOCKET_PATH_BYTES = 107;
const MAX_PORT = 65535;

export interface Address {
  /** As written. */
  text: string;
  /** The base of each call's URL. */
  url: string;
  /** The path of a socket; empty for a host. */
  socket: string;
  isTls: boolean;
  /** Uses the Connect protocol instead of gRPC. */
  isConnect: boolean;
  /** The broker is on this machine, so nothing leaves it. */
  staysHere: boolean;
}

/** Throws ConfigurationError, which quotes the text and shows the forms. */
export function parseAddress(text: string): Address {
  if (text.startsWith("unix:")) {
    const socket = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
    if (!socket) throw bad(text, "the path is empty");
    const size = Buffer.byteLength(socket);
    if (size > MAX_SOCKET_PATH_BYTES) throw bad(text, `the path has ${size} bytes and Linux allows ${MAX_SOCKET_PATH_BYTES} for a socket`);
    return { text, url: "http://localhost", socket, isTls: false, isConnect: false, staysHere: true };
  }
  if (/^https?:\/\//.test(text)) return parseUrl(text);
  const isTls = text.startsWith("tls:");
  const [host, port] = hostAndPort(text, isTls ? text.slice("tls:".length) : text);
  const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return { text, url: `${isTls ? "https" : "http"}://${target}`, socket: "", isTls, isConnect: false, staysHere: isLoopback(host) };
}

function parseUrl(text: string): Address {
  if (!URL.canParse(text)) throw bad(text, "it is no URL with a host");
  const url = new URL(text);
  if (url.username || url.password || url.search || url.hash) throw bad(text, "a URL has no user, no query and no fragment here");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { text, url: text.replace(/\/+$/, ""), socket: "", isTls: url.protocol === "https:", isConnect: true, staysHere: isLoopback(host) };
}

function hostAndPort(text: string, place: string): [string, number] {
  if (/^\.?\//.test(place)) throw bad(text, `there is no port; did you mean unix:${place}?`);
  const colon = place.lastIndexOf(":");
  if (colon < 0) throw bad(text, "there is no port");
  const port = place.slice(colon + 1);
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > MAX_PORT) throw bad(text, `"${port}" is not a port`);
  const host = place.slice(0, colon);
  if (!host) throw bad(text, "there is no host");
  const six = /^\[(.*)\]$/.exec(host)?.[1];
  if (six !== undefined) {
    if (!isIPv6(six)) throw bad(text, `"${six}" is not an IPv6 address`);
    return [six, Number(port)];
  }
  if (host.includes(":")) throw bad(text, "an IPv6 address goes in brackets, as in [::1]:7070");
  if (!/^[A-Za-z0-9._-]+$/.test(host)) throw bad(text, `"${host}" is not a host name`);
  return [host, Number(port)];
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

function bad(text: string, problem: string): ConfigurationError {
  return new ConfigurationError(
    `broker address "${text}": ${problem}; write unix:PATH, HOST:PORT, tls:HOST:PORT, http://HOST:PORT or https://HOST:PORT, ` +
      "e.g. unix:/var/lib/muster/broker.sock or 127.0.0.1:7070",
  );
}
