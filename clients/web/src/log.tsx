// The log of a run: its end first, and on as it grows.

import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { JobsService, type Log, LogPositionSchema, LogStream } from "../client/gen/muster/v1/jobs_service_pb.js";
import { LogPlace } from "../client/streams.js";
import { pieces } from "./ansi.js";
import { broker, isHeard } from "./broker.js";
import { bytes, count, plural } from "./format.js";
import { type Line, LogLines, MAX_LINES } from "./lines.js";
import { go, Link, type Place, withQuery } from "./router.js";
import { CopyButton, ErrorNote, noteError, useHeight, useLoad, useTitle } from "./ui.js";

const ROW_PX = 18;
const MARGIN_ROWS = 30;
const DRAW_PAUSE_MS = 100;
// So much is read before a line that a link names.
const BEFORE_BYTES = 64 << 10;
// A longer line is cut in the page; the download has it whole.
const MAX_SHOWN = 4000;
const TAILS = [1000, 10_000, 100_000];
const ENDS: Record<string, string> = {
  TRUNCATED: "The log has more bytes than the broker keeps for a job; the rest is on the cluster only.",
  INCOMPLETE: "The run has ended, and its cluster has not delivered the rest of the log.",
  EXPIRED: "The log was removed when its time was over.",
};

type Stream = "both" | "stdout" | "stderr";

interface Which {
  job: number;
  run: number;
  rank: number;
  stream: Stream;
  tail: number;
  /** "stdout-1234": the line of a link. */
  line: string;
}

interface LogState {
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

function useLog(which: Which): LogState {
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

async function download(which: Which, told: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  const parts: BlobPart[] = [];
  let size = 0;
  const place = new LogPlace(which.job, { run: which.run, rank: which.rank, stream: which.stream });
  for await (const piece of broker.pieces(place, { signal })) {
    // The browser keeps parts of a Blob on its disk.
    parts.push(new Blob([piece.data.slice()]));
    size += piece.data.length;
    told(size);
  }
  const url = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `job-${which.job}${which.run ? `-run-${which.run}` : ""}-rank-${which.rank}${which.stream === "both" ? "" : `.${which.stream}`}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function LogView({ id, place }: { id: number; place: Place }) {
  const word = (name: string): string => place.query.get(name) ?? "";
  const stream = word("stream") === "stdout" || word("stream") === "stderr" ? (word("stream") as Stream) : "both";
  const which: Which = {
    job: id, run: Number(word("run")) || 0, rank: Number(word("rank")) || 0, stream, tail: Number(word("tail")) || TAILS[0] || 1000,
    line: /^(stdout|stderr)-\d+$/.test(word("line")) ? word("line") : "",
  };
  useTitle(`Log of job ${id}`);
  const log = useLog(which);
  const logs = useLoad(() => broker.ask(JobsService.method.listLogs, { jobId: BigInt(id), run: which.run }), [id, which.run, log.isOver]);
  const job = useLoad(() => broker.get(id), [id]);
  const at = (changes: Record<string, string>): string => withQuery(`/jobs/${id}/log`, {
    run: which.run ? String(which.run) : "", rank: which.rank ? String(which.rank) : "", stream: stream === "both" ? "" : stream,
    tail: word("tail"), ...changes,
  });
  const ranks = [...new Set((logs.value?.logs ?? []).map((one) => one.rank))];
  const size = (logs.value?.logs ?? []).filter((one) => one.rank === which.rank).reduce((sum, one) => sum + Number(one.sizeBytes), 0);
  return (
    <main class="log-page">
      <div class="head">
        <h1><Link href={`/jobs/${id}`}>Job {id}</Link> <span class="quiet">{job.value?.name}</span></h1>
      </div>
      <div class="bar">
        <label>Run <select value={String(which.run || (logs.value?.run ?? ""))} onChange={(event) => go(at({ run: event.currentTarget.value, rank: "" }))}>
          {(job.value?.runs ?? []).map((run) => <option key={run.number} value={String(run.number)}>{run.number}</option>)}
        </select></label>
        {ranks.length > 1 && (
          <label>Rank <select value={String(which.rank)} onChange={(event) => go(at({ rank: event.currentTarget.value }))}>
            {ranks.map((rank) => <option key={rank} value={String(rank)}>{rank}</option>)}
          </select></label>
        )}
        <label>Output <select value={stream} onChange={(event) => go(at({ stream: event.currentTarget.value === "both" ? "" : event.currentTarget.value }))}>
          <option value="both">both</option><option value="stdout">stdout</option><option value="stderr">stderr</option>
        </select></label>
        <label>Last <select value={String(which.tail)} onChange={(event) => go(at({ tail: event.currentTarget.value }))}>
          {TAILS.map((tail) => <option key={tail} value={String(tail)}>{count(tail)}</option>)}
        </select> lines</label>
        <span class="quiet">{bytes(size)}</span>
        <Download which={which} />
        {which.line && <Link href={at({})} class="button">To the end of the log</Link>}
      </div>
      <ErrorNote error={log.error} />
      <LogLinesView log={log} which={which} sizes={logs.value?.logs} linkTo={(line) => at({ line: `${line.stream}-${line.offset}` })} />
    </main>
  );
}

function Download({ which }: { which: Which }) {
  const [size, setSize] = useState<number | undefined>();
  const [error, setError] = useState<MusterError | undefined>();
  const stop = useRef<AbortController | undefined>();
  useEffect(() => () => stop.current?.abort(), []);
  const begin = (): void => {
    stop.current = new AbortController();
    setError(undefined);
    setSize(0);
    download(which, setSize, stop.current.signal).catch((thrown: unknown) => setError(noteError(thrown))).finally(() => setSize(undefined));
  };
  return (
    <>
      <button type="button" disabled={size !== undefined} onClick={begin}>{size === undefined ? "Download" : `${bytes(size)} so far`}</button>
      <ErrorNote error={error} />
    </>
  );
}

interface LinesProps {
  log: LogState;
  which: Which;
  sizes: Log[] | undefined;
  linkTo: (line: Line) => string;
}

function LogLinesView({ log, which, linkTo }: LinesProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = useHeight(scroller);
  const [follows, setFollows] = useState(which.line === "");
  const [marked, setMarked] = useState(which.line);
  const isSought = useRef(which.line !== "");

  useEffect(() => {
    setMarked(which.line);
    setFollows(which.line === "");
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
    }
  }, [log, follows, height]);

  const scrolled = (event: { currentTarget: HTMLDivElement }): void => {
    const element = event.currentTarget;
    setTop(element.scrollTop);
    if (!isSought.current) setFollows(element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_PX);
  };
  const first = Math.max(Math.floor(top / ROW_PX) - MARGIN_ROWS, 0);
  const last = Math.min(Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS, log.lines.length);
  return (
    <>
      <div class="log" ref={scroller} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label="Log">
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
