#include "agents/slurm/inventory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/shell_limits.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

constexpr size_t kNodeColumns = 10;
constexpr uint64_t kMemoryUnit = 1 << 20;

// Holds one line of sinfo: nodes of a partition that are alike, also in their state.
struct NodeLine {
  std::string partition;
  bool is_default = false;
  bool up = false;
  std::optional<absl::Duration> time_limit, default_time_limit;
  uint32_t max_nodes = 0;  // 0: no limit
  v1::NodeGroup nodes;
};

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Goes by sinfo(1), NODE STATE CODES: a suffix tells of power and reservations; '*' means that the
// node does not answer.
bool IsUsableState(std::string_view state) {
  constexpr std::array<std::string_view, 6> kUsable = {"idle", "mix",  "alloc",
                                                       "comp", "plnd", "npc"};
  if (state.ends_with('*')) return false;
  const size_t end = state.find_last_not_of("~#!%$@^-+");
  const std::string_view base = state.substr(0, end + 1);
  return std::find(kUsable.begin(), kUsable.end(), base) != kUsable.end();
}

// Reads "1-infinite", "2", "1-4".
uint32_t MaxNodesOf(std::string_view size) {
  const size_t dash = size.rfind('-');
  return ParseNumber<uint32_t>(dash == std::string_view::npos ? size : size.substr(dash + 1))
      .value_or(0);
}

// Returns nothing for "infinite" and "n/a".
std::optional<absl::Duration> TimeLimitOf(std::string_view text) {
  const absl::StatusOr<absl::Duration> limit = contract::ParseDuration(text);
  return limit.ok() ? std::optional(*limit) : std::nullopt;
}

std::optional<NodeLine> ParseNodeLine(std::string_view text) {
  const std::vector<std::string_view> columns = Split(text, kSeparator);
  if (columns.size() != kNodeColumns) return std::nullopt;
  const std::optional<uint32_t> count = ParseNumber<uint32_t>(columns[4]);
  const std::optional<uint32_t> cpus = ParseNumber<uint32_t>(columns[5]);
  const std::optional<uint64_t> megabytes = ParseNumber<uint64_t>(columns[6]);
  if (!count.has_value() || !cpus.has_value() || !megabytes.has_value()) return std::nullopt;
  NodeLine line;
  std::string_view partition = columns[0];
  line.is_default = partition.ends_with('*');
  if (line.is_default) partition.remove_suffix(1);
  line.partition = partition;
  line.up = columns[1] == "up";
  line.time_limit = TimeLimitOf(columns[2]);
  line.default_time_limit = TimeLimitOf(columns[9]);
  line.max_nodes = MaxNodesOf(columns[3]);
  line.nodes.set_count(*count);
  line.nodes.set_cpus(*cpus);
  line.nodes.set_memory_bytes(*megabytes * kMemoryUnit);
  AddGpus(columns[7], line.nodes.mutable_gpus());
  line.nodes.set_usable_count(IsUsableState(columns[8]) ? *count : 0);
  return line;
}

bool AreAlike(const v1::NodeGroup& a, const v1::NodeGroup& b) {
  const auto gpus = [](const v1::NodeGroup& group) {
    return std::map<std::string, uint32_t>(group.gpus().begin(), group.gpus().end());
  };
  return a.cpus() == b.cpus() && a.memory_bytes() == b.memory_bytes() && gpus(a) == gpus(b);
}

v1::Pool MakePool(const NodeLine& line) {
  v1::Pool pool;
  pool.set_name(line.partition);
  pool.set_is_default(line.is_default);
  pool.set_available(line.up);
  pool.set_max_nodes(line.max_nodes);
  if (line.time_limit.has_value()) {
    pool.mutable_max_time_limit()->set_seconds(absl::ToInt64Seconds(*line.time_limit));
  }
  if (line.default_time_limit.has_value()) {
    pool.mutable_default_time_limit()->set_seconds(absl::ToInt64Seconds(*line.default_time_limit));
  }
  return pool;
}

}  // namespace

void AddGpus(std::string_view gres, google::protobuf::Map<std::string, uint32_t>* gpus) {
  int depth = 0;
  std::string flat;
  for (char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) flat.push_back(c);
    if (c == ')') --depth;
  }
  for (std::string_view entry : Split(flat, ',')) {
    const std::vector<std::string_view> parts = Split(entry, ':');
    if (parts[0] != "gpu" || parts.size() < 2 || parts.size() > 3) continue;
    const std::optional<uint32_t> count = ParseNumber<uint32_t>(parts.back());
    const std::string type(parts.size() == 3 ? parts[1] : "gpu");
    if (count.has_value()) (*gpus)[type] += *count;
  }
}

