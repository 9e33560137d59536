#include "clients/cli/views.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "clients/cli/text.h"
#include "contract/counted.h"
#include "contract/scheduler_calls.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// A reason in a row; the page and the wide table have all of it.
constexpr size_t kMaxReasonWidth = 60;

// With fewer runs the figure would show the agent's start.
constexpr uint64_t kRunsThatTell = 20;

// The agent's counts since its start.
struct Calls {
  uint64_t calls = 0;
  uint64_t runs = 0;  // that it launched; 0: none, or it does not tell
};
Calls CallsOf(const v1::Cluster& cluster) {
  Calls counts;
  for (const auto& [name, count] : cluster.scheduler_calls())
    (name == contract::kLaunchedRuns ? counts.runs : counts.calls) += count;
  return counts;
}

std::string OrDash(std::string text) { return text.empty() ? "-" : text; }

// Returns the time that the command has run or ran. A job that waits for its next run has none.
std::string RunTime(const v1::Job& job, absl::Time now) {
  const bool waits = job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_PENDING;
  if (waits || !job.has_start_time()) return "-";
  const absl::Time end = job.has_end_time() ? ToTime(job.end_time()) : now;
  return contract::FormatDuration(std::max(absl::ZeroDuration(), end - ToTime(job.start_time())));
}

// Returns the reason that it waits, or its end. A job that waits for its next run has the failure
// of its last one, too.
std::string ReasonText(const v1::Job& job) {
  const bool waits = !contract::IsTerminal(job.state()) && !job.state_reason().message().empty();
  if (!waits && !job.failure().message().empty()) return OneLine(job.failure().message());
  const std::string reason = OneLine(job.state_reason().message());
  // In a row the remedy is worth more than that it starts once it is released.
  const std::string remedy = OneLine(job.state_reason().remedy());
  if (job.held() && SaysHeld(job.state_reason()) && !remedy.empty()) return "held: " + remedy;
  if (!reason.empty()) return reason;
  return job.state() == v1::JOB_STATE_FAILED ? ExitText(job) : "";
}

std::string LabelText(const v1::Job& job) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : job.labels()) {
    pairs.push_back(fmt::format("{}={}", Harmless(key), Harmless(value)));
  }
  std::sort(pairs.begin(), pairs.end());
  return fmt::format("{}", fmt::join(pairs, ","));
}

uint64_t NodesOf(const v1::Pool& pool) {
  uint64_t nodes = 0;
  for (const v1::NodeGroup& group : pool.node_groups()) nodes += group.count();
  return nodes;
}

// Pools overlap on Slurm: the largest default one stands for the cluster, or the only one.
const v1::Pool* MainPool(const v1::Inventory& inventory) {
  if (inventory.pools_size() == 1) return &inventory.pools(0);
  const v1::Pool* main = nullptr;
  for (const v1::Pool& pool : inventory.pools()) {
    if (pool.is_default() && (main == nullptr || NodesOf(pool) > NodesOf(*main))) main = &pool;
  }
  return main;
}

// Sums the resources of a cluster's nodes, in its first words.
std::string Holdings(const v1::Cluster& cluster) {
  uint64_t nodes = 0;
  uint64_t cpus = 0;
  std::map<std::string, uint64_t> gpus;
  if (const v1::Pool* pool = MainPool(cluster.inventory())) {
    if (AreNodesUnknown(*pool, cluster.kind())) return "nodes not known";
    nodes = NodesOf(*pool);
    for (const v1::NodeGroup& group : pool->node_groups()) {
      cpus += uint64_t{group.count()} * group.cpus();
      for (const auto& [type, count] : group.gpus()) gpus[type] += uint64_t{group.count()} * count;
    }
  }
  std::string text = fmt::format("{}, {} cpus", contract::Counted(nodes, "node"), cpus);
  for (const auto& [type, count] : gpus) text += fmt::format(", {} {}", count, Harmless(type));
  return text;
}

