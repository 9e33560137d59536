// The list of jobs: a filter that the broker evaluates, rows as they are scrolled to, live states.

import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { type Job, JobState } from "../client/gen/muster/v1/job_pb.js";
import { WatchJobsRequestSchema } from "../client/gen/muster/v1/jobs_service_pb.js";
import { hasEnded } from "../client/handle.js";
import { ArrayRow, expand, RestRow, useCounts, useTasks } from "./arrays.js";
import { broker, isHeard } from "./broker.js";
import { type Choice, Changes } from "./changes.js";
import { FilterBox } from "./filterbox.js";
import { between, count, plural, words } from "./format.js";
import { go, Link, type Place, withQuery } from "./router.js";
import { narrow, Rows } from "./rows.js";
import { ErrorNote, noteError, State, stateWord, Time, useHeight, useTick, useTitle } from "./ui.js";
import { ViewBar } from "./views.js";

const ROW_PX = 30;
// Rows that are drawn above and below those in sight.
const MARGIN_ROWS = 10;
// Changes are drawn together.
const DRAW_PAUSE_MS = 150;
// New jobs of a list with arrays are asked for no more often than this.
const NEWER_PAUSE_MS = 2000;
// Times of what runs are drawn anew.
const TICK_MS = 5000;
const ORDERS: [string, string][] = [
  ["", "Newest first"], ["id", "Oldest first"], ["priority desc", "Highest priority first"], ["start_time desc", "Last started first"],
  ["end_time desc", "Last ended first"], ["name", "By name"],
];

interface ListState {
  rows: Rows;
  version: number;
  isLoading: boolean;
  error: MusterError | undefined;
}

