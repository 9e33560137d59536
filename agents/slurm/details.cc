#include "agents/slurm/details.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agents/core/clean_text.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/key_values.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
constexpr size_t kQueueColumns = 3;

std::string_view At(const KeyValues& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? std::string_view() : std::string_view(found->second);
}

template <typename Int>
Int NumberAt(const KeyValues& values, std::string_view key) {
  return ParseNumber<Int>(At(values, key)).value_or(0);
}

absl::Status Unreadable(std::string_view command, std::string_view line) {
  return absl::InternalError(fmt::format("{} printed a line that is not as asked for: \"{}\"",
                                         command, line.substr(0, 200)));
}

// Free text that may look like anything and ends the line: "fan broken [root@1795262039]", with who
// gave it and when.
void ReadReason(std::string_view line, v1::Node* node) {
  constexpr std::string_view kKey = " Reason=";
  const size_t at = line.find(kKey);
  if (at == std::string_view::npos) return;
  std::string_view reason = line.substr(at + kKey.size());
  const size_t open = reason.rfind(" [");
  const size_t sign = reason.rfind('@');
  const bool has_author = open != reason.npos && sign != reason.npos && open < sign;
  if (has_author && reason.ends_with(']')) {
    const auto seconds =
        ParseNumber<int64_t>(reason.substr(sign + 1, reason.size() - sign - 2)).value_or(0);
    if (seconds > 0) {
      node->set_reason_user(
          agents::CleanText(reason.substr(open + 2, sign - open - 2), kMaxNodeReasonBytes));
      node->mutable_reason_time()->set_seconds(seconds);
      reason = reason.substr(0, open);
    }
  }
  node->set_reason(agents::CleanText(reason, kMaxNodeReasonBytes));
}

v1::Node ToNode(const KeyValues& values, std::string_view line) {
  v1::Node node;
  node.set_name(std::string(At(values, "NodeName")));
  node.set_state(LowerCase(At(values, "State")));
  ReadReason(line, &node);
  for (std::string_view pool : Split(At(values, "Partitions"), ',')) {
    if (!pool.empty()) node.add_pools(std::string(pool));
  }
  node.set_cpus(NumberAt<uint32_t>(values, "CPUTot"));
  node.set_used_cpus(NumberAt<uint32_t>(values, "CPUAlloc"));
  node.set_memory_bytes(NumberAt<uint64_t>(values, "RealMemory") * kMebibyte);
  node.set_used_memory_bytes(NumberAt<uint64_t>(values, "AllocMem") * kMebibyte);
  node.set_gres(agents::CleanText(At(values, "Gres"), kMaxGresBytes));
  AddGpus(At(values, "Gres"), node.mutable_gpus());
  AddGpus(At(values, "GresUsed"), node.mutable_used_gpus());
  for (std::string_view feature : Split(At(values, "ActiveFeatures"), ',')) {
    if (!feature.empty()) node.add_features(std::string(feature));
  }
  return node;
}

void SetLimit(std::string_view text, google::protobuf::Duration* (v1::Pool::*set)(),
              v1::Pool* pool) {
  const absl::StatusOr<absl::Duration> limit = contract::ParseDuration(text);
  if (limit.ok()) (pool->*set)()->set_seconds(absl::ToInt64Seconds(*limit));
}

Partition ToPartition(const KeyValues& values) {
  Partition partition;
  v1::Pool& pool = partition.pool;
  pool.set_name(std::string(At(values, "PartitionName")));
  pool.set_is_default(At(values, "Default") == "YES");
  pool.set_available(At(values, "State") == "UP");
  pool.set_state(LowerCase(At(values, "State")));
  pool.set_max_nodes(NumberAt<uint32_t>(values, "MaxNodes"));
  SetLimit(At(values, "MaxTime"), &v1::Pool::mutable_max_time_limit, &pool);
  SetLimit(At(values, "DefaultTime"), &v1::Pool::mutable_default_time_limit, &pool);
  partition.limits = LimitsOf(values);
  return partition;
}

uint32_t Less(uint32_t all, uint32_t used) { return used >= all ? 0 : all - used; }

void AddNode(const v1::Node& node, v1::PoolLoad* load) {
  const bool takes_work = TakesWork(node.state());
  load->set_cpus(load->cpus() + node.cpus());
  if (takes_work) load->set_free_cpus(load->free_cpus() + Less(node.cpus(), node.used_cpus()));
  for (const auto& [type, count] : node.gpus()) {
    (*load->mutable_gpus())[type] += count;
    const auto used = node.used_gpus().find(type);
    const uint32_t free = Less(count, used == node.used_gpus().end() ? 0 : used->second);
    (*load->mutable_free_gpus())[type] += takes_work ? free : 0;
  }
}

void AddJob(const QueuedJob& job, std::string_view user, v1::PoolLoad* load) {
  const bool is_own = job.user == user;
  if (job.is_waiting) {
    load->set_waiting_jobs(load->waiting_jobs() + 1);
    load->set_own_waiting_jobs(load->own_waiting_jobs() + is_own);
  } else {
    load->set_running_jobs(load->running_jobs() + 1);
    load->set_own_running_jobs(load->own_running_jobs() + is_own);
  }
}

}  // namespace

