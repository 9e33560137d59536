// The clusters, and one of them: pools, nodes, problems with their remedies, checks, cordon.

import { useState } from "preact/hooks";
import type { MusterError } from "../client/errors.js";
import {
  CheckResult, type Cluster, ClusterKind, ClusterState, type ClusterDetails, NodeCondition, type Node, type Pool,
} from "../client/gen/muster/v1/cluster_pb.js";
import { ClustersService } from "../client/gen/muster/v1/clusters_service_pb.js";
import { broker } from "./broker.js";
import { ago, bytes, count, plural, seconds, span, words } from "./format.js";
import { Link, withQuery } from "./router.js";
import { Dialog, ErrorNote, Fact, Mark, noteError, Scroll, Section, Time, useLoad, useTitle } from "./ui.js";

const EVERY_MS = 15_000;
// Agents are asked for the nodes less often: it costs a call of the scheduler.
const DETAILS_EVERY_MS = 60_000;
const MAX_NODE_ROWS = 500;

const amounts = (gpus: Record<string, number>): string =>
  Object.entries(gpus).filter(([, number]) => number > 0).map(([type, number]) => `${count(number)} ${type || "GPU"}`).join(", ");

function gpusOf(pools: Pool[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const group of pools.flatMap((pool) => pool.nodeGroups)) {
    for (const [type, number] of Object.entries(group.gpus)) sums[type] = (sums[type] ?? 0) + number * group.count;
  }
  return sums;
}

function StateOf({ cluster }: { cluster: Cluster }) {
  if (cluster.state !== ClusterState.CONNECTED) return <Mark kind="bad">disconnected</Mark>;
  if (cluster.schedulerError) return <Mark kind="bad">scheduler silent</Mark>;
  if (cluster.cordon) return <Mark kind="warn">{cluster.cordon.drain ? "draining" : "cordoned"}</Mark>;
  return <Mark kind="good">connected</Mark>;
}

export async function allClusters(): Promise<Cluster[]> {
  const all: Cluster[] = [];
  for (let pageToken = ""; ; ) {
    const page = await broker.ask(ClustersService.method.listClusters, { pageSize: 1000, pageToken });
    all.push(...page.clusters);
    pageToken = page.nextPageToken;
    if (!pageToken) return all;
  }
}

