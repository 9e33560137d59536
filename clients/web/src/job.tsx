// One job: why it waits or failed first, then its runs, its history and its spec.

import { create } from "@bufbuild/protobuf";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import type { Failure, Job, Run, Transition } from "../client/gen/muster/v1/job_pb.js";
import { EvidenceSource, FailureClass, JobState, RunState, TransitionKind } from "../client/gen/muster/v1/job_pb.js";
import { FailureCode, type StateReason, StateReasonCode } from "../client/gen/muster/v1/facts_pb.js";
import { WatchJobsRequestSchema } from "../client/gen/muster/v1/jobs_service_pb.js";
import { hasEnded } from "../client/handle.js";
import { broker, isHeard } from "./broker.js";
import { Changes, type Choice, rerunOne } from "./changes.js";
import { formsOf } from "./copy.js";
import { ago, between, bytes, count, plural, seconds, span, words } from "./format.js";
import { Link } from "./router.js";
import { CopyButton, ErrorNote, Fact, noteError, Scroll, Section, State, Time, useTick, useTitle } from "./ui.js";

// Changes that come together are read together.
const READ_PAUSE_MS = 200;
// The feed leaves out why a queued job waits.
const QUEUED_PAUSE_MS = 10_000;

// Times of what runs are drawn anew.
const TICK_MS = 1000;

interface Known {
  job: Job | undefined;
  transitions: Transition[];
  error: MusterError | undefined;
}

/** A job as it is now, with its history. */
function useJob(id: number): Known & { reload: () => void } {
  const [known, setKnown] = useState<Known>({ job: undefined, transitions: [], error: undefined });
  const reload = useRef(() => {});
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isQueued = false;
    setKnown({ job: undefined, transitions: [], error: undefined });
    let latest = 0;
    const read = async (): Promise<void> => {
      timer = undefined;
      const number = ++latest;
      try {
        const job = await broker.get(id);
        const transitions: Transition[] = [];
        for await (const one of broker.transitions(id)) transitions.push(one);
        isHeard();
        isQueued = job.state === JobState.QUEUED;
        if (!stop.signal.aborted && number === latest) setKnown({ job, transitions, error: undefined });
      } catch (thrown) {
        if (!stop.signal.aborted) setKnown((old) => ({ ...old, error: noteError(thrown) }));
      }
    };
    reload.current = () => {
      timer ??= setTimeout(() => void read(), READ_PAUSE_MS);
    };
    void read().then(async () => {
      const request = create(WatchJobsRequestSchema, { jobIds: [BigInt(id)], untilTerminal: true, start: { case: "now", value: {} } });
      // The first sign of life: nothing later is missed, and something between may have been.
      const signs = broker.changes(request, { signal: stop.signal });
      while (!(await signs.next()).done) {
        isHeard();
        reload.current();
      }
    }).catch(() => {});
    const poll = setInterval(() => isQueued && document.visibilityState === "visible" && reload.current(), QUEUED_PAUSE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
      clearInterval(poll);
    };
  }, [id]);
  return { ...known, reload: () => reload.current() };
}

export function JobView({ id }: { id: number }) {
  useTick(TICK_MS);
  const { job, transitions, error, reload } = useJob(id);
  useTitle(job ? `${job.name} (${id})` : `Job ${id}`);
  if (!job) return <main><h1>Job {id}</h1>{error ? <ErrorNote error={error} /> : <p class="empty">Loading</p>}</main>;
  return (
    <main>
      <div class="head">
        <h1>Job {id} <span class="name">{job.name}</span></h1>
        <State state={job.state} held={job.held && !hasEnded(job)} />
        <Actions job={job} reload={reload} />
      </div>
      <ErrorNote error={error} />
      {job.state === JobState.FAILED || (job.failure && !hasEnded(job)) ? <FailureNote failure={job.failure} /> : null}
      {job.stateReason && <ReasonNote reason={job.stateReason} />}
      <Facts job={job} />
      {job.runs.length > 0 && <Runs job={job} />}
      <History transitions={transitions} />
      <Spec job={job} />
    </main>
  );
}

