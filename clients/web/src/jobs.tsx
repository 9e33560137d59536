// The list of jobs: a filter that the broker evaluates, rows as they are scrolled to, live states.

import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import { type Job, JobState, TransitionKind } from "../client/gen/muster/v1/job_pb.js";
import { JobGrouping, type JobChange, JobsService, WatchJobsRequestSchema } from "../client/gen/muster/v1/jobs_service_pb.js";
import { hasEnded } from "../client/handle.js";
import { broker, isHeard } from "./broker.js";
import { type Choice, Changes } from "./changes.js";
import { between, count, plural, words } from "./format.js";
import { go, Link, type Place, withQuery } from "./router.js";
import { ErrorNote, noteError, State, stateWord, Time, useHeight, useTick, useTitle } from "./ui.js";

const ROW_PX = 30;
// Rows that are drawn above and below those in sight.
const MARGIN_ROWS = 10;
const PAGE = 200;
// The counts are asked for no more often than this while jobs change.
const COUNT_PAUSE_MS = 5000;
// Changes are drawn together.
const DRAW_PAUSE_MS = 150;
// Times of what runs are drawn anew.
const TICK_MS = 5000;
const ORDERS: [string, string][] = [
  ["", "Newest first"], ["id", "Oldest first"], ["priority desc", "Highest priority first"], ["start_time desc", "Last started first"],
  ["end_time desc", "Last ended first"], ["name", "By name"],
];
const EXAMPLES = ["state = RUNNING", "state = FAILED AND end_time > -1d", "user = ada", "label.team = vision"];

/** The rows that the broker has sent, in its order, and where its next page begins. */
class Rows {
  jobs: Job[] = [];
  readonly #at = new Map<bigint, number>();
  token = "";
  isWhole = false;

  constructor(readonly filter: string, readonly orderBy: string) {}

  async more(): Promise<void> {
    const page = await broker.ask(JobsService.method.listJobs, {
      filter: this.filter, orderBy: this.orderBy || "id desc", pageSize: PAGE, pageToken: this.token,
    });
    for (const job of page.jobs) if (!this.#at.has(job.id)) this.#push(job);
    this.token = page.nextPageToken;
    this.isWhole = !page.nextPageToken;
  }

  #push(job: Job): void {
    this.#at.set(job.id, this.jobs.length);
    this.jobs.push(job);
  }