// Namespaces, or pools of another broker, that take no runs; empty: all do. Partitions of Slurm's
// may be down for good, by their operator's will.
std::string ShutPools(const v1::Cluster& cluster) {
  if (cluster.kind() != v1::CLUSTER_KIND_KUBERNETES && cluster.kind() != v1::CLUSTER_KIND_MUSTER)
    return "";
  std::vector<std::string> shut;
  for (const v1::Pool& pool : cluster.inventory().pools()) {
    if (!pool.available() && !pool.state().empty())
      shut.push_back(fmt::format("pool {} is {}", Harmless(pool.name()), Harmless(pool.state())));
  }
  return fmt::format("{}", fmt::join(shut, ", "));
}

Cell ClusterStateCell(const v1::Cluster& cluster) {
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) return {"DISCONNECTED", Colour::kRed};
  if (!cluster.scheduler_error().empty()) return {"NO ANSWER", Colour::kYellow};
  if (cluster.has_cordon()) return {"CORDONED", Colour::kYellow};
  return {"CONNECTED", Colour::kGreen};
}

}  // namespace

bool AreNodesUnknown(const v1::Pool& pool, v1::ClusterKind kind) {
  // A pool that says why it takes no jobs may have nodes all the same.
  const bool has_none = !pool.available() && pool.state().empty();
  const bool may_be_unseen = kind == v1::CLUSTER_KIND_KUBERNETES || kind == v1::CLUSTER_KIND_MUSTER;
  return may_be_unseen && !has_none && pool.node_groups().empty();
}

bool SaysReleased(const v1::StateReason& reason) {
  return reason.code() == v1::STATE_REASON_CODE_RELEASED;
}

bool SaysHeld(const v1::StateReason& reason) { return reason.code() == v1::STATE_REASON_CODE_HELD; }

bool SaysNoWord(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_QUEUED) return false;
  const v1::StateReasonCode code = job.state_reason().code();
  return code == v1::STATE_REASON_CODE_AGENT_DISCONNECTED ||
         code == v1::STATE_REASON_CODE_CLUSTER_LOST ||
         code == v1::STATE_REASON_CODE_SCHEDULER_SILENT;
}

const v1::StateReason& KnownReason(const v1::Job& job) {
  return SaysNoWord(job) ? job.state_reason().last_known() : job.state_reason();
}

bool IsKeptBack(const v1::Job& job) {
  if (!job.held()) return false;
  if (job.state() == v1::JOB_STATE_QUEUED) return true;
  return !job.runs().empty() && SaysHeld(job.runs().rbegin()->state_reason());
}

const v1::StateReason& WhyItWaits(const v1::Job& job) {
  const bool is_hold_open = job.held() && !IsKeptBack(job) && !job.runs().empty();
  const bool is_told = is_hold_open && job.runs().rbegin()->has_state_reason();
  return is_told && !SaysNoWord(job) ? job.runs().rbegin()->state_reason() : job.state_reason();
}

const v1::StateReason& KnownWait(const v1::Job& job) {
  return SaysNoWord(job) ? KnownReason(job) : WhyItWaits(job);
}

std::string HoldAskedText(uint64_t job) {
  return fmt::format("asked to hold; if too late: muster events {}", job);
}

Colour ColourOf(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_RUNNING:
      return Colour::kCyan;
    case v1::JOB_STATE_SUCCEEDED:
      return Colour::kGreen;
    case v1::JOB_STATE_FAILED:
      return Colour::kRed;
    case v1::JOB_STATE_SUSPENDED:
    case v1::JOB_STATE_CANCELED:
      return Colour::kYellow;
    default:
      return Colour::kNone;
  }
}

std::string ExitText(const v1::Job& job) {
  if (!job.has_exit()) return "";
  const v1::ExitStatus& exit = job.exit();
  const std::string rank = exit.rank() > 0 ? fmt::format(" on rank {}", exit.rank()) : "";
  if (exit.signal() == 0) return fmt::format("exit code {}{}", exit.code(), rank);
  const char* name = sigabbrev_np(exit.signal());
  const std::string words = name == nullptr ? "" : fmt::format(" (SIG{})", name);
  return fmt::format("killed by signal {}{}{}", exit.signal(), words, rank);
}

std::string TimeLimitText(const v1::JobSpec& spec) {
  return contract::FormatDuration(absl::Seconds(spec.time_limit().seconds()));
}