function Actions({ job, reload }: { job: Job; reload: () => void }) {
  const [choice, setChoice] = useState<Choice | undefined>();
  const [error, setError] = useState<MusterError | undefined>();
  const open = (verb: Choice["verb"]) => (): void => setChoice({ verb, ids: [job.id] });
  const isWaiting = job.state === JobState.QUEUED || job.state === JobState.PENDING;
  return (
    <>
      <span class="actions" role="group" aria-label="Change the job">
        {job.runs.length > 0 && <Link class="button" href={`/jobs/${job.id}/log`}>Log</Link>}
        {!hasEnded(job) && <button type="button" onClick={open("Cancel")}>Cancel</button>}
        {isWaiting && !job.held && <button type="button" onClick={open("Hold")}>Hold</button>}
        {!hasEnded(job) && job.held && <button type="button" onClick={open("Release")}>Release</button>}
        {hasEnded(job) && <button type="button" onClick={() => void rerunOne(job.id).catch((thrown: unknown) => setError(noteError(thrown)))}>Rerun</button>}
      </span>
      <ErrorNote error={error} />
      {choice && <Changes choice={choice} close={() => { setChoice(undefined); reload(); }} done={reload} />}
    </>
  );
}

function FailureNote({ failure }: { failure: Failure | undefined }) {
  if (!failure) return null;
  return (
    <div class="note bad">
      <p><strong>{failure.message}</strong></p>
      {failure.quotes.map((quote, at) => (
        <figure key={at}><blockquote>{quote.text}</blockquote><figcaption>{quote.source}</figcaption></figure>
      ))}
      {failure.remedy && <p class="remedy">{failure.remedy}</p>}
      <p class="quiet">{[words(FailureClass[failure.failureClass] ?? ""), FailureCode[failure.code], failure.node && `node ${failure.node}`,
        failure.rank !== undefined && `rank ${failure.rank}`].filter(Boolean).join(" · ")}</p>
    </div>
  );
}

