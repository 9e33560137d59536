// Arrays of jobs in the list: one row each, with its progress, and its tasks below if they are wanted. Counts of jobs by state.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Job, JobState } from "../client/gen/muster/v1/job_pb.js";
import { JobGrouping, JobsService } from "../client/gen/muster/v1/jobs_service_pb.js";
import { broker } from "./broker.js";
import { count, words } from "./format.js";
import { Link, withQuery } from "./router.js";
import { narrow, type Row, type TaskArray, tasksOf } from "./rows.js";
import { noteError, stateWord, Time } from "./ui.js";

// The counts are asked for no more often than this while jobs change.
const COUNT_PAUSE_MS = 5000;
// More tasks have a list of their own.
const TASKS = 100;
const ENDED = [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED];
const MARKS: [JobState, string][] = [
  [JobState.SUCCEEDED, "succeeded"], [JobState.FAILED, "failed"], [JobState.CANCELED, "canceled"], [JobState.RUNNING, "running"],
];

export interface Counts {
  total: bigint;
  byState: ReadonlyMap<JobState, bigint>;
  isOver: boolean;
}

/** The jobs of the filter by state; they are counted anew while something changes. */
export function useCounts(filter: string, version: number): Counts | undefined {
  const [counts, setCounts] = useState<Counts | undefined>();
  const latest = useRef(filter);
  latest.current = filter;
  const question = useRef({ filter: "", at: 0, asked: 0, shown: 0 });
  useEffect(() => {
    const last = question.current;
    const timer = setTimeout(() => {
      last.filter = filter;
      last.at = Date.now();
      const number = ++last.asked;
      // An answer does not take the place of a newer one, nor that of another filter.
      const show = (counted: Counts | undefined): void => {
        if (number <= last.shown || filter !== latest.current) return;
        last.shown = number;
        setCounts(counted);
      };
      broker.ask(JobsService.method.countJobs, { filter, groupBy: [JobGrouping.STATE] }).then(
        (answer) => show({ total: answer.total, byState: new Map(answer.counts.map((one) => [one.state, one.count])), isOver: false }),
        (thrown: unknown) => show(noteError(thrown).reason === "TOO_MANY_JOBS" ? { total: 0n, byState: new Map(), isOver: true } : undefined),
      );
    }, last.filter === filter ? Math.max(last.at + COUNT_PAUSE_MS - Date.now(), 0) : 0);
    return () => clearTimeout(timer);
  }, [filter, version]);
  return counts;
}

/** A row of the list: a job, a task of an array that is open, or the way to the array's other tasks. */
export type Shown = (Row & { isTask?: boolean }) | { rest: TaskArray };

export interface Open {
  tasks: ReadonlyMap<bigint, readonly Job[]>;
  toggle: (array: TaskArray) => void;
}

/** The tasks of the arrays that are open. */
export function useTasks(filter: string, rows: readonly Row[], version: number): Open {
  const [tasks, setTasks] = useState<ReadonlyMap<bigint, readonly Job[]>>(new Map());
  const read = useRef(new Map<bigint, { changes: number; at: number; asked: number; shown: number }>());
  useEffect(() => {
    read.current.clear();
    setTasks(new Map());
  }, [filter]);
  const load = (array: TaskArray): void => {
    const opened = read.current.get(array.first) ?? { changes: 0, at: 0, asked: 0, shown: 0 };
    read.current.set(array.first, opened);
    opened.changes = array.changes;
    opened.at = Date.now();
    const number = ++opened.asked;
    broker.ask(JobsService.method.listJobs, { filter: narrow(filter, tasksOf(array)), orderBy: "id", pageSize: TASKS }).then((page) => {
      // The array was closed since, or a newer answer is shown.
      if (read.current.get(array.first) !== opened || number <= opened.shown) return;
      opened.shown = number;
      setTasks((old) => new Map(old).set(array.first, page.jobs));
    }, (thrown: unknown) => noteError(thrown));
  };
  useEffect(() => {
    const timers = rows.flatMap(({ array }) => {
      const last = array && read.current.get(array.first);
      if (!array || !last || last.changes === array.changes) return [];
      return [setTimeout(() => load(array), Math.max(last.at + COUNT_PAUSE_MS - Date.now(), 0))];
    });
    return () => timers.forEach(clearTimeout);
  }, [version]);
  const toggle = (array: TaskArray): void => {
    if (!read.current.delete(array.first)) return load(array);
    return setTasks((old) => new Map([...old].filter(([first]) => first !== array.first)));
  };
  return { tasks, toggle };
}

