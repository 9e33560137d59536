#include "agents/slurm/rest_nodes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "agents/core/clean_text.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/rest_json.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

constexpr uint64_t kRestMemoryUnit = 1 << 20;
// Slurm's numbers for "no limit" and "not set", where an old slurmrestd lets them through.
constexpr int64_t kInfinite = 0xffffffff;
constexpr int64_t kNoValue = 0xfffffffe;

std::optional<int64_t> NumberLimitOf(const json& value) {
  const std::optional<int64_t> number = NumberOf(value);
  const bool is_limit = number.has_value() && *number > 0 && *number < kNoValue;
  return is_limit && *number != kInfinite ? number : std::nullopt;
}

bool HasWord(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& one) {
    return std::equal(one.begin(), one.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a | 0x20) == (b | 0x20); });
  });
}

// These nodes take work; sinfo's words for the others are down, drained, maint, resv and so on.
bool IsUsableNode(const json& node) {
  std::vector<std::string> words = WordsOf(Member(node, "state"));
  for (std::string& flag : WordsOf(Member(node, "state_flags"))) words.push_back(std::move(flag));
  constexpr std::array<std::string_view, 3> kGood = {"idle", "mixed", "allocated"};
  constexpr std::array<std::string_view, 7> kBad = {
      "drain", "fail", "not_responding", "maintenance", "reserved", "invalid_reg", "down"};
  const auto has = [&](std::string_view word) { return HasWord(words, word); };
  return std::any_of(kGood.begin(), kGood.end(), has) &&
         std::none_of(kBad.begin(), kBad.end(), has);
}

v1::NodeGroup ReadNode(const json& node) {
  v1::NodeGroup group;
  group.set_count(1);
  group.set_cpus(static_cast<uint32_t>(NumberOf(Member(node, "cpus")).value_or(0)));
  const auto megabytes = static_cast<uint64_t>(NumberOf(Member(node, "real_memory")).value_or(0));
  group.set_memory_bytes(megabytes * kRestMemoryUnit);
  AddGpus(TextOf(Member(node, "gres")), group.mutable_gpus());
  group.set_usable_count(IsUsableNode(node) ? 1 : 0);
  return group;
}

std::vector<std::string> PartitionStates(const json& partition) {
  std::vector<std::string> states = WordsOf(Member(partition, "state"));
  return states.empty() ? WordsOf(Member(Member(partition, "partition"), "state")) : states;
}

// v0.0.38 has these members in the partition itself; v0.0.40 has them further inside, and does not
// tell the default one.
v1::Pool ReadPartition(const json& partition) {
  const json& maximums = Member(partition, "maximums");
  v1::Pool pool;
  pool.set_name(TextOf(Member(partition, "name")));
  pool.set_available(HasWord(PartitionStates(partition), "up"));
  pool.set_is_default(HasWord(WordsOf(Member(partition, "flags")), "default"));
  const json& old_time = Member(partition, "max_time_limit");
  if (const auto minutes = NumberLimitOf(old_time.is_null() ? Member(maximums, "time") : old_time))
    pool.mutable_max_time_limit()->set_seconds(*minutes * 60);
  const json& old_default = Member(partition, "default_time_limit");
  if (const auto minutes = NumberLimitOf(
          old_default.is_null() ? Member(Member(partition, "defaults"), "time") : old_default))
    pool.mutable_default_time_limit()->set_seconds(*minutes * 60);
  const json& old_nodes = Member(partition, "maximum_nodes_per_job");
  if (const auto nodes = NumberLimitOf(old_nodes.is_null() ? Member(maximums, "nodes") : old_nodes))
    pool.set_max_nodes(static_cast<uint32_t>(*nodes));
  return pool;
}

// Writes the state in scontrol's form, in lower case: "idle+drain".
std::string NodeStateOf(const json& node) {
  std::vector<std::string> words = WordsOf(Member(node, "state"));
  for (std::string& flag : WordsOf(Member(node, "state_flags"))) words.push_back(std::move(flag));
  return LowerCase(fmt::format("{}", fmt::join(words, "+")));
}

v1::Node ReadDetailedNode(const json& json_node) {
  const v1::NodeGroup has = ReadNode(json_node);
  const auto number = [&](std::string_view member) {
    return static_cast<uint64_t>(
        std::max<int64_t>(NumberOf(Member(json_node, member)).value_or(0), 0));
  };
  v1::Node node;
  node.set_name(TextOf(Member(json_node, "name")));
  node.set_state(NodeStateOf(json_node));
  node.set_reason(agents::CleanText(TextOf(Member(json_node, "reason")), kMaxNodeReasonBytes));
  const int64_t reason_time = NumberOf(Member(json_node, "reason_changed_at")).value_or(0);
  if (!node.reason().empty() && reason_time > 0) {
    node.mutable_reason_time()->set_seconds(reason_time);
    node.set_reason_user(
        agents::CleanText(TextOf(Member(json_node, "reason_set_by_user")), kMaxNodeReasonBytes));
  }
  node.set_gres(agents::CleanText(TextOf(Member(json_node, "gres")), kMaxGresBytes));
  for (std::string& pool : WordsOf(Member(json_node, "partitions")))
    node.add_pools(std::move(pool));
  node.set_cpus(has.cpus());
  node.set_used_cpus(static_cast<uint32_t>(number("alloc_cpus")));
  node.set_memory_bytes(has.memory_bytes());
  node.set_used_memory_bytes(number("alloc_memory") * kRestMemoryUnit);
  *node.mutable_gpus() = has.gpus();
  AddGpus(TextOf(Member(json_node, "gres_used")), node.mutable_used_gpus());
  for (const std::string& words : WordsOf(Member(json_node, "active_features"))) {
    for (std::string_view feature : Split(words, ',')) {
      if (!feature.empty()) node.add_features(std::string(feature));
    }
  }
  return node;
}

