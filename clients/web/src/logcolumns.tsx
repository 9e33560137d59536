// Ranks and outputs of a run side by side. They follow together.

import { useEffect, useState } from "preact/hooks";
import { type LogState, LogLinesView, type Stream, useLog, type Which } from "./loglines.js";
import { go } from "./router.js";
import { ErrorNote } from "./ui.js";

// Each has a stream, and all tabs of a browser share its six connections to a broker.
export const MAX_COLUMNS = 3;
export const LINE = /^(stdout|stderr)-\d+$/;
const COLUMN = /^(\d{1,5})(?:-(stdout|stderr))?$/;

export interface Column {
  rank: number;
  stream: Stream;
}

/** The columns that an address names: "0,3-stderr". */
export function columnsOf(text: string): Column[] {
  return text.split(",").flatMap((word): Column[] => {
    const found = COLUMN.exec(word);
    return found ? [{ rank: Number(found[1]), stream: (found[2] as Stream | undefined) ?? "both" }] : [];
  }).slice(0, MAX_COLUMNS);
}

const wordOf = ({ rank, stream }: Column): string => (stream === "both" ? String(rank) : `${rank}-${stream}`);

interface ColumnsProps {
  columns: Column[];
  ranks: number[];
  which: Which;
  /** "1:stdout-99": a line of the second column. */
  line: string;
  onOver: (isOver: boolean) => void;
  at: (changes: Record<string, string>) => string;
}

export function Columns({ columns, ranks, which, line, onOver, at }: ColumnsProps) {
  const [number, place] = line.split(":");
  const named = place && LINE.test(place) && /^\d$/.test(number ?? "") ? Number(number) : -1;
  const [follows, setFollows] = useState(named < 0);
  const [over, setOver] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => setFollows(named < 0), [line]);
  useEffect(() => onOver(over.size === columns.length), [over]);
  const to = (next: Column[]): void => go(at({ columns: next.map(wordOf).join(",") }));
  const add = (): void => {
    const free = ranks.find((rank) => !columns.some((one) => one.rank === rank)) ?? ranks[0] ?? 0;
    to([...columns, { rank: free, stream: "both" }]);
  };
  return (
    <>
      <div class="columns">
        {columns.map((column, index) => (
          <ColumnView key={index} column={column} number={index} ranks={ranks} which={{ ...which, ...column, line: index === named ? place ?? "" : "" }}
            follows={follows} setFollows={setFollows} change={(next) => to(columns.map((one, other) => (other === index ? next : one)))}
            remove={columns.length > 1 ? () => to(columns.filter((_, other) => other !== index)) : undefined}
            onOver={() => setOver((old) => new Set(old).add(index))} linkTo={(word) => at({ line: `${index}:${word}` })} />
        ))}
      </div>
      {columns.length < MAX_COLUMNS && <div class="bar foot"><button type="button" onClick={add}>Add a column</button></div>}
    </>
  );
}

interface ColumnViewProps {
  column: Column;
  number: number;
  ranks: number[];
  which: Which;
  follows: boolean;
  setFollows: (follows: boolean) => void;
  change: (column: Column) => void;
  remove: (() => void) | undefined;
  onOver: () => void;
  linkTo: (word: string) => string;
}

function ColumnView({ column, number, ranks, which, follows, setFollows, change, remove, onOver, linkTo }: ColumnViewProps) {
  const log: LogState = useLog(which);
  const name = `Column ${number + 1}`;
  const choices = ranks.includes(column.rank) ? ranks : [column.rank, ...ranks];
  useEffect(() => {
    if (log.isOver) onOver();
  }, [log.isOver]);
  return (
    <section class="column" aria-label={name}>
      <div class="bar">
        <label>Rank <select aria-label={`Rank of column ${number + 1}`} value={String(column.rank)}
          onChange={(event) => change({ ...column, rank: Number(event.currentTarget.value) })}>
          {choices.map((rank) => <option key={rank} value={String(rank)}>{rank}</option>)}
        </select></label>
        <label>Output <select aria-label={`Output of column ${number + 1}`} value={column.stream}
          onChange={(event) => change({ ...column, stream: event.currentTarget.value as Stream })}>
          <option value="both">both</option><option value="stdout">stdout</option><option value="stderr">stderr</option>
        </select></label>
        {remove && <button type="button" aria-label={`Remove column ${number + 1}`} onClick={remove}>Remove</button>}
      </div>
      <ErrorNote error={log.error} />
      <LogLinesView log={log} which={which} linkTo={(line) => linkTo(`${line.stream}-${line.offset}`)} label={`Log of rank ${column.rank}, ${name.toLowerCase()}`}
        follows={follows} setFollows={setFollows} />
    </section>
  );
}