/** The rows with the tasks of open arrays below theirs. */
export function expand(rows: readonly Row[], tasks: Open["tasks"]): readonly Shown[] {
  if (tasks.size === 0) return rows;
  return rows.flatMap((row): Shown[] => {
    const below = row.array && tasks.get(row.array.first);
    if (!row.array || !below) return [row];
    return [row, ...below.map((job) => ({ job, isTask: true })), ...(below.length < TASKS ? [] : [{ rest: row.array }])];
  });
}

/** The list of an array's tasks alone. */
function listOf(filter: string, array: TaskArray): string {
  return withQuery("/jobs", { filter: narrow(filter, tasksOf(array)), order: "id", arrays: "apart" });
}

interface ArrayRowProps {
  row: Row;
  array: TaskArray;
  filter: string;
  index: number;
  isOpen: boolean;
  toggle: () => void;
}

export function ArrayRow({ row, array, filter, index, isOpen, toggle }: ArrayRowProps) {
  const { job } = row;
  const counts = useCounts(narrow(filter, tasksOf(array)), array.changes);
  const name = `array ${array.first}`;
  const told = counts && [...counts.byState].map(([state, number]) => `${count(number)} ${words(stateWord(state))}`).join(", ");
  const size = array.last - array.first + 1n;
  return (
    <div class="row array" role="row" aria-rowindex={index}>
      <span role="cell"><button type="button" class="turn" aria-expanded={isOpen} aria-label={`Tasks of ${name}`} onClick={toggle} /></span>
      <span role="cell" class="c-job"><Link class="job" href={listOf(filter, array)} title={`${count(size)} tasks`}>{String(array.first)}_*</Link></span>
      <span role="cell" class="c-name" title={job.name}>{job.name}</span>
      <span role="cell" class="c-state">{counts && <Progress counts={counts} name={name} told={told ?? ""} />}</span>
      <span role="cell" class="c-cluster" />
      <span role="cell" class="c-user">{job.user}</span>
      <span role="cell" class="c-project">{job.project}</span>
      <span role="cell" class="c-created"><Time at={job.createTime} /></span>
      <span role="cell" class="c-ran" />
      <span role="cell" class="c-why" title={told}>{told}</span>
    </div>
  );
}

function Progress({ counts, name, told }: { counts: Counts; name: string; told: string }) {
  const total = Number(counts.total);
  const of = (state: JobState): number => Number(counts.byState.get(state) ?? 0n);
  const ended = ENDED.reduce((sum, state) => sum + of(state), 0);
  let from = 0;
  return (
    <span class="progress">
      <svg class="part" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={`Progress of ${name}: ${told}`}>
        <rect class="room" width="100" height="8" />
        {MARKS.map(([state, kind]) => {
          const width = total > 0 ? (of(state) / total) * 100 : 0;
          const x = from;
          from += width;
          return <rect key={kind} class={kind} x={x} width={width} height="8" />;
        })}
      </svg>
      {count(ended)}/{count(total)}
    </span>
  );
}

export function RestRow({ array, filter, index }: { array: TaskArray; filter: string; index: number }) {
  return (
    <div class="row" role="row" aria-rowindex={index}>
      <span role="cell" class="wide"><Link href={listOf(filter, array)}>All tasks of array {String(array.first)}</Link></span>
    </div>
  );
}