export function ClustersView() {
  useTitle("Clusters");
  const { value, error } = useLoad(allClusters, [], EVERY_MS);
  return (
    <main>
      <h1>Clusters</h1>
      <ErrorNote error={error} />
      {value?.length === 0 && <p class="empty">No cluster has connected yet. An agent brings one: see muster-agent --help.</p>}
      {value && value.length > 0 && (
        <Scroll label="Clusters">
          <table>
            <thead><tr>{["Name", "Kind", "State", "Heard", "Runs", "Pools", "GPUs", "Problems", "Estimates"].map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
            <tbody>{value.map((cluster) => {
              const pools = cluster.inventory?.pools ?? [];
              const issues = cluster.inventory?.issues.length ?? 0;
              return (
                <tr key={cluster.name}>
                  <th scope="row"><Link href={`/clusters/${encodeURIComponent(cluster.name)}`}>{cluster.name}</Link></th>
                  <td>{words(ClusterKind[cluster.kind] ?? "")}</td>
                  <td><StateOf cluster={cluster} /></td>
                  <td>{ago(cluster.lastSeen)}</td>
                  <td>{count(cluster.activeRuns)} of {count(cluster.maxActiveRuns)}</td>
                  <td>{pools.filter((pool) => pool.available).length} of {pools.length} open</td>
                  <td>{amounts(gpusOf(pools))}</td>
                  <td>{issues > 0 ? <Mark kind="warn">{plural(issues, "problem")}</Mark> : ""}</td>
                  <td>{cluster.estimateErrors && `off by ${span(seconds(cluster.estimateErrors.meanError))} of ${span(seconds(cluster.estimateErrors.meanWait))}`}</td>
                </tr>
              );
            })}</tbody>
          </table>
        </Scroll>
      )}
    </main>
  );
}

export function ClusterView({ name }: { name: string }) {
  useTitle(`Cluster ${name}`);
  const known = useLoad(() => broker.ask(ClustersService.method.getCluster, { name }).then((answer) => answer.cluster), [name], EVERY_MS);
  const details = useLoad(() => broker.question(ClustersService.method.describeCluster, { name }).then((answer) => answer.details), [name], DETAILS_EVERY_MS);
  const cluster = known.value;
  if (!cluster) return <main><h1>Cluster {name}</h1>{known.error ? <ErrorNote error={known.error} /> : <p class="empty">Loading</p>}</main>;
  const errors = cluster.estimateErrors;
  return (
    <main>
      <div class="head">
        <h1>Cluster {name}</h1>
        <StateOf cluster={cluster} />
        <Cordon cluster={cluster} reload={known.reload} />
      </div>
      {cluster.schedulerError && <div class="note bad"><p>The scheduler does not answer: {cluster.schedulerError}</p></div>}
      {cluster.cordon && (
        <div class="note warn"><p>{cluster.cordon.user} {cluster.cordon.drain ? "drains" : "has cordoned"} this cluster since <Time at={cluster.cordon.createTime} />
          {cluster.cordon.reason && `: ${cluster.cordon.reason}`}</p></div>
      )}
      {(cluster.inventory?.issues ?? []).map((issue, at) => (
        <div class="note warn" key={at}><p><strong>{issue.message}</strong></p>{issue.remedy && <p class="remedy">{issue.remedy}</p>}
          {issue.since && <p class="quiet">since <Time at={issue.since} /></p>}</div>
      ))}
      <dl class="facts">
        <Fact name="Kind">{words(ClusterKind[cluster.kind] ?? "")}</Fact>
        <Fact name="Scheduler">{cluster.inventory?.schedulerVersion}</Fact>
        <Fact name="Agent">{cluster.agentVersion}</Fact>
        <Fact name="Agent heard">{ago(cluster.lastSeen)}</Fact>
        <Fact name="Scheduler answered">{cluster.schedulerObservedAt && ago(cluster.schedulerObservedAt)}</Fact>
        <Fact name="Runs">{count(cluster.activeRuns)} of {count(cluster.maxActiveRuns)}</Fact>
        <Fact name="Estimated starts">{errors && `${count(errors.runs)} runs, off by ${span(seconds(errors.meanError))} with a wait of ${span(seconds(errors.meanWait))}`}</Fact>
        <Fact name="Jobs">
          <Link href={withQuery("/jobs", { filter: `cluster = ${JSON.stringify(name)} AND state = PENDING` })}>waiting there</Link>{", "}
          <Link href={withQuery("/jobs", { filter: `cluster = ${JSON.stringify(name)} AND state = RUNNING` })}>running</Link>
        </Fact>
      </dl>
      <Pools pools={cluster.inventory?.pools ?? []} details={details.value} />
      {details.error && <ErrorNote error={details.error} />}
      {details.value && details.value.nodes.length > 0 && <Nodes nodes={details.value.nodes} />}
      <Checks name={name} />
    </main>
  );
}

function Pools({ pools, details }: { pools: Pool[]; details: ClusterDetails | undefined }) {
  return (
    <Section title="Pools">
      <Scroll label="Pools">
        <table>
          <thead><tr>{["Pool", "State", "Nodes", "Cores free", "GPUs free", "Waiting", "Running", "Time limit"].map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
          <tbody>{pools.map((pool) => {
            const load = details?.pools.find((one) => one.pool === pool.name);
            return (
              <tr key={pool.name}>
                <th scope="row">{pool.name}{pool.isDefault ? " (default)" : ""}</th>
                <td>{pool.available ? <Mark kind="good">{pool.state || "open"}</Mark> : <Mark kind="bad">{pool.state || "closed"}</Mark>}</td>
                <td>{count(pool.nodeGroups.reduce((sum, group) => sum + group.count, 0))}</td>
                <td>{load && `${count(load.freeCpus)} of ${count(load.cpus)}`}</td>
                <td>{load ? freeGpus(load.freeGpus, load.gpus) : amounts(gpusOf([pool]))}</td>
                <td>{load && count(load.waitingJobs)}</td>
                <td>{load && count(load.runningJobs)}</td>
                <td>{pool.maxTimeLimit ? span(seconds(pool.maxTimeLimit)) : "none"}</td>
              </tr>
            );
          })}</tbody>
        </table>
      </Scroll>
    </Section>
  );
}

function freeGpus(free: Record<string, number>, all: Record<string, number>): string {
  return Object.entries(all).map(([type, number]) => `${count(free[type] ?? 0)} of ${count(number)} ${type}`).join(", ");
}

const sum = (gpus: Record<string, number>): number => Object.values(gpus).reduce((total, number) => total + number, 0);

/** The part of a node that jobs have, of GPUs if it has any, and else of cores. */
function usedPart(node: Node): number {
  const gpus = sum(node.gpus);
  if (gpus > 0) return sum(node.usedGpus) / gpus;
  return node.cpus > 0 ? node.usedCpus / node.cpus : 0;
}

function isDown(node: Node): boolean {
  if (node.condition !== NodeCondition.UNSPECIFIED) return node.condition !== NodeCondition.READY;
  return /down|drain|fail|maint|unk|no_respond|\*/i.test(node.state);
}

function Nodes({ nodes }: { nodes: Node[] }) {
  const types = [...new Set(nodes.map((node) => Object.keys(node.gpus).sort().join("+")))].sort();
  return (
    <Section title={`Nodes (${count(nodes.length)})`} side={<span class="legend"><i class="node free" /> free <i class="node half" /> in part <i class="node full" /> full <i class="node down" /> out</span>}>
      {types.map((type) => {
        const group = nodes.filter((node) => Object.keys(node.gpus).sort().join("+") === type);
        const out = group.filter(isDown).length;
        return (
          <div key={type} class="map-row">
            <span class="map-name">{type || "no GPUs"}: {plural(group.length, "node")}{out > 0 ? `, ${count(out)} out` : ""}</span>
            <span class="map" aria-hidden="true">{group.map((node) => {
              const part = usedPart(node);
              const kind = isDown(node) ? "down" : part === 0 ? "free" : part < 1 ? "half" : "full";
              return <i key={node.name} class={`node ${kind}`} title={`${node.name}: ${node.state}, ${Math.round(part * 100)} % used`} />;
            })}</span>
          </div>
        );
      })}
      <Scroll label="Nodes">
        <table>
          <thead><tr>{["Node", "State", "Cores used", "Memory used", "GPUs used", "Pools", "Reason"].map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
          <tbody>{nodes.slice(0, MAX_NODE_ROWS).map((node) => (
            <tr key={node.name}>
              <th scope="row">{node.name}</th>
              <td><Mark kind={isDown(node) ? "bad" : "good"}>{node.state}</Mark></td>
              <td>{count(node.usedCpus)} of {count(node.cpus)}</td>
              <td>{node.memoryBytes > 0n && `${bytes(node.usedMemoryBytes)} of ${bytes(node.memoryBytes)}`}</td>
              <td>{Object.entries(node.gpus).map(([type, number]) => `${count(node.usedGpus[type] ?? 0)} of ${count(number)} ${type}`).join(", ")}</td>
              <td>{node.pools.join(", ")}</td>
              <td class="wrap">{node.reason}</td>
            </tr>
          ))}</tbody>
        </table>
      </Scroll>
      {nodes.length > MAX_NODE_ROWS && <p class="quiet">The first {count(MAX_NODE_ROWS)} nodes. "muster nodes" lists all.</p>}
    </Section>
  );
}

const RESULTS = { [CheckResult.UNSPECIFIED]: "none", [CheckResult.OK]: "good", [CheckResult.WARN]: "warn", [CheckResult.FAIL]: "bad", [CheckResult.SKIPPED]: "none" } as const;

function Checks({ name }: { name: string }) {
  const [round, setRound] = useState(0);
  return (
    <Section title="Checks" side={<button type="button" onClick={() => setRound(round + 1)}>{round === 0 ? "Check the cluster" : "Check again"}</button>}>
      {round === 0 ? <p class="quiet">The cluster's agent checks everything that jobs need there.</p> : <CheckRows key={round} name={name} />}
    </Section>
  );
}

function CheckRows({ name }: { name: string }) {
  const { value, error } = useLoad(() => broker.question(ClustersService.method.checkCluster, { name }).then((answer) => answer.checks), [name]);
  if (error) return <ErrorNote error={error} />;
  if (!value) return <p class="empty" role="status">The agent is checking</p>;
  return (
    <Scroll label="Checks">
      <table>
        <thead><tr>{["Result", "Checked", "Seen"].map((one) => <th scope="col" key={one}>{one}</th>)}</tr></thead>
        <tbody>{value.map((check, at) => (
          <tr key={at}>
            <td><Mark kind={RESULTS[check.result] ?? "none"}>{words(CheckResult[check.result] ?? "")}</Mark></td>
            <th scope="row">{check.subject}</th>
            <td class="wrap">{check.seen}{check.remedy && <div class="remedy">{check.remedy}</div>}</td>
          </tr>
        ))}</tbody>
      </table>
    </Scroll>
  );
}

function Cordon({ cluster, reload }: { cluster: Cluster; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<MusterError | undefined>();
  const [reason, setReason] = useState("");
  const [drain, setDrain] = useState(false);
  const { name } = cluster;
  const settle = (done: Promise<unknown>): void => {
    setError(undefined);
    done.then(() => {
      setOpen(false);
      reload();
    }, (thrown: unknown) => setError(noteError(thrown)));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    settle(broker.ask(ClustersService.method.cordonCluster, { name, reason, drain }));
  };
  return (
    <>
      <span class="actions" role="group" aria-label="Change the cluster">
        {cluster.cordon && <button type="button" onClick={() => settle(broker.ask(ClustersService.method.uncordonCluster, { name }))}>Uncordon</button>}
        <button type="button" onClick={() => setOpen(true)}>{cluster.cordon ? "Cordon anew" : "Cordon"}</button>
      </span>
      {!isOpen && <ErrorNote error={error} />}
      {isOpen && (
        <Dialog title={`Cordon ${name}`} close={() => setOpen(false)}>
          <form onSubmit={submit}>
            <p>The cluster takes no new runs until it is uncordoned. What runs there goes on.</p>
            <label>Reason <input value={reason} maxLength={256} onInput={(event) => setReason(event.currentTarget.value)} /></label>
            <label class="check"><input type="checkbox" checked={drain} onChange={(event) => setDrain(event.currentTarget.checked)} /> Drain: withdraw runs that have not begun, so that their jobs start elsewhere</label>
            <ErrorNote error={error} />
            <div class="buttons">
              <button type="submit" class="primary">Cordon</button>
              <button type="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>Do nothing</button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