// Holds scontrol's word for a limit of a partition, and where slurmrestd tells it: up to v0.0.38 in
// the partition itself, from v0.0.40 on in an object there.
struct Limit {
  std::string_view key;
  std::string_view old_name;
  std::string_view object;
  std::string_view name;
};

const json& ValueOf(const json& partition, const Limit& limit) {
  const json& inner = Member(Member(partition, limit.object), limit.name);
  return inner.is_null() ? Member(partition, limit.old_name) : inner;
}

// scontrol's words for what keeps jobs out, as far as slurmrestd tells it.
KeyValues LimitWords(const json& partition) {
  constexpr std::array<Limit, 7> kTexts = {
      {{"AllowGroups", "allowed_groups", "groups", "allowed"},
       {"AllowAccounts", "allowed_accounts", "accounts", "allowed"},
       {"DenyAccounts", "denied_accounts", "accounts", "deny"},
       {"AllowQos", "allowed_qos", "qos", "allowed"},
       {"DenyQos", "denied_qos", "qos", "deny"},
       {"AllocNodes", "allowed_allocation_nodes", "nodes", "allowed_allocation"},
       {"QoS", "qos", "qos", "assigned"}}};
  constexpr std::array<Limit, 4> kNumbers = {
      {{"MinNodes", "min nodes per job", "minimums", "nodes"},
       {"MaxCPUsPerNode", "maximum_cpus_per_node", "maximums", "cpus_per_node"},
       {"MaxMemPerNode", "maximum_memory_per_node", "maximums", "partition_memory_per_node"},
       {"MaxMemPerCPU", "maximum_memory_per_cpu", "maximums", "partition_memory_per_cpu"}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFlags = {
      {{"RootOnly", "root_only"},
       {"ReqResv", "reservation_required"},
       {"ExclusiveUser", "exclusive_user"}}};
  KeyValues words;
  for (const Limit& limit : kTexts) words.emplace(limit.key, TextOf(ValueOf(partition, limit)));
  for (const Limit& limit : kNumbers) {
    if (const auto number = NumberLimitOf(ValueOf(partition, limit)))
      words.emplace(limit.key, std::to_string(*number));
  }
  const std::vector<std::string> flags = WordsOf(Member(partition, "flags"));
  for (const auto& [key, flag] : kFlags) {
    if (HasWord(flags, flag)) words.emplace(key, "YES");
  }
  const std::vector<std::string> modes = WordsOf(Member(partition, "preemption_mode"));
  if (!modes.empty() && !HasWord(modes, "disabled"))
    words.emplace("PreemptMode", UpperCase(fmt::format("{}", fmt::join(modes, ","))));
  return words;
}

Partition ReadDetailedPartition(const json& json_partition) {
  Partition partition;
  partition.pool = ReadPartition(json_partition);
  partition.pool.set_state(
      LowerCase(fmt::format("{}", fmt::join(PartitionStates(json_partition), "+"))));
  partition.limits = LimitsOf(LimitWords(json_partition));
  return partition;
}

}  // namespace

absl::StatusOr<std::vector<v1::Pool>> RestPools(const json& partitions, const json& nodes) {
  const json* pool_list = ListIn(partitions, "partitions");
  const json* node_list = ListIn(nodes, "nodes");
  if (pool_list == nullptr || node_list == nullptr)
    return UnreadableAnswer("no list of partitions or nodes, or one");
  std::vector<v1::Pool> pools;
  for (const json& partition : *pool_list) {
    pools.push_back(ReadPartition(partition));
    if (pools.back().name().empty()) return UnreadableAnswer("a partition");
  }
  for (const json& node : *node_list) {
    const v1::NodeGroup group = ReadNode(node);
    const std::vector<std::string> members = WordsOf(Member(node, "partitions"));
    for (v1::Pool& pool : pools) {
      if (std::find(members.begin(), members.end(), pool.name()) != members.end())
        AddNodes(group, &pool);
    }
  }
  return pools;
}

absl::StatusOr<std::vector<std::string>> RestKnownNodes(const json& nodes,
                                                        const std::vector<std::string>& names) {
  const json* list = ListIn(nodes, "nodes");
  if (list == nullptr) return UnreadableAnswer("no list of nodes, or one");
  std::set<std::string> known;
  for (const json& node : *list) {
    const std::string name = TextOf(Member(node, "name"));
    if (name.empty()) return UnreadableAnswer("a node");
    known.insert(name);
  }
  std::vector<std::string> some;
  std::copy_if(names.begin(), names.end(), std::back_inserter(some),
               [&](const std::string& name) { return known.contains(name); });
  return some;
}

absl::StatusOr<std::vector<v1::Node>> RestNodes(const json& nodes) {
  const json* list = ListIn(nodes, "nodes");
  if (list == nullptr) return UnreadableAnswer("no list of nodes, or one");
  std::vector<v1::Node> read;
  for (const json& node : *list) {
    read.push_back(ReadDetailedNode(node));
    if (read.back().name().empty() || read.back().state().empty())
      return UnreadableAnswer("a node");
  }
  return read;
}

absl::StatusOr<std::vector<Partition>> RestPartitions(const json& partitions) {
  const json* list = ListIn(partitions, "partitions");
  if (list == nullptr) return UnreadableAnswer("no list of partitions, or one");
  std::vector<Partition> read;
  for (const json& partition : *list) {
    read.push_back(ReadDetailedPartition(partition));
    if (read.back().pool.name().empty()) return UnreadableAnswer("a partition");
  }
  return read;
}

}  // namespace muster::slurm