std::optional<uint32_t> RankToRead(const v1::Job& job) {
  if (job.runs().empty() || job.state() != v1::JOB_STATE_FAILED) return std::nullopt;
  const v1::Failure& failure = job.failure();
  // A setup writes before the job has a start, which is that of its command; and of several ranks
  // another one may have begun.
  const bool setup_ran = failure.phase() == v1::FAILURE_PHASE_SETUP;
  const bool nothing_ran =
      !job.has_exit() && (failure.failure_class() == v1::FAILURE_CLASS_CONFIG ||
                          failure.failure_class() == v1::FAILURE_CLASS_IMAGE);
  if (!setup_ran && (nothing_ran || !job.has_start_time())) return std::nullopt;
  return job.has_exit() ? job.exit().rank() : failure.rank();
}

std::string LogCommands(const v1::Job& job) {
  const std::optional<uint32_t> rank = RankToRead(job);
  if (!rank.has_value()) return "";
  const v1::Run& run = *job.runs().rbegin();
  return fmt::format("muster logs {}{}.{}", *rank > 0 ? fmt::format("--rank {} ", *rank) : "",
                     job.id(), run.number());
}

std::string QuotesHint(const v1::Job& job) {
  const auto& words = job.spec().command().argv().args();
  const bool has_no_program =
      job.failure().failure_class() == v1::FAILURE_CLASS_CONFIG || job.exit().code() == 127;
  if (words.size() != 1 || !has_no_program || words[0].find(' ') == std::string::npos) return "";
  return "the command is one word with blanks in it; write it without the quotes, or use: sh -c "
         "\"...\"";
}

std::string Summary(const v1::Job& job) {
  const std::string reason = ReasonText(job);
  return fmt::format("job {} {}{}{}", job.id(), contract::Name(job.state()),
                     reason.empty() ? "" : ": ", reason);
}

std::string StepText(const v1::Transition& transition) {
  switch (transition.kind()) {
    case v1::TRANSITION_KIND_SUBMITTED:
      return "submitted";
    case v1::TRANSITION_KIND_CANCEL_REQUESTED:
      return "cancel requested";
    case v1::TRANSITION_KIND_HOLD_REQUESTED:
      return "held";
    case v1::TRANSITION_KIND_RELEASE_REQUESTED: {
      const bool is_of_broker = transition.evidence().source() == v1::EVIDENCE_SOURCE_BROKER;
      return is_of_broker ? "hold too late" : "released";
    }
    case v1::TRANSITION_KIND_RETRY:
      return "retry";
    case v1::TRANSITION_KIND_FAILED_OVER:
      return "failed over";
    case v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED:
      return "to be taken back";
    case v1::TRANSITION_KIND_WITHDRAWN:
      return fmt::format("{}, taken back", contract::Name(transition.run_state()));
    case v1::TRANSITION_KIND_PREEMPTED:
      return fmt::format("{}, preempted", contract::Name(transition.run_state()));
    case v1::TRANSITION_KIND_UPDATED:
      return "updated";
    case v1::TRANSITION_KIND_RESTARTED:
      return fmt::format("{}, restarted", contract::Name(transition.run_state()));
    default:
      break;
  }
  if (transition.run() > 0) return std::string(contract::Name(transition.run_state()));
  return std::string(contract::Name(transition.job_state()));
}

std::vector<Table::Column> JobColumns(const Style& style) {
  if (!style.wide) {
    return {{"ID", 4, true},  {"NAME", 12},    {"STATE", 9}, {"CLUSTER", 8},
            {"SUBMITTED", 9}, {"RUN TIME", 8}, {"REASON", 0}};
  }
  return {{"ID", 4, true}, {"NAME", 12},    {"STATE", 9},      {"CLUSTER", 8},  {"PROJECT", 7},
          {"USER", 6},     {"PRIORITY", 8}, {"SUBMITTED", 20}, {"STARTED", 20}, {"ENDED", 20},
          {"EXIT", 4},     {"LABELS", 6},   {"REASON", 0}};
}

