// Numbers, times and names for people.

import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

const NUMBER = new Intl.NumberFormat("en-GB");
const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

export const count = (value: number | bigint): string => NUMBER.format(value);

export function plural(value: number | bigint, noun: string): string {
  return `${count(value)} ${noun}${Number(value) === 1 ? "" : "s"}`;
}

export function toMs(time: Timestamp | undefined): number | undefined {
  return time && Number(time.seconds) * 1000 + time.nanos / 1e6;
}

const two = (value: number): string => String(value).padStart(2, "0");

function dayOf(date: Date): string {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function clock(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** "14:02:07" of today, else "2026-03-01 14:02". */
export function time(timestamp: Timestamp | undefined): string {
  const ms = toMs(timestamp);
  if (ms === undefined) return "";
  const date = new Date(ms);
  if (dayOf(date) === dayOf(new Date())) return clock(date);
  return `${dayOf(date)} ${clock(date).slice(0, 5)}`;
}

/** The whole time, for titles. */
export function fullTime(timestamp: Timestamp | undefined): string {
  const ms = toMs(timestamp);
  return ms === undefined ? "" : new Date(ms).toISOString();
}

/** "1d 2h", "3m 05s", "0.4s". */
export function span(seconds: number): string {
  if (seconds < 0) return "0s";
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE_S) return `${whole}s`;
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)}m ${two(whole % MINUTE_S)}s`;
  if (whole < DAY_S) return `${Math.floor(whole / HOUR_S)}h ${two(Math.floor((whole % HOUR_S) / MINUTE_S))}m`;
  return `${Math.floor(whole / DAY_S)}d ${two(Math.floor((whole % DAY_S) / HOUR_S))}h`;
}

export const seconds = (duration: Duration | undefined): number => duration ? Number(duration.seconds) + duration.nanos / 1e9 : 0;

export function between(from: Timestamp | undefined, to: Timestamp | undefined): string {
  const begin = toMs(from);
  if (begin === undefined) return "";
  return span(((toMs(to) ?? Date.now()) - begin) / 1000);
}

export function ago(timestamp: Timestamp | undefined): string {
  const ms = toMs(timestamp);
  return ms === undefined ? "never" : `${span(Math.max(Math.round((Date.now() - ms) / 1000), 0))} ago`;
}

/** "16 GiB", "1.5 GiB". */
export function bytes(value: number | bigint): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let amount = Number(value);
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${Number(amount.toFixed(amount < 10 ? 1 : 0))} ${units[unit]}`;
}

export function hours(duration: Duration | undefined): string {
  const value = seconds(duration) / HOUR_S;
  return value === 0 ? "0" : value < 10 ? value.toFixed(2) : NUMBER.format(Math.round(value));
}

export const percent = (part: number): string => `${(part * 100).toFixed(1)} %`;

/** "WAITS_FOR_TURN" as "waits for turn". */
export const words = (name: string): string => name.toLowerCase().replaceAll("_", " ");
