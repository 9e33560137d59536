// Quantities as people write them, by the rules of job files (docs/job-file.md). A bad one is a BadRequest with its forms.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { BadRequest } from "./errors.js";
import type { GpuRequestSchema } from "./gen/muster/v1/job_spec_pb.js";

const NANOS = 1_000_000_000n;
const MAX_SECONDS = 36500n * 86400n;
const MAX_BYTES = 1n << 50n;
const DECIMALS = 9;
const BYTE_UNITS: Record<string, bigint> = {
  "": 1n, K: 10n ** 3n, M: 10n ** 6n, G: 10n ** 9n, T: 10n ** 12n, Ki: 1n << 10n, Mi: 1n << 20n, Gi: 1n << 30n, Ti: 1n << 40n,
};
const TIME_UNITS: Record<string, bigint> = { d: 86400n, h: 3600n, m: 60n, s: 1n, "": 1n };

/** A decimal number times a whole one, rounded up. */
function times(decimal: string, factor: bigint): bigint {
  const [whole = "", fraction = ""] = decimal.split(".");
  const scale = 10n ** BigInt(fraction.length);
  return (BigInt(whole + fraction) * factor + scale - 1n) / scale;
}

/** Seconds, "90s", "1h30m", "1-12:00:00"; up to 36500 days. */
export function duration(value: number | string, field = "time"): Duration {
  const nanos = nanosOf(typeof value === "number" ? plain(value) : value);
  if (nanos === undefined) {
    throw new BadRequest(`${field} is "${value}"; write "90s", "15m", "1h30m", "2d", "HH:MM:SS" or "D-HH:MM:SS", or seconds`);
  }
  if (nanos > MAX_SECONDS * NANOS) throw new BadRequest(`${field} is ${value}; it is at most 36500 days, and not negative`);
  return create(DurationSchema, { seconds: nanos / NANOS, nanos: Number(nanos % NANOS) });
}

/** A number without an exponent. */
function plain(value: number): string {
  return Number.isInteger(value) ? String(BigInt(value)) : value.toFixed(DECIMALS);
}

function nanosOf(text: string): bigint | undefined {
  const slurm = /^(?:(\d{1,9})-(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?|(\d{1,9}):(\d{1,2})(?::(\d{1,2}))?)$/.exec(text);
  if (slurm) {
    const at = (group: number): bigint => BigInt(slurm[group] ?? 0);
    const days = slurm[1] !== undefined;
    if (at(4) > 59n || at(6) > 59n || at(7) > 59n || (days && (at(2) > 23n || at(3) > 59n))) return undefined;
    if (days) return (at(1) * 86400n + at(2) * 3600n + at(3) * 60n + at(4)) * NANOS;
    const minutesFirst = slurm[7] === undefined;
    return (minutesFirst ? at(5) * 60n + at(6) : at(5) * 3600n + at(6) * 60n + at(7)) * NANOS;
  }
  if (!text || !/^(?:(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?|\d+(\.\d+)?)$/.test(text)) return undefined;
  let sum = 0n;
  for (const [, number = "0", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)([dhms]?)/g)) sum += times(number, (TIME_UNITS[unit] ?? 1n) * NANOS);
  return sum;
}

/** Bytes, "512M", "1.5G" (powers of 1000), "16Gi" (powers of 1024), with or without a B; up to 2^50. */
export function size(value: number | string, field = "memory"): bigint {
  const match = /^(\d{1,18}(?:\.\d{1,9})?)(|[KMGT]i?)B?$/.exec(typeof value === "number" ? plain(value) : value);
  if (!match) throw new BadRequest(`${field} is "${value}"; write bytes, or "512M", "16Gi", "32GB"`);
  const bytes = times(match[1] ?? "", BYTE_UNITS[match[2] ?? ""] ?? 1n);
  if (bytes > MAX_BYTES) throw new BadRequest(`${field} is ${bytes} bytes; it is at most 2^50, and not negative`);
  return bytes;
}

/** A number with at most three decimals, 1 to `most` thousandths. */
export function millis(value: number | string, most: number, field: string): bigint {
  const text = String(value);
  const thousandths = /^\d{1,9}(\.\d{1,3})?$/.test(text) ? times(text, 1000n) : 0n;
  if (thousandths < 1n || thousandths > BigInt(most)) {
    throw new BadRequest(`${field} is ${value}; it is a number above 0 with at most three decimals, up to ${most / 1000}`);
  }
  return thousandths;
}

/** 8, "H100", "H100:8", "H100:0.5"; 0: none. */
export function gpus(value: number | string, field = "gpus"): MessageInitShape<typeof GpuRequestSchema> {
  const text = String(value);
  if (text === "0") return {};
  const colon = text.lastIndexOf(":");
  let type = colon < 0 ? "" : text.slice(0, colon);
  let count = text.slice(colon + 1);
  if (colon < 0 && !/^[\d.]+$/.test(text)) [type, count] = [text, "1"];
  if ((colon >= 0 || type || !text) && !/^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/.test(type)) {
    throw new BadRequest(`${field} is "${value}"; write a count, a type, or TYPE:COUNT, as in "H100:8"`);
  }
  return { type, countMillis: millis(count, 1_000_000, field) };
}
