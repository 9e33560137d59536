// One log as lines: what is read of it, and the part in sight.

import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { LogPositionSchema, LogStream } from "../client/gen/muster/v1/jobs_service_pb.js";
import { LogPlace } from "../client/streams.js";
import { pieces } from "./ansi.js";
import { broker, isHeard } from "./broker.js";
import { count, plural } from "./format.js";
import { type Line, LogLines, MAX_LINES } from "./lines.js";
import { CopyButton, noteError, useHeight } from "./ui.js";

const ROW_PX = 18;
const MARGIN_ROWS = 30;
const DRAW_PAUSE_MS = 100;
// So much is read before a line that a link names.
const BEFORE_BYTES = 64 << 10;
// A longer line is cut in the page; the download has it whole.
const MAX_SHOWN = 4000;
const ENDS: Record<string, string> = {
  TRUNCATED: "The log has more bytes than the broker keeps for a job; the rest is on the cluster only.",
  INCOMPLETE: "The run has ended, and its cluster has not delivered the rest of the log.",
  EXPIRED: "The log was removed when its time was over.",
};

export type Stream = "both" | "stdout" | "stderr";

export interface Which {
  job: number;
  run: number;
  rank: number;
  stream: Stream;
  tail: number;
  /** "stdout-1234": the line of a link. */
  line: string;
}

export interface LogState {
  lines: Line[];
  dropped: number;
  note: string;
  isOver: boolean;
  error: MusterError | undefined;
}

function placeOf(which: Which): LogPlace {
  const [stream, offset] = which.line.split("-");
  if (stream !== "stdout" && stream !== "stderr") {
    return new LogPlace(which.job, { run: which.run, rank: which.rank, stream: which.stream, tail: which.tail, follow: true });
  }
  const place = new LogPlace(which.job, { run: which.run, rank: which.rank, stream, follow: true });
  const from = BigInt(Math.max(Number(offset) - BEFORE_BYTES, 0));
  place.request.positions.push(create(LogPositionSchema, { stream: stream === "stdout" ? LogStream.STDOUT : LogStream.STDERR, offset: from }));
  return place;
}