function ReasonNote({ reason }: { reason: StateReason }) {
  return (
    <div class="note warn">
      <p><strong>{reason.message}</strong></p>
      {reason.remedy && <p class="remedy">{reason.remedy}</p>}
      {reason.detail && !reason.message.includes(reason.detail) && <figure><blockquote>{reason.detail}</blockquote></figure>}
      <p class="quiet">{[StateReasonCode[reason.code], reason.since && `for ${between(reason.since, undefined)}`].filter(Boolean).join(" · ")}
        {reason.until && <> · until <Time at={reason.until} /></>}</p>
      {reason.lastKnown && <p>Before that: {reason.lastKnown.message}</p>}
      {reason.clusters.length > 0 && (
        <Scroll label="What each cluster says">
          <table>
            <thead><tr><th scope="col">Cluster</th><th scope="col">Why not there</th><th scope="col">Expected start</th></tr></thead>
            <tbody>{reason.clusters.map((one) => (
              <tr key={one.cluster}><th scope="row"><Link href={`/clusters/${encodeURIComponent(one.cluster)}`}>{one.cluster}</Link></th>
                <td class="wrap">{one.message}{one.remedy && <div class="remedy">{one.remedy}</div>}</td><td><Time at={one.startEstimate?.time} /></td></tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {reason.unlistedClusters > 0 && <p class="quiet">and {plural(reason.unlistedClusters, "more cluster")}</p>}
    </div>
  );
}

function Facts({ job }: { job: Job }) {
  const labels = Object.entries(job.labels);
  const run = job.runs[job.runs.length - 1];
  return (
    <dl class="facts">
      <Fact name="User">{job.user}</Fact>
      <Fact name="Project">{job.project}</Fact>
      <Fact name="Cluster">{job.cluster && <Link href={`/clusters/${encodeURIComponent(job.cluster)}`}>{job.cluster}</Link>}</Fact>
      <Fact name="Priority">{job.priority !== 0 && job.priority}</Fact>
      <Fact name="Created"><Time at={job.createTime} /></Fact>
      <Fact name="Waited">{between(job.createTime, job.startTime ?? job.endTime)}</Fact>
      <Fact name="Started">{job.startTime && <Time at={job.startTime} />}</Fact>
      <Fact name="Ran">{job.startTime && between(job.startTime, job.endTime)}</Fact>
      <Fact name="Ended">{job.endTime && <Time at={job.endTime} />}</Fact>
      <Fact name="Exit">{job.exit && (job.exit.signal ? `signal ${job.exit.signal}` : `code ${job.exit.code}`)}</Fact>
      <Fact name="Expected start">{!job.startTime && run?.estimatedStartTime && <Time at={run.estimatedStartTime} />}</Fact>
      <Fact name="Rerun of">{job.rerunOf ? <Link href={`/jobs/${job.rerunOf}`}>job {String(job.rerunOf)}</Link> : ""}</Fact>
      <Fact name="Labels">{labels.length > 0 && labels.map(([key, value]) => <code key={key} class="label">{key}={value}</code>)}</Fact>
    </dl>
  );
}

function Runs({ job }: { job: Job }) {
  return (
    <Section title={job.runs.length === 1 ? "Run" : `Runs (${count(job.runs.length)})`}>
      <Scroll label="Runs">
        <table>
          <thead><tr>{["Run", "State", "Cluster", "Known there as", "Nodes", "Assigned", "Started", "Ran", "Exit", "Used", ""].map((name) => (
            <th scope="col" key={name}>{name || <span class="unseen">Log</span>}</th>))}</tr></thead>
          <tbody>{[...job.runs].reverse().map((run) => <RunRow key={run.number} job={job} run={run} />)}</tbody>
        </table>
      </Scroll>
    </Section>
  );
}

function RunRow({ job, run }: { job: Job; run: Run }) {
  const state = RunState[run.state] ?? String(run.state);
  const nodes = run.nodes.slice(0, 3).join(", ") + (run.nodes.length > 3 ? ` and ${count(run.nodes.length - 3)} more` : "");
  const used = run.usage && [`${span(seconds(run.usage.userCpuTime) + seconds(run.usage.systemCpuTime))} of cores`,
    run.usage.maxRssBytes > 0n && `${bytes(run.usage.maxRssBytes)} at most`].filter(Boolean).join(", ");
  return (
    <>
      <tr>
        <th scope="row">{run.number}</th>
        <td><span class={`state ${runClass(run.state)}`}>{words(state)}</span></td>
        <td>{run.cluster}</td>
        <td>{run.externalId}</td>
        <td title={run.nodes.join(" ").slice(0, 2000)}>{nodes}</td>
        <td><Time at={run.assignTime} /></td>
        <td><Time at={run.startTime} /></td>
        <td>{between(run.startTime, run.endTime)}</td>
        <td>{run.exit && (run.exit.signal ? `signal ${run.exit.signal}` : run.exit.code)}</td>
        <td>{used}</td>
        <td><Link href={`/jobs/${job.id}/log?run=${run.number}`}>Log</Link></td>
      </tr>
      {run.failure && run.number !== job.runs.length && <tr><td /><td colSpan={10} class="wrap">{run.failure.message}</td></tr>}
      {run.progress && <tr><td /><td colSpan={10} class="wrap">{run.progress.message}{" "}
        {Object.entries(run.progress.numbers).map(([name, value]) => <code key={name} class="label">{name}={value}</code>)}
        <span class="quiet">{ago(run.progress.time)}</span></td></tr>}
    </>
  );
}

function runClass(state: RunState): string {
  if (state === RunState.SUCCEEDED || state === RunState.RUNNING || state === RunState.SUSPENDED) return words(RunState[state]);
  if (state === RunState.FAILED || state === RunState.LOST) return "failed";
  return state === RunState.CANCELED ? "canceled" : state === RunState.FINISHING ? "running" : "pending";
}

/** The words for a step. */
function stepOf(one: Transition): string {
  if (one.kind !== TransitionKind.UNSPECIFIED) return words(TransitionKind[one.kind] ?? String(one.kind));
  const state = RunState[one.runState] ?? String(one.runState);
  return one.run > 0 ? `run ${one.run} ${words(state)}` : words(JobState[one.jobState] ?? String(one.jobState));
}

function History({ transitions }: { transitions: Transition[] }) {
  return (
    <Section title="History">
      <Scroll label="History">
        <table>
          <thead><tr>{["Time", "Step", "Job", "Evidence", "Seen in"].map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
          <tbody>{transitions.map((one) => (
            <tr key={String(one.jobSequence)}>
              <td><Time at={one.time} /></td>
              <td>{stepOf(one)}</td>
              <td><State state={one.jobState} /></td>
              <td class="wrap">{[one.evidence?.detail, !one.evidence?.detail.includes(` by ${one.evidence.requestedBy}`) && one.evidence?.requestedBy && `by ${one.evidence.requestedBy}`,
                one.evidence?.requestReason && `"${one.evidence.requestReason}"`].filter(Boolean).join(", ")}</td>
              <td>{words(EvidenceSource[one.evidence?.source ?? 0] ?? "")}</td>
            </tr>
          ))}</tbody>
        </table>
      </Scroll>
    </Section>
  );
}

function Spec({ job }: { job: Job }) {
  const { spec } = job;
  // A job is read anew with each change; its spec never changes.
  const forms = useMemo(() => spec && formsOf(spec), [job.id, spec === undefined]);
  if (!forms) return null;
  return (
    <Section title="Spec" side={(
      <span class="actions">
        <CopyButton label="Copy as YAML" text={() => forms.yaml} />
        <CopyButton label="Copy as JSON" text={() => forms.json} />
        <CopyButton label="Copy as CLI" text={() => forms.command} />
        <CopyButton label="Copy as Python" text={() => forms.python} />
      </span>
    )}>
      <pre class="spec" tabIndex={0}>{forms.yaml}</pre>
    </Section>
  );
}
