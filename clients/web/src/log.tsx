// The log of a run: its end first, and on as it grows; or several ranks and outputs side by side.

import { useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { JobsService } from "../client/gen/muster/v1/jobs_service_pb.js";
import { LogPlace } from "../client/streams.js";
import { broker } from "./broker.js";
import { bytes, count } from "./format.js";
import { Columns, columnsOf, LINE, MAX_COLUMNS } from "./logcolumns.js";
import { type LogState, LogLinesView, type Stream, useLog, type Which } from "./loglines.js";
import { go, Link, type Place, withQuery } from "./router.js";
import { ErrorNote, noteError, useLoad, useTitle } from "./ui.js";

const TAILS = [1000, 10_000, 100_000];
// Ranks begin to write when they like.
const LOGS_EVERY_MS = 5000;

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
  const columns = columnsOf(word("columns"));
  const isApart = columns.length > 0;
  const run = Number(word("run")) || 0;
  const tail = Number(word("tail")) || TAILS[0] || 1000;
  const which: Which = { job: id, run, rank: Number(word("rank")) || 0, stream, tail, line: !isApart && LINE.test(word("line")) ? word("line") : "" };
  useTitle(`Log of job ${id}`);
  const [isOver, setOver] = useState(false);
  const logs = useLoad(() => broker.ask(JobsService.method.listLogs, { jobId: BigInt(id), run }), [id, run, isOver], isOver ? 0 : LOGS_EVERY_MS);
  const job = useLoad(() => broker.get(id), [id]);
  const at = (changes: Record<string, string>): string => withQuery(`/jobs/${id}/log`, {
    run: run ? String(run) : "", rank: which.rank ? String(which.rank) : "", stream: stream === "both" ? "" : stream,
    tail: word("tail"), columns: word("columns"), ...changes,
  });
  const ranks = [...new Set((logs.value?.logs ?? []).map((one) => one.rank))];
  const size = (logs.value?.logs ?? []).filter((one) => one.rank === which.rank).reduce((sum, one) => sum + Number(one.sizeBytes), 0);
  // The ranks side by side, or the outputs of the only one.
  const apart = ranks.length > 1 ? ranks.slice(0, 2).map(String).join(",") : "0-stdout,0-stderr";
  return (
    <main class="log-page">
      <div class="head">
        <h1><Link href={`/jobs/${id}`}>Job {id}</Link> <span class="quiet">{job.value?.name}</span></h1>
      </div>
      <div class="bar">
        <label>Run <select value={String(run || (logs.value?.run ?? ""))} onChange={(event) => go(at({ run: event.currentTarget.value, rank: "", columns: "" }))}>
          {(job.value?.runs ?? []).map((one) => <option key={one.number} value={String(one.number)}>{one.number}</option>)}
        </select></label>
        {!isApart && ranks.length > 1 && (
          <label>Rank <select value={String(which.rank)} onChange={(event) => go(at({ rank: event.currentTarget.value }))}>
            {ranks.map((rank) => <option key={rank} value={String(rank)}>{rank}</option>)}
          </select></label>
        )}
        {!isApart && <label>Output <select value={stream} onChange={(event) => go(at({ stream: event.currentTarget.value === "both" ? "" : event.currentTarget.value }))}>
          <option value="both">both</option><option value="stdout">stdout</option><option value="stderr">stderr</option>
        </select></label>}
        <label>Last <select value={String(tail)} onChange={(event) => go(at({ tail: event.currentTarget.value }))}>
          {TAILS.map((number) => <option key={number} value={String(number)}>{count(number)}</option>)}
        </select> lines</label>
        {!isApart && <><span class="quiet">{bytes(size)}</span><Download which={which} /></>}
        {word("line") && <Link href={at({})} class="button">To the end of the log</Link>}
        {isApart
          ? <Link href={at({ columns: "", rank: "", stream: "" })} class="button">One log</Link>
          : <Link href={at({ columns: apart, rank: "", stream: "" })} class="button" title={`At most ${MAX_COLUMNS}`}>Side by side</Link>}
      </div>
      {isApart
        ? <Columns key={word("columns")} columns={columns} ranks={ranks} which={which} line={word("line")} onOver={setOver} at={at} />
        : <OneLog which={which} onOver={setOver} at={at} />}
    </main>
  );
}

interface OneLogProps {
  which: Which;
  onOver: (isOver: boolean) => void;
  at: (changes: Record<string, string>) => string;
}

function OneLog({ which, onOver, at }: OneLogProps) {
  const log: LogState = useLog(which);
  const [follows, setFollows] = useState(which.line === "");
  useEffect(() => setFollows(which.line === ""), [which.line]);
  useEffect(() => onOver(log.isOver), [log.isOver]);
  return (
    <>
      <ErrorNote error={log.error} />
      <LogLinesView log={log} which={which} linkTo={(line) => at({ line: `${line.stream}-${line.offset}` })} label="Log" follows={follows} setFollows={setFollows} />
    </>
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