export function useLog(which: Which): LogState {
  const empty: LogState = { lines: [], dropped: 0, note: "", isOver: false, error: undefined };
  const [state, setState] = useState(empty);
  useEffect(() => {
    setState(empty);
    const stop = new AbortController();
    const log = new LogLines();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let note = "";
    let isFirst = true;
    const draw = (more: Partial<LogState> = {}): void => {
      clearTimeout(timer);
      timer = undefined;
      if (!stop.signal.aborted) setState((old) => ({ ...old, lines: log.shown.slice(), dropped: log.dropped, note, ...more }));
    };
    const read = async (): Promise<void> => {
      for await (const piece of broker.pieces(placeOf(which), { signal: stop.signal })) {
        isHeard();
        // The first part may begin within a line, which is not shown then.
        if (isFirst && which.line && piece.offset > 0) {
          const newline = piece.data.indexOf(10);
          piece.offset += newline + 1;
          piece.data = piece.data.subarray(newline + 1);
        }
        isFirst = false;
        log.take(piece);
        if (piece.end) note = ENDS[piece.end] ?? note;
        if (which.line && log.lines.length >= MAX_LINES) {
          note = `Only ${count(MAX_LINES)} lines are shown; the download has all of them.`;
          break;
        }
        timer ??= setTimeout(draw, DRAW_PAUSE_MS);
      }
      draw({ isOver: true });
    };
    read().catch((thrown: unknown) => {
      if (!stop.signal.aborted) draw({ isOver: true, error: noteError(thrown) });
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [which.job, which.run, which.rank, which.stream, which.tail, which.line]);
  return state;
}

interface LinesProps {
  log: LogState;
  which: Which;
  linkTo: (line: Line) => string;
  label: string;
  /** Whether the end is kept in sight; columns that stand side by side follow together. */
  follows: boolean;
  setFollows: (follows: boolean) => void;
}

export function LogLinesView({ log, which, linkTo, label, follows, setFollows }: LinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = useHeight(scroller);
  const [marked, setMarked] = useState(which.line);
  const lastTop = useRef(0);
  const isSought = useRef(which.line !== "");

  useEffect(() => {
    setMarked(which.line);
    isSought.current = which.line !== "";
  }, [which.line]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    if (isSought.current) {
      const at = log.lines.findIndex((line) => nameOf(line) === which.line);
      if (at < 0) return;
      isSought.current = false;
      element.scrollTop = Math.max(at * ROW_PX - element.clientHeight / 3, 0);
    } else if (follows) {
      element.scrollTop = element.scrollHeight;
      lastTop.current = element.scrollTop;
    }
  }, [log, follows, height]);

  const scrolled = (event: { currentTarget: HTMLDivElement }): void => {
    const element = event.currentTarget;
    setTop(element.scrollTop);
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_PX;
    const moved = element.scrollTop - lastTop.current;
    lastTop.current = element.scrollTop;
    // A person who goes up stops the following; where the page itself has gone, nobody has moved.
    if (isSought.current || moved === 0) return;
    if (isAtEnd) setFollows(true);
    else if (moved < 0) setFollows(false);
  };
  const first = Math.max(Math.floor(top / ROW_PX) - MARGIN_ROWS, 0);
  const last = Math.min(Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS, log.lines.length);
  return (
    <>
      <div class="log" ref={scroller} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label={label}>
        <div style={{ height: `${log.lines.length * ROW_PX}px` }} class="log-room">
          <div class="log-lines" style={{ transform: `translateY(${first * ROW_PX}px)` }}>
            {log.lines.slice(first, last).map((line) => (
              <LineView key={nameOf(line)} line={line} href={linkTo(line)} isMarked={nameOf(line) === marked} mark={() => setMarked(nameOf(line))} />
            ))}
          </div>
        </div>
        {log.lines.length === 0 && <p class="empty">{log.isOver ? "The log is empty." : "Nothing has been written yet."}</p>}
      </div>
      <div class="bar foot">
        <span class="quiet">{plural(log.lines.length, "line")}{log.dropped > 0 ? `, ${plural(log.dropped, "earlier line")} not kept here` : ""}
          {log.isOver ? "" : follows ? ", following" : ""}</span>
        {log.note && <span>{log.note}</span>}
        {!follows && !log.isOver && <button type="button" onClick={() => setFollows(true)}>Follow</button>}
        {marked && <CopyButton label="Copy link to line" text={() => location.origin + withMark(linkTo, marked)} />}
      </div>
    </>
  );
}

function withMark(linkTo: LinesProps["linkTo"], name: string): string {
  const [stream, offset] = name.split("-");
  return linkTo({ stream: stream as Line["stream"], offset: Number(offset), text: "" });
}

const nameOf = (line: Line): string => `${line.stream}-${line.offset}`;

interface LineProps {
  line: Line;
  href: string;
  isMarked: boolean;
  mark: () => void;
}

function LineView({ line, href, isMarked, mark }: LineProps) {
  const over = line.text.length - MAX_SHOWN;
  const text = over > 0 ? line.text.slice(0, MAX_SHOWN) : line.text;
  const select = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    mark();
    history.replaceState(null, "", href);
  };
  return (
    <div class={`line ${line.stream}${isMarked ? " marked" : ""}`}>
      <a class="anchor" href={href} tabIndex={-1} onClick={select} aria-label={`Link to this line of ${line.stream}`}>{line.stream === "stderr" ? "err" : "out"}</a>
      <span class="text">
        {pieces(text).map((piece, at) => (
          <span key={at} class={piece.classes || undefined} style={piece.color || piece.background ? { color: piece.color, backgroundColor: piece.background } : undefined}>{piece.text}</span>
        ))}
        {over > 0 && <span class="quiet"> ... {count(over)} more characters</span>}
      </span>
    </div>
  );
}
