// What projects, users and clusters have used, and the shares of projects.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ProjectsService, type Project } from "../client/gen/muster/v1/projects_service_pb.js";
import { type Usage, UsageGrouping, UsageService } from "../client/gen/muster/v1/usage_service_pb.js";
import { broker } from "./broker.js";
import { count, hours, percent, plural, seconds, toMs } from "./format.js";
import { go, type Place, withQuery } from "./router.js";
import { ErrorNote, Scroll, Section, useLoad, useTitle } from "./ui.js";

const DAY_MS = 86_400_000;
const BY_PROJECT: [string, string, UsageGrouping] = ["project", "project", UsageGrouping.PROJECT];
const GROUPS: (typeof BY_PROJECT)[] = [
  BY_PROJECT, ["user", "user", UsageGrouping.USER], ["cluster", "cluster", UsageGrouping.CLUSTER],
];
const SPANS = [7, 30, 90, 365];

export async function allProjects(): Promise<Project[]> {
  const all: Project[] = [];
  for (let pageToken = ""; ; ) {
    const page = await broker.ask(ProjectsService.method.listProjects, { pageSize: 1000, pageToken });
    all.push(...page.projects);
    pageToken = page.nextPageToken;
    if (!pageToken) return all;
  }
}

export function UseView({ place }: { place: Place }) {
  useTitle("Use");
  const [by, , grouping] = GROUPS.find(([name]) => name === place.query.get("by")) ?? BY_PROJECT;
  const days = SPANS.find((span) => String(span) === place.query.get("days")) ?? 30;
  const from = (): { startTime: ReturnType<typeof timestampFromMs> } => ({ startTime: timestampFromMs(Date.now() - (days - 1) * DAY_MS) });
  const rows = useLoad(() => broker.ask(UsageService.method.getUsage, { ...from(), groupBy: [grouping] }), [by, days]);
  const daily = useLoad(() => broker.ask(UsageService.method.getUsage, { ...from(), groupBy: [UsageGrouping.DAY] }), [days]);
  const total = rows.value?.total;
  const at = (changes: Record<string, string>): string => withQuery("/use", { by: by === "project" ? "" : by, days: days === 30 ? "" : String(days), ...changes });
  return (
    <main>
      <div class="head">
        <h1>Use</h1>
        <label>By <select aria-label="By" value={by} onChange={(event) => go(at({ by: event.currentTarget.value }))}>
          {GROUPS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
        </select></label>
        <label>In the last <select aria-label="In the last" value={String(days)} onChange={(event) => go(at({ days: event.currentTarget.value }))}>
          {SPANS.map((span) => <option key={span} value={String(span)}>{span} days</option>)}
        </select></label>
        {total && <span class="quiet">{plural(total.runs, "run")}, {hours(total.gpuTime)} GPU hours, {hours(total.coreTime)} core hours</span>}
      </div>
      <ErrorNote error={rows.error} />
      {daily.value && <Days rows={daily.value.rows} days={days} />}
      {rows.value && (rows.value.rows.length === 0 ? <p class="empty">No run has ended in this time.</p> : <Rows rows={rows.value.rows} by={by} />)}
      <Shares />
    </main>
  );
}

function Rows({ rows, by }: { rows: Usage[]; by: string }) {
  const hasGpus = rows.some((row) => seconds(row.gpuTime) > 0);
  const measure = (row: Usage): number => seconds(hasGpus ? row.gpuTime : row.coreTime);
  const most = Math.max(...rows.map(measure), 1e-9);
  return (
    <Section title={`By ${by}`}>
      <Scroll label={`Use by ${by}`}>
        <table>
          <thead><tr><th scope="col">{by}</th><th scope="col" class="number">GPU hours</th><th scope="col" class="number">Core hours</th>
            <th scope="col" class="number">Run hours</th><th scope="col" class="number">Runs</th><th scope="col"><span class="unseen">Part</span></th><th scope="col">GPU types</th></tr></thead>
          <tbody>{rows.map((row) => {
            const name = row.project || row.user || row.cluster;
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{hours(row.gpuTime)}</td>
                <td class="number">{hours(row.coreTime)}</td>
                <td class="number">{hours(row.runTime)}</td>
                <td class="number">{count(row.runs)}</td>
                <td class="bar-cell"><Bar part={measure(row) / most} /></td>
                <td>{Object.entries(row.gpuTimeByType).map(([type, time]) => `${type || "any"} ${hours(time)}`).join(", ")}</td>
              </tr>
            );
          })}</tbody>
        </table>
      </Scroll>
    </Section>
  );
}