/** The rows of a filter. They follow the feed of changes, which begins before the first page is read, so that nothing is missed. */
function useRows(filter: string, orderBy: string, groups: boolean, shift: (rows: number) => void) {
  const [state, setState] = useState<ListState>(() => ({ rows: new Rows(filter, orderBy, groups), version: 0, isLoading: true, error: undefined }));
  const current = useRef(state.rows);

  const draw = (rows: Rows, more: Partial<ListState> = {}): void => {
    if (rows === current.current) setState((old) => ({ ...old, ...more, rows, version: old.version + 1 }));
  };
  const more = async (rows: Rows): Promise<void> => {
    if (rows.isBusy || rows.isWhole || rows !== current.current) return;
    rows.isBusy = true;
    draw(rows, { isLoading: true });
    try {
      await rows.more();
      isHeard();
      rows.isBusy = false;
      draw(rows, { isLoading: false, error: undefined });
    } catch (thrown) {
      rows.isBusy = false;
      draw(rows, { isLoading: false, error: noteError(thrown) });
    }
  };

  useEffect(() => {
    const rows = new Rows(filter, orderBy, groups);
    current.current = rows;
    setState({ rows, version: 0, isLoading: true, error: undefined });
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let newer: ReturnType<typeof setTimeout> | undefined;
    let newerAt = 0;
    let addedRows = 0;
    const show = (): void => {
      timer = undefined;
      // Another filter may be shown since.
      if (stop.signal.aborted) return;
      draw(rows);
      shift(addedRows);
      addedRows = 0;
    };
    const catchUp = async (): Promise<void> => {
      newer = undefined;
      if (stop.signal.aborted) return;
      newerAt = Date.now();
      // A step of scrolling that is under way would read the list at another place.
      if (rows.isBusy) {
        newer = setTimeout(() => void catchUp().catch(noteError), DRAW_PAUSE_MS);
        return;
      }
      rows.isBusy = true;
      try {
        addedRows += await rows.catchUp();
      } finally {
        rows.isBusy = false;
      }
      show();
    };
    const seekNewer = (): void => {
      if (!rows.hasNewer || newer !== undefined || document.visibilityState !== "visible") return;
      newer = setTimeout(() => void catchUp().catch(noteError), Math.max(newerAt + NEWER_PAUSE_MS - Date.now(), 0));
    };
    void more(rows).then(async () => {
      const request = create(WatchJobsRequestSchema, { filter, start: { case: "now", value: {} } });
      let isFirst = true;
      for await (const change of broker.changes(request, { signal: stop.signal })) {
        isHeard();
        if (isFirst) {
          isFirst = false;
          await catchUp();
        }
        if (!change) continue;
        addedRows += rows.take(change);
        seekNewer();
        timer ??= setTimeout(show, DRAW_PAUSE_MS);
      }
    }).catch((thrown: unknown) => {
      if (!stop.signal.aborted) draw(rows, { error: noteError(thrown) });
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
      clearTimeout(newer);
    };
  }, [filter, orderBy, groups]);
  return { ...state, more: () => void more(current.current) };
}

export function JobsView({ place }: { place: Place }) {
  const filter = place.query.get("filter") ?? "";
  const orderBy = place.query.get("order") ?? "";
  const arrays = place.query.get("arrays") === "apart" ? "apart" : "";
  const [draft, setDraft] = useState(filter);
  const [selected, setSelected] = useState<ReadonlySet<bigint>>(new Set());
  const [choice, setChoice] = useState<Choice | undefined>();
  const [top, setTop] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const height = useHeight(scroller);
  const input = useRef<HTMLInputElement>(null);
  useTitle("Jobs");
  useTick(TICK_MS);

  const shift = (added: number): void => {
    const element = scroller.current;
    // The rows that a person looks at stay where they are.
    if (element && added > 0 && element.scrollTop > 0) element.scrollTop += added * ROW_PX;
  };
  const { rows, version, isLoading, error, more } = useRows(filter, orderBy, arrays === "", shift);
  const open = useTasks(filter, rows.rows, version);
  const shown = expand(rows.rows, open.tasks);
  const counts = useCounts(filter, version);

  useEffect(() => {
    setDraft(filter);
    setSelected(new Set());
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [filter, orderBy, arrays]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== "checkbox";
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === "/") {
        event.preventDefault();
        input.current?.focus();
      }
      const step = event.key === "j" || event.key === "ArrowDown" ? 1 : event.key === "k" || event.key === "ArrowUp" ? -1 : 0;
      if (step === 0) return;
      const links = Array.from(scroller.current?.querySelectorAll<HTMLAnchorElement>("a.job") ?? []);
      const at = links.findIndex((link) => link.closest("[role=row]")?.contains(document.activeElement));
      const next = links[at < 0 ? 0 : at + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  const first = Math.max(Math.floor(top / ROW_PX) - MARGIN_ROWS, 0);
  const last = Math.min(Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS, shown.length);
  useEffect(() => {
    if (last >= shown.length - MARGIN_ROWS && !rows.isWhole && !error) more();
  }, [last, version]);

  const at = (changes: Record<string, string>): string => withQuery("/jobs", { filter, order: orderBy, arrays, ...changes });
  const search = (event: Event): void => {
    event.preventDefault();
    go(at({ filter: draft.trim() }));
  };
  const toggle = (id: bigint): void => setSelected((old) => {
    const fresh = new Set(old);
    if (!fresh.delete(id)) fresh.add(id);
    return fresh;
  });
  const ids = [...selected];
  const total = counts && !counts.isOver ? Number(counts.total) : undefined;
  const act = (verb: Choice["verb"]): void => setChoice({ verb, ...(ids.length > 0 ? { ids } : { filter: filter.trim() || "id > 0" }) });

  return (
    <main class="jobs">
      <h1 class="unseen">Jobs</h1>
      <form class="filter" role="search" onSubmit={search}>
        <FilterBox input={input} value={draft} onValue={setDraft} jobs={rows.rows.map((row) => row.job)} />
        <button type="submit">Filter</button>
        {filter && <Link href={at({ filter: "" })} class="button">Clear</Link>}
        <select aria-label="Order" value={orderBy} onChange={(event) => go(at({ order: event.currentTarget.value }))}>
          {ORDERS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
        <select aria-label="Arrays" value={arrays} onChange={(event) => go(at({ arrays: event.currentTarget.value }))}>
          <option value="">Arrays as one row</option><option value="apart">Each task of arrays</option>
        </select>
      </form>
      <ViewBar filter={filter} order={orderBy} />
      <div class="bar">
        <span class="counts" aria-live="polite">
          {counts?.isOver ? "more than 1,000,000 jobs" : counts ? plural(counts.total, "job") : "counting"}
          {counts && [...counts.byState].map(([state, number]) => (
            <Link key={state} class="count" href={at({ filter: narrowed(filter, state) })}>
              {count(number)} {words(stateWord(state))}
            </Link>
          ))}
        </span>
        <span class="actions" role="group" aria-label={ids.length > 0 ? `Change ${plural(ids.length, "selected job")}` : "Change all jobs of the filter"}>
          <span class="quiet">{ids.length > 0 ? `${count(ids.length)} selected:` : "all of the filter:"}</span>
          {(["Cancel", "Hold", "Release", "Rerun"] as const).map((verb) => (
            <button key={verb} type="button" disabled={shown.length === 0} onClick={() => act(verb)}>{verb}</button>
          ))}
          {ids.length > 0 && <button type="button" onClick={() => setSelected(new Set())}>Unselect</button>}
        </span>
      </div>
      <ErrorNote error={error} />
      <div class="grid" role="table" aria-label="Jobs" aria-rowcount={total === undefined || shown.length !== total ? -1 : total + 1} ref={scroller} tabIndex={0}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <div role="rowgroup" class="grid-head">
          <div class="row" role="row" aria-rowindex={1}>
            <span role="columnheader"><span class="unseen">Selected</span></span>
            {["Job", "Name", "State", "Cluster", "User", "Project", "Created", "Ran", "Why"].map((name) => (
              <span role="columnheader" key={name} class={`c-${name.toLowerCase()}`}>{name}</span>
            ))}
          </div>
        </div>
        <div class="grid-body" role="rowgroup">
          <div role="presentation" style={{ height: `${first * ROW_PX}px` }} />
          {shown.slice(first, last).map((one, number) => {
            const index = first + number + 2;
            if ("rest" in one) return <RestRow key={`rest ${one.rest.first}`} array={one.rest} filter={filter} index={index} />;
            const { job, array } = one;
            if (!array) return <JobRow key={String(job.id)} job={job} index={index} isTask={Boolean(one.isTask)} isSelected={selected.has(job.id)} toggle={toggle} />;
            return (
              <ArrayRow key={`array ${array.first}`} row={one} array={array} filter={filter} index={index} isOpen={open.tasks.has(array.first)}
                toggle={() => open.toggle(array)} />
            );
          })}
          <div role="presentation" style={{ height: `${(shown.length - last) * ROW_PX}px` }} />
          {shown.length === 0 && !isLoading && !error && (
            <div role="row"><p class="empty" role="cell">{filter ? "No job matches this filter." : "There are no jobs yet. Submit one: muster run -- echo hello"}</p></div>
          )}
        </div>
      </div>
      {choice && <Changes choice={choice} close={() => setChoice(undefined)} done={() => setSelected(new Set())} />}
    </main>
  );
}

function narrowed(filter: string, state: JobState): string {
  const word = `state = ${stateWord(state)}`;
  if (!filter || /^state = \w+$/.test(filter)) return word;
  return filter.includes(word) ? filter : narrow(filter, word);
}

interface JobRowProps {
  job: Job;
  index: number;
  isTask: boolean;
  isSelected: boolean;
  toggle: (id: bigint) => void;
}

function JobRow({ job, index, isTask, isSelected, toggle }: JobRowProps) {
  const id = String(job.id);
  const why = job.state === JobState.FAILED ? job.failure?.message : job.stateReason?.message;
  return (
    <div class={`row${isSelected ? " selected" : ""}${isTask ? " task" : ""}`} role="row" aria-rowindex={index}>
      <span role="cell"><input type="checkbox" checked={isSelected} onChange={() => toggle(job.id)} aria-label={`Select job ${id}`} /></span>
      <span role="cell" class="c-job"><Link class="job" href={`/jobs/${id}`}>{id}</Link></span>
      <span role="cell" class="c-name" title={job.name}>{job.name}</span>
      <span role="cell" class="c-state"><State state={job.state} held={job.held && !hasEnded(job)} /></span>
      <span role="cell" class="c-cluster">{job.cluster}</span>
      <span role="cell" class="c-user">{job.user}</span>
      <span role="cell" class="c-project">{job.project}</span>
      <span role="cell" class="c-created"><Time at={job.createTime} /></span>
      <span role="cell" class="c-ran">{between(job.startTime, job.endTime)}</span>
      <span role="cell" class="c-why" title={why}>{why}</span>
    </div>
  );
}