void AddNodes(const v1::NodeGroup& nodes, v1::Pool* pool) {
  for (v1::NodeGroup& group : *pool->mutable_node_groups()) {
    if (!AreAlike(group, nodes)) continue;
    group.set_count(group.count() + nodes.count());
    group.set_usable_count(group.usable_count() + nodes.usable_count());
    return;
  }
  if (nodes.count() > 0) *pool->add_node_groups() = nodes;
}

std::optional<bool> IsFrom(const ClusterSettings& settings, uint32_t major, uint32_t minor) {
  const std::vector<std::string_view> parts = Split(settings.version, '.');
  const std::optional<uint32_t> first = ParseNumber<uint32_t>(parts[0]);
  const std::optional<uint32_t> second =
      parts.size() > 1 ? ParseNumber<uint32_t>(parts[1]) : std::nullopt;
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  return std::pair(*first, *second) >= std::pair(major, minor);
}

std::vector<std::string> SettingsArguments() { return {"scontrol", "show", "config"}; }

absl::StatusOr<ClusterSettings> ParseSettings(std::string_view output) {
  ClusterSettings settings;
  std::string_view limits, kept_limits;
  for (std::string_view line : Lines(output)) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, equals));
    const std::string_view value = Trim(line.substr(equals + 1));
    if (key == "ClusterName") settings.name = value;
    if (key == "SLURM_VERSION") settings.version = value;
    if (key == "SlurmUser") settings.slurm_user = value.substr(0, value.find('('));
    if (key == "AccountingStorageType")
      settings.keeps_accounting = value == "accounting_storage/slurmdbd";
    if (key == "PrivateData") settings.hides_jobs = value.find("jobs") != value.npos;
    if (key == "PropagateResourceLimits") limits = value;
    if (key == "PropagateResourceLimitsExcept") kept_limits = value;
    if (key == "MaxArraySize") settings.max_array_size = ParseNumber<size_t>(value).value_or(0);
    if (key == "MinJobAge") {
      settings.min_job_age =
          absl::Seconds(ParseNumber<int64_t>(value.substr(0, value.find(' '))).value_or(0));
    }
  }
  settings.taken_limits = TakenLimits(limits, kept_limits);
  if (settings.name.empty())
    return absl::InternalError("scontrol show config does not name the cluster");
  return settings;
}

std::vector<std::string> PoolArguments() {
  return {"sinfo", "--noheader", "--exact",
          "--format=%P\x1f%a\x1f%l\x1f%s\x1f%D\x1f%c\x1f%m\x1f%G\x1f%t\x1f%L"};
}

absl::StatusOr<std::vector<v1::Pool>> ParsePools(std::string_view output) {
  std::vector<v1::Pool> pools;
  for (std::string_view text : Lines(output)) {
    const std::optional<NodeLine> line = ParseNodeLine(text);
    if (!line.has_value()) {
      return absl::InternalError(fmt::format(
          "sinfo printed a line that is not as asked for: \"{}\"", text.substr(0, 200)));
    }
    auto pool = std::find_if(pools.begin(), pools.end(), [&](const v1::Pool& known) {
      return known.name() == line->partition;
    });
    if (pool == pools.end()) pool = pools.insert(pools.end(), MakePool(*line));
    AddNodes(line->nodes, &*pool);
  }
  return pools;
}

void MarkDefaultPools(std::string_view partitions, std::vector<v1::Pool>* pools) {
  const std::vector<std::string_view> names = Split(partitions, ',');
  const auto is_named = [&](const v1::Pool& pool) {
    return std::find(names.begin(), names.end(), pool.name()) != names.end();
  };
  if (std::none_of(pools->begin(), pools->end(), is_named)) return;
  for (v1::Pool& pool : *pools) pool.set_is_default(is_named(pool));
}

GpuTypes GpuTypesOf(const std::vector<v1::Pool>& pools) {
  GpuTypes types;
  for (const v1::Pool& pool : pools) {
    for (const v1::NodeGroup& group : pool.node_groups()) {
      for (const auto& [type, count] : group.gpus()) {
        std::string lower = type;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        types.emplace(lower, type);
      }
    }
  }
  return types;
}

}  // namespace muster::slurm