std::vector<std::string> NodeArguments() { return {"scontrol", "show", "node", "-d", "-o"}; }

std::vector<std::string> PartitionArguments() { return {"scontrol", "show", "partition", "-o"}; }

// Completing jobs have their nodes still.
std::vector<std::string> WholeQueueArguments() {
  return {"squeue", "--noheader", "--array", "--states=PD,CF,R,S,ST,CG", "--format=%P\x1f%t\x1f%u"};
}

std::vector<std::string> LimitsOf(const KeyValues& values) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kOpen = {
      {{"AllowGroups", "ALL"},
       {"AllowAccounts", "ALL"},
       {"DenyAccounts", ""},
       {"AllowQos", "ALL"},
       {"DenyQos", ""},
       {"AllocNodes", "ALL"},
       {"QoS", ""},
       {"MinNodes", "0"},
       {"MaxCPUsPerNode", "UNLIMITED"},
       {"MaxMemPerNode", "UNLIMITED"},
       {"MaxMemPerCPU", "UNLIMITED"},
       {"RootOnly", "NO"},
       {"ReqResv", "NO"},
       {"ExclusiveUser", "NO"},
       {"PreemptMode", "OFF"},
       {"OverSubscribe", "NO"}}};
  std::vector<std::string> limits;
  for (const auto& [key, open] : kOpen) {
    const std::string_view value = At(values, key);
    if (value.empty() || value == open) continue;
    if (key == "MinNodes" && value == "1") continue;
    limits.push_back(fmt::format("{}={}", key, value));
  }
  return limits;
}

absl::StatusOr<std::vector<v1::Node>> ParseNodes(std::string_view output) {
  std::vector<v1::Node> nodes;
  for (std::string_view line : Lines(output)) {
    const KeyValues values = ParseKeyValues(line);
    if (At(values, "NodeName").empty() || At(values, "State").empty())
      return Unreadable("scontrol show node", line);
    nodes.push_back(ToNode(values, line));
  }
  return nodes;
}

absl::StatusOr<std::vector<Partition>> ParsePartitions(std::string_view output) {
  std::vector<Partition> partitions;
  for (std::string_view line : Lines(output)) {
    const KeyValues values = ParseKeyValues(line);
    if (At(values, "PartitionName").empty()) return Unreadable("scontrol show partition", line);
    partitions.push_back(ToPartition(values));
  }
  return partitions;
}

absl::StatusOr<std::vector<QueuedJob>> ParseWholeQueue(std::string_view output) {
  std::vector<QueuedJob> jobs;
  for (std::string_view line : Lines(output)) {
    const std::vector<std::string_view> columns = Split(line, kSeparator);
    if (columns.size() != kQueueColumns) return Unreadable("squeue", line);
    QueuedJob job;
    for (std::string_view partition : Split(columns[0], ','))
      job.partitions.emplace_back(partition);
    job.is_waiting = columns[1] == "PD";
    job.user = columns[2];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

bool TakesWork(std::string_view state) {
  constexpr std::array<std::string_view, 6> kWorking = {"idle",       "mixed",   "allocated",
                                                        "completing", "planned", "reserved"};
  constexpr std::array<std::string_view, 9> kOut = {"drain",   "down",           "fail",
                                                    "failing", "maintenance",    "powered_down",
                                                    "invalid", "not_responding", "unknown"};
  if (state.ends_with('*')) return false;
  const std::vector<std::string_view> flags = Split(state, '+');
  const bool works = std::find(kWorking.begin(), kWorking.end(), flags[0]) != kWorking.end();
  return works && std::none_of(flags.begin(), flags.end(), [&](std::string_view flag) {
           return std::find(kOut.begin(), kOut.end(), flag) != kOut.end();
         });
}

v1::ClusterDetails MakeDetails(const std::vector<Partition>& partitions,
                               std::vector<v1::Node> nodes, const std::vector<QueuedJob>& queue,
                               std::string_view user) {
  v1::ClusterDetails details;
  std::map<std::string_view, v1::PoolLoad*> loads;
  for (const Partition& partition : partitions) {
    v1::PoolLoad* load = details.add_pools();
    load->set_pool(partition.pool.name());
    *load->mutable_now() = partition.pool;
    load->mutable_limits()->Assign(partition.limits.begin(), partition.limits.end());
    loads.emplace(partition.pool.name(), load);
  }
  for (const v1::Node& node : nodes) {
    for (const std::string& pool : node.pools()) {
      if (const auto load = loads.find(pool); load != loads.end()) AddNode(node, load->second);
    }
  }
  for (const QueuedJob& job : queue) {
    for (const std::string& pool : job.partitions) {
      if (const auto load = loads.find(pool); load != loads.end()) AddJob(job, user, load->second);
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const v1::Node& a, const v1::Node& b) { return a.name() < b.name(); });
  if (nodes.size() > kMaxDetailedNodes) nodes.resize(kMaxDetailedNodes);
  details.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  return details;
}

}  // namespace muster::slurm