Table::Row JobRow(const v1::Job& job, const Style& style, absl::Time now) {
  Table::Row row = {{fmt::format("{}", job.id())},
                    {Harmless(job.name())},
                    {std::string(contract::Name(job.state())), ColourOf(job.state())},
                    {OrDash(Harmless(job.cluster()))}};
  if (!style.wide) {
    row.push_back({Ago(job.create_time(), now)});
    row.push_back({RunTime(job, now)});
    row.push_back({CutToWords(ReasonText(job), kMaxReasonWidth)});
    return row;
  }
  std::string exit = "-";
  if (job.has_exit()) {
    exit = job.exit().signal() > 0 ? fmt::format("sig {}", job.exit().signal())
                                   : fmt::format("{}", job.exit().code());
  }
  for (std::string text :
       {Harmless(job.project()), Harmless(job.user()), fmt::format("{}", job.priority()),
        Rfc3339(job.create_time()), Rfc3339(job.start_time()), Rfc3339(job.end_time()), exit,
        OrDash(LabelText(job)), ReasonText(job)}) {
    row.push_back({std::move(text)});
  }
  return row;
}

std::vector<Table::Column> ClusterColumns(const Style& style) {
  std::vector<Table::Column> columns = {
      {"NAME", 8}, {"KIND", 8}, {"STATE", 12}, {"RUNS", 4, true}, {"HAS", 16}};
  if (style.wide) {
    for (const char* heading : {"SCHEDULER", "LAST SEEN", "SCHEDULER SEEN", "AGENT"}) {
      columns.push_back({heading});
    }
    columns.push_back({"CALLS", 5, true});
    columns.push_back({"CALLS/RUN", 9, true});
  }
  columns.push_back({"PROBLEM"});
  return columns;
}

std::string CallsPerRun(const v1::Cluster& cluster) {
  const Calls counts = CallsOf(cluster);
  if (counts.runs < kRunsThatTell) return "";
  return fmt::format("{:.2f}", static_cast<double>(counts.calls) / counts.runs);
}

Table::Row ClusterRow(const v1::Cluster& cluster, const Style& style, absl::Time now) {
  Table::Row row = {{Harmless(cluster.name())},
                    {std::string(contract::Name(cluster.kind()))},
                    ClusterStateCell(cluster),
                    {fmt::format("{}", cluster.active_runs())},
                    {Holdings(cluster)}};
  if (style.wide) {
    row.push_back({OrDash(Harmless(cluster.inventory().scheduler_version()))});
    row.push_back({Rfc3339(cluster.last_seen())});
    row.push_back({Rfc3339(cluster.scheduler_observed_at())});
    row.push_back({OrDash(Harmless(cluster.agent_version()))});
    row.push_back({fmt::format("{}", CallsOf(cluster).calls)});
    row.push_back({OrDash(CallsPerRun(cluster))});
  }
  // A warning of its inventory is no present problem; the cluster's page has it.
  std::string problem = OneLine(cluster.scheduler_error());
  if (problem.empty() && cluster.has_cordon())
    problem = OneLine(contract::CordonText(cluster.cordon()));
  if (problem.empty()) problem = ShutPools(cluster);
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) {
    const std::string when = Ago(cluster.last_seen(), now);
    problem = fmt::format("its agent was last seen {}", when == "now" ? "a moment ago" : when);
  }
  row.push_back({style.wide ? problem : CutToWords(problem, kMaxReasonWidth)});
  return row;
}

std::vector<Table::Column> EventColumns(const Style& style) {
  std::vector<Table::Column> columns = {
      {"TIME", 20}, {"JOB", 6}, {"STEP", 16}, {"SOURCE", 11}, {"DETAIL"}};
  if (style.wide) {
    columns.insert(columns.begin(), {"SEQUENCE", 8, true});
    columns.insert(columns.begin() + 4, {"JOB STATE", 9});
  }
  return columns;
}

Table::Row EventRow(uint64_t job_id, const v1::Transition& transition, const Style& style) {
  const std::string job = transition.run() > 0 ? fmt::format("{}.{}", job_id, transition.run())
                                               : fmt::format("{}", job_id);
  const v1::Evidence& evidence = transition.evidence();
  Table::Row row = {{Rfc3339(transition.time())},
                    {job},
                    {StepText(transition), ColourOf(transition.job_state())},
                    {std::string(contract::Name(evidence.source()))},
                    {OneLine(evidence.detail())}};
  if (style.wide) {
    row.insert(row.begin(), {fmt::format("{}", transition.sequence())});
    row.insert(row.begin() + 4, {std::string(contract::Name(transition.job_state()))});
  }
  return row;
}

}  // namespace muster::cli