function Bar({ part, mark }: { part: number; mark?: number }) {
  return (
    <svg class="part" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="room" width="100" height="8" />
      <rect class="filled" width={Math.min(part, 1) * 100} height="8" />
      {mark !== undefined && <rect class="mark-line" x={Math.min(mark * 100, 99)} width="1" height="8" />}
    </svg>
  );
}

function Days({ rows, days }: { rows: Usage[]; days: number }) {
  const hasGpus = rows.some((row) => seconds(row.gpuTime) > 0);
  const what = hasGpus ? "GPU hours" : "core hours";
  const today = Math.floor(Date.now() / DAY_MS);
  const byDay = new Map(rows.map((row) => [Math.floor((toMs(row.day) ?? 0) / DAY_MS), hasGpus ? row.gpuTime : row.coreTime]));
  const most = Math.max(...rows.map((row) => seconds(hasGpus ? row.gpuTime : row.coreTime)), 1e-9);
  const name = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
  const all = Array.from({ length: days }, (_, number) => today - days + 1 + number);
  return (
    <figure class="days">
      <svg viewBox={`0 0 ${days * 10} 100`} preserveAspectRatio="none" role="img" aria-label={`${what} by day, ${hours(byDay.get(today))} today`}>
        {all.map((day, number) => {
          const height = (seconds(byDay.get(day)) / most) * 98;
          return <rect key={day} x={number * 10 + 1} width="8" y={100 - height} height={height}><title>{`${name(day)}: ${hours(byDay.get(day))} ${what}`}</title></rect>;
        })}
      </svg>
      <figcaption><span>{name(all[0] ?? today)}</span><span>{what} by day (UTC)</span><span>{name(today)}</span></figcaption>
    </figure>
  );
}

function Shares() {
  const { value, error } = useLoad(allProjects, []);
  if (error) return <ErrorNote error={error} />;
  if (!value || value.length === 0) return null;
  return (
    <Section title="Shares of projects">
      <Scroll label="Shares of projects">
        <table>
          <thead><tr><th scope="col">Project</th><th scope="col" class="number">Weight</th><th scope="col" class="number">Fair share</th>
            <th scope="col" class="number">Recent part</th><th scope="col"><span class="unseen">Part</span></th><th scope="col" class="number">Waiting</th>
            <th scope="col" class="number">Runs</th><th scope="col" class="number">GPUs</th></tr></thead>
          <tbody>{value.map((project) => {
            const { use, quota } = project;
            const runs = quota?.maxActiveRuns;
            const gpus = quota?.maxGpuMillis[""];
            return (
              <tr key={project.name}>
                <th scope="row">{project.name}{project.parent && <span class="quiet"> in {project.parent}</span>}</th>
                <td class="number">{count(project.weight)}</td>
                <td class="number">{percent(use?.fairShare ?? 0)}</td>
                <td class="number">{percent(use?.dominantShare ?? 0)}</td>
                <td class="bar-cell"><Bar part={use?.dominantShare ?? 0} mark={use?.fairShare} /></td>
                <td class="number">{count(use?.queuedJobs ?? 0)}{quota?.maxQueuedJobs !== undefined && ` of ${count(quota.maxQueuedJobs)}`}</td>
                <td class="number">{count(use?.activeRuns ?? 0)}{runs !== undefined && ` of ${count(runs)}`}</td>
                <td class="number">{Number(use?.gpuMillis[""] ?? 0n) / 1000}{gpus !== undefined && ` of ${Number(gpus) / 1000}`}</td>
              </tr>
            );
          })}</tbody>
        </table>
      </Scroll>
    </Section>
  );
}
