"""All rows: what each measures, its goal, and which function measures it."""

import dataclasses
import typing

from rows import broker, command, kubernetes, machines, million, slurm, watchers


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the benchmarks. One measurement may give several figures, and several rows may share one."""

    name: str
    what: str
    goal: str
    measure: typing.Callable
    figures: tuple


def _row(name, what, goal, measure, *figures):
    return Row(name, what, goal, measure, figures or (name,))


_ALL = (
    _row("submit_unary_1", "SubmitJob, 1 call in flight", "reported", broker.submit_unary_1),
    _row("submit_unary_8", "SubmitJob, 8 calls in flight", "reported", broker.submit_unary_8),
    _row("submit_unary_64", "SubmitJob, 64 calls in flight", "ratio >= 0.6", broker.submit_unary_64),
    _row("submit_stored_64", "the same at a server that commits the rows of each job and does nothing else", "reported",
         broker.submit_stored_64),
    _row("submit_tls", "SubmitJob by TLS with a token, 1 call in flight, p50", "ratio <= 1.15", broker.submit_tls),
    _row("submit_http_8", "SubmitJob over HTTP with a token, 8 calls in flight", "ratio >= 0.5", broker.submit_http_8),
    _row("submit_batch_100", "SubmitJobs of 100 jobs, one call at a time", "ratio >= 0.5", broker.submit_batch_100),
    _row("full_life", "submit, assign, start, end, all stored, simulated agents", ">= 5000 jobs/s", broker.full_life),
    _row("get_queued", "GetJob of a job that waits, during the commits of 8 submits in flight", "p99 <= 5 ms",
         broker.get_queued, "get_queued_p99"),
    _row("assign_latency", "submit to agent at 1,000 jobs/s", "p99 <= 10 ms", broker.assign_latency,
         "assign_latency_p50", "assign_latency_p99"),
    _row("memory_queued", "bytes of each queued job, at 100,000 and 1,000,000", "<= 700 B", million.million,
         "memory_queued_100000", "memory_queued_1000000"),
    _row("memory_queued_different", "bytes of each of 1,000,000 queued jobs of 1,000,000 different requirements",
         "<= 700 B", million.different, "memory_queued_different"),
    _row("refit_1m", "an agent sends another inventory under 1,000,000 queued jobs of 1,000,000 different requirements, "
         "half of which no longer fit: processor time of the core's thread for the message, for the longest of the turns "
         "in which it looks at the jobs again, and in all", "<= 20 ms for the message and for each turn",
         million.refit, "refit_1m_message", "refit_1m_longest", "refit_1m_all"),
    _row("forget_1m", "a cluster that fits 1,000,000 queued jobs of 1,000,000 different requirements is forgotten: processor "
         "time of the core's thread for the longest of the turns in which it looks at the jobs again", "<= 20 ms",
         million.refit, "forget_1m_longest"),
    _row("restart_1m", "kill -9 with 1,000,000 jobs queued to the first dispatch", "<= 10 s", million.million),
    _row("list_page_1m", "pages of ListJobs at 1,000,000 jobs, the slowest filter", "p99 <= 20 ms", million.million),
    _row("log_ingest", "log bytes with one follower; what a line's way adds",
         ">= 300 MB/s or ratio >= 0.5, p50 <= 50 ms", broker.log_ingest, "log_ingest", "log_latency_p50"),
    _row("idle_agents", "2,000 connected idle agents", "<= 100 MB, <= 5 % of a core", broker.idle_agents,
         "idle_agents_memory", "idle_agents_cpu"),
    _row("idle_agents_tls", "2,000 connected idle agents over mutual TLS, each with a connection and a certificate of its own",
         "<= 160 MB", broker.idle_agents_tls, "idle_agents_tls_memory", "idle_agents_tls_cpu"),
    _row("watchers", "5,000 jobs, of which 500 start in a second and, once all of them run, 500 end, and 500 who watch all of "
         "them: GetJob while changes come; the broker's memory; who saw each change, as ListTransitions tells them",
         "p99 <= 20 ms, <= 300 MB, all", watchers.watchers, "watchers_get_p99", "watchers_memory", "watchers_complete"),
    _row("watchers_burst", "the same, but all jobs start at once, and then end at once", "p99 <= 20 ms, <= 300 MB, all",
         watchers.watchers_burst, "watchers_burst_get_p99", "watchers_burst_memory", "watchers_burst_complete"),
    _row("watcher_unread", "a watcher that never reads, over 5,000 jobs", "<= 1 MB", watchers.watchers_unread,
         "watcher_unread_memory"),
    _row("cli_submit", "one `muster run -q -- true`, process start to exit", "<= 12 ms", command.cli_submit),
    _row("machines_1000", "1,000 jobs of `true` on the machines backend", "<= 5 s: 200 jobs/s", machines.machines_1000),
    _row("machines_latency", "one job at a time on an idle machine: submit to program, its end to the client's watch",
         "p50 <= 20 ms each", machines.machines_latency, "machines_start_p50", "machines_end_p50"),
    _row("hosts_1000", "1,000 jobs of `true` on one host over SSH", "<= 15 s", machines.hosts_1000),
    _row("hosts_latency", "one job at a time on an idle host over SSH: submit to program, its end to the client's watch",
         "p50 <= 20 ms each", machines.hosts_latency, "hosts_start_p50", "hosts_end_p50"),
    _row("hosts_files_memory", "a job's 60 MiB of files to three hosts over SSH at once: the agent's memory meanwhile, and then",
         "reported", machines.hosts_files_memory, "hosts_files_memory", "hosts_files_memory_after"),
    _row("machines_memory", "the machines agent with 1,000 jobs, of which 50 run", "<= 50 MB",
         machines.machines_memory),
    _row("machines_output", "1,000,000 lines, 200 MB, written at once and followed to the end; the agent's memory meanwhile",
         ">= 100 MB/s, <= 50 MB", machines.machines_output, "machines_output", "machines_output_memory"),
    _row("machines_round", "a round of the machines' queue with 100,000 runs and 100 hosts: one run has ended; no two runs "
         "ask for the same; the round that fills the hosts", "<= 20 ms each", machines.machines_round, "machines_round",
         "machines_round_distinct", "machines_round_fill"),
    _row("slurm_1000", "1,000 jobs on a real Slurm, and scheduler calls besides sbatch",
         "ratio <= 1.05, <= 0.1 calls/job", slurm.slurm_1000, "slurm_1000", "slurm_calls_per_job"),
    _row("slurm_array_1000", "the same jobs as tasks of one array, by `muster sbatch --array`", "ratio <= 1.05",
         slurm.slurm_array_1000),
    _row("slurm_array_60", "60 jobs of `true` likewise", "ratio <= 1.3", slurm.slurm_array_60),
    _row("slurm_unlike_30", "30 jobs no two of which are alike, by a loop of `muster sbatch`", "ratio <= 1.2",
         slurm.slurm_unlike_30),
    _row("slurm_chain_30", "the submit of each of 30 jobs that wait for the one before, by `muster sbatch -d`", "<= 100 ms",
         slurm.slurm_chain_30),
    _row("slurm_questions_2000", "`muster squeue -r` and `muster sinfo -N -l` with 2,000 jobs that wait or run on a real Slurm, "
         "process start to exit, the fastest of 20", "ratio <= 3", slurm.slurm_questions_2000, "slurm_squeue_2000",
         "slurm_sinfo_2000"),
    _row("slurm_sacct_2000", "`muster sacct` of 2,000 jobs that have ended on a real Slurm, process start to exit, the fastest of "
         "20", "ratio <= 3", slurm.slurm_sacct_2000),
    _row("slurm_1000_over_ssh", "the same over SSH",
         "ratio <= 1.1, <= 0.1 calls/job", slurm.slurm_1000_over_ssh, "slurm_1000_over_ssh",
         "slurm_calls_per_job_over_ssh"),
    _row("kubernetes_500", "500 jobs on a real Kubernetes, and calls to its API server",
         "ratio <= 1.1, <= 4 writes/job, <= 0.2 reads/job", kubernetes.kubernetes_500, "kubernetes_500",
         "kubernetes_writes_per_job", "kubernetes_reads_per_job"),
    _row("kubernetes_launches", "1,000 launches on a cluster of 100,000 pods on 1,000 nodes: processor time of the agent to "
         "judge where they fit", "<= 1,000 ms", kubernetes.kubernetes_launches),
    _row("kubernetes_watch_memory", "agent with 5,000 Jobs of nobody's runs, seen as they are made and listed at its start",
         "<= 100 MB", kubernetes.kubernetes_watch_memory, "kubernetes_watch_memory", "kubernetes_list_memory"),
    _row("kubernetes_runs_memory", "agent with 5,000 runs that wait for a GPU, each with its Job and Secret", "<= 100 MB",
         kubernetes.kubernetes_runs_memory),
    _row("kubernetes_end_latency", "end of a Job as the API server tells it, to the client's watch of the broker",
         "p99 <= 200 ms", kubernetes.kubernetes_end_latency, "kubernetes_end_latency_p50", "kubernetes_end_latency_p99"),
)
ROWS = {row.name: row for row in _ALL}


def figures_of(name):
    """The names of the figures that a row's or a figure's name selects; none if nobody is called so."""
    if name in ROWS:
        return ROWS[name].figures
    return tuple(figure for row in _ALL for figure in row.figures if figure == name)


def measures_for(figures):
    """The functions that measure these figures, each once, in the order of the rows."""
    return list(dict.fromkeys(row.measure for row in _ALL if set(row.figures) & set(figures)))


def all_figures():
    return [figure for row in _ALL for figure in row.figures]


def listing():
    """Names, what and goal, one row a line."""
    head = ("ROW", "WHAT", "GOAL")
    lines = [head] + [(row.name, row.what, row.goal) for row in _ALL]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
