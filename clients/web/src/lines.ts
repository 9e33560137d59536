// The bytes of a run's outputs as lines, each with its place.

import type { LogPiece } from "../client/streams.js";

export interface Line {
  stream: "stdout" | "stderr";
  /** The place of its first byte in its output: the name of the line for good. */
  offset: number;
  text: string;
}

// More would fill the memory of the browser; the earliest go.
export const MAX_LINES = 200_000;
// A line without an end is shown in parts.
const MAX_LINE_BYTES = 64 << 10;
const NEWLINE = 10;

/** Takes pieces in the order in which they came, and makes lines of each output. */
export class LogLines {
  lines: Line[] = [];
  dropped = 0;
  readonly #rests = new Map<string, { offset: number; bytes: Uint8Array }>();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  take(piece: LogPiece): void {
    const rest = this.#rests.get(piece.stream);
    const bytes = rest ? joined(rest.bytes, piece.data) : piece.data;
    let offset = rest?.offset ?? piece.offset;
    let from = 0;
    for (;;) {
      const newline = bytes.indexOf(NEWLINE, from);
      const end = newline < 0 ? bytes.length : newline;
      const isWhole = newline >= 0 || end - from > MAX_LINE_BYTES || (piece.end !== "" && end > from);
      if (!isWhole) break;
      this.lines.push({ stream: piece.stream, offset, text: this.#decoder.decode(bytes.subarray(from, end)) });
      const next = newline < 0 ? end : end + 1;
      offset += next - from;
      from = next;
      if (newline < 0) break;
    }
    this.#rests.set(piece.stream, { offset, bytes: bytes.slice(from) });
    if (this.lines.length > MAX_LINES) {
      const over = this.lines.length - MAX_LINES;
      this.dropped += over;
      this.lines.splice(0, over);
    }
  }

  /** The lines with those that have not ended yet. */
  get shown(): Line[] {
    const open = [...this.#rests].filter(([, rest]) => rest.bytes.length > 0);
    if (open.length === 0) return this.lines;
    return [...this.lines, ...open.map(([stream, rest]) => ({ stream: stream as Line["stream"], offset: rest.offset, text: this.#decoder.decode(rest.bytes) }))];
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const whole = new Uint8Array(one.length + other.length);
  whole.set(one);
  whole.set(other, one.length);
  return whole;
}