  /** Returns the number of rows that came on top. */
  take(change: JobChange): number {
    const { job } = change;
    if (!job) return 0;
    const at = this.#at.get(job.id);
    if (at !== undefined) {
      const old = this.jobs[at];
      // The feed leaves out why a queued job waits.
      if (!job.stateReason && old?.state === job.state) job.stateReason = old.stateReason;
      this.jobs[at] = job;
      return 0;
    }
    if (this.orderBy || change.transition?.kind !== TransitionKind.SUBMITTED || job.id <= (this.jobs[0]?.id ?? 0n)) return 0;
    this.jobs.unshift(job);
    this.#at.clear();
    this.jobs.forEach((one, number) => this.#at.set(one.id, number));
    return 1;
  }
}

interface ListState {
  rows: Rows;
  version: number;
  isLoading: boolean;
  error: MusterError | undefined;
}

/** The rows of a filter. They follow the feed of changes, which begins before the first page is read, so that nothing is missed. */
function useRows(filter: string, orderBy: string, shift: (rows: number) => void) {
  const [state, setState] = useState<ListState>(() => ({ rows: new Rows(filter, orderBy), version: 0, isLoading: true, error: undefined }));
  const current = useRef(state.rows);
  const busy = useRef(false);

  const draw = (rows: Rows, more: Partial<ListState> = {}): void => {
    if (rows === current.current) setState((old) => ({ ...old, ...more, rows, version: old.version + 1 }));
  };
  const more = async (rows: Rows): Promise<void> => {
    if (busy.current || rows.isWhole || rows !== current.current) return;
    busy.current = true;
    draw(rows, { isLoading: true });
    try {
      await rows.more();
      isHeard();
      busy.current = false;
      draw(rows, { isLoading: false, error: undefined });
    } catch (thrown) {
      busy.current = false;
      draw(rows, { isLoading: false, error: noteError(thrown) });
    }
  };

  useEffect(() => {
    const rows = new Rows(filter, orderBy);
    current.current = rows;
    busy.current = false;
    setState({ rows, version: 0, isLoading: true, error: undefined });
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let addedRows = 0;
    void more(rows).then(async () => {
      const request = create(WatchJobsRequestSchema, { filter, start: { case: "now", value: {} } });
      let isFirst = true;
      for await (const change of broker.changes(request, { signal: stop.signal })) {
        isHeard();
        if (isFirst) {
          isFirst = false;
          await catchUp(rows);
          draw(rows);
        }
        if (!change) continue;
        addedRows += rows.take(change);
        timer ??= setTimeout(() => {
          timer = undefined;
          draw(rows);
          shift(addedRows);
          addedRows = 0;
        }, DRAW_PAUSE_MS);
      }
    }).catch((thrown: unknown) => {
      if (!stop.signal.aborted) draw(rows, { error: noteError(thrown) });
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [filter, orderBy]);
  return { ...state, more: () => void more(current.current) };
}

/** Takes in what changed between the first page and the beginning of the feed. */
async function catchUp(rows: Rows): Promise<void> {
  const page = await broker.ask(JobsService.method.listJobs, { filter: rows.filter, orderBy: rows.orderBy || "id desc", pageSize: PAGE });
  if (page.jobs.length === 0 && rows.jobs.length === 0) return;
  const known = new Map(page.jobs.map((job) => [job.id, job]));
  const fresh = page.jobs.filter((job) => !rows.jobs.some((one) => one.id === job.id));
  rows.jobs = rows.jobs.map((job) => known.get(job.id) ?? job);
  if (!rows.orderBy) for (const job of fresh.reverse()) rows.take({ job, transition: { kind: TransitionKind.SUBMITTED } } as JobChange);
}

/** The jobs of the filter by state; they are counted anew while something changes. */
function useCounts(filter: string, version: number) {
  const [counts, setCounts] = useState<{ total: bigint; byState: Map<JobState, bigint>; isOver: boolean } | undefined>();
  const last = useRef(0);
  const asked = useRef("");
  useEffect(() => {
    const isNew = asked.current !== filter;
    asked.current = filter;
    const wait = isNew ? 0 : Math.max(last.current + COUNT_PAUSE_MS - Date.now(), 0);
    const timer = setTimeout(() => {
      last.current = Date.now();
      broker.ask(JobsService.method.countJobs, { filter, groupBy: [JobGrouping.STATE] }).then(
        (answer) => setCounts({ total: answer.total, byState: new Map(answer.counts.map((one) => [one.state, one.count])), isOver: false }),
        (thrown: unknown) => setCounts(noteError(thrown).reason === "TOO_MANY_JOBS" ? { total: 0n, byState: new Map(), isOver: true } : undefined),
      );
    }, wait);
    return () => clearTimeout(timer);
  }, [filter, version]);
  return counts;
}

export function JobsView({ place }: { place: Place }) {
  const filter = place.query.get("filter") ?? "";
  const orderBy = place.query.get("order") ?? "";
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
  const { rows, version, isLoading, error, more } = useRows(filter, orderBy, shift);
  const counts = useCounts(filter, version);

  useEffect(() => {
    setDraft(filter);
    setSelected(new Set());
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [filter, orderBy]);
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
  const last = Math.min(Math.ceil((top + height) / ROW_PX) + MARGIN_ROWS, rows.jobs.length);
  useEffect(() => {
    if (last >= rows.jobs.length - MARGIN_ROWS && !rows.isWhole && !error) more();
  }, [last, version]);

  const search = (event: Event): void => {
    event.preventDefault();
    go(withQuery("/jobs", { filter: draft.trim(), order: orderBy }));
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
        <input ref={input} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} aria-label="Filter" spellcheck={false}
          autocomplete="off" autocapitalize="off" list="filters" placeholder='Filter: state = RUNNING AND label.team = "vision"' />
        <datalist id="filters">{EXAMPLES.map((one) => <option key={one} value={one} />)}</datalist>
        <button type="submit">Filter</button>
        {filter && <Link href={withQuery("/jobs", { order: orderBy })} class="button">Clear</Link>}
        <select aria-label="Order" value={orderBy} onChange={(event) => go(withQuery("/jobs", { filter, order: event.currentTarget.value }))}>
          {ORDERS.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
      </form>
      <div class="bar">
        <span class="counts" aria-live="polite">
          {counts?.isOver ? "more than 1,000,000 jobs" : counts ? plural(counts.total, "job") : "counting"}
          {counts && [...counts.byState].map(([state, number]) => (
            <Link key={state} class="count" href={withQuery("/jobs", { filter: narrowed(filter, state), order: orderBy })}>
              {count(number)} {words(stateWord(state))}
            </Link>
          ))}
        </span>
        <span class="actions" role="group" aria-label={ids.length > 0 ? `Change ${plural(ids.length, "selected job")}` : "Change all jobs of the filter"}>
          <span class="quiet">{ids.length > 0 ? `${count(ids.length)} selected:` : "all of the filter:"}</span>
          {(["Cancel", "Hold", "Release", "Rerun"] as const).map((verb) => (
            <button key={verb} type="button" disabled={rows.jobs.length === 0} onClick={() => act(verb)}>{verb}</button>
          ))}
          {ids.length > 0 && <button type="button" onClick={() => setSelected(new Set())}>Unselect</button>}
        </span>
      </div>
      <ErrorNote error={error} />
      <div class="grid" role="table" aria-label="Jobs" aria-rowcount={total === undefined ? -1 : total + 1} ref={scroller} tabIndex={0}
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
          {rows.jobs.slice(first, last).map((job, number) => (
            <Row key={String(job.id)} job={job} index={first + number + 2} isSelected={selected.has(job.id)} toggle={toggle} />
          ))}
          <div role="presentation" style={{ height: `${(rows.jobs.length - last) * ROW_PX}px` }} />
          {rows.jobs.length === 0 && !isLoading && !error && (
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
  return filter.includes(word) ? filter : `(${filter}) AND ${word}`;
}

interface RowProps {
  job: Job;
  index: number;
  isSelected: boolean;
  toggle: (id: bigint) => void;
}

function Row({ job, index, isSelected, toggle }: RowProps) {
  const id = String(job.id);
  const why = job.state === JobState.FAILED ? job.failure?.message : job.stateReason?.message;
  return (
    <div class={`row${isSelected ? " selected" : ""}`} role="row" aria-rowindex={index}>
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
