// The page of one cluster.
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/estimates.h"
#include "clients/cli/page.h"
#include "clients/cli/views.h"
#include "contract/counted.h"
#include "contract/scheduler_calls.h"
#include "contract/sentences.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

std::string DashIfEmpty(std::string text) { return text.empty() ? "-" : text; }

std::string PoolText(const v1::Pool& pool, v1::ClusterKind kind) {
  std::vector<std::string> groups;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    std::string text = fmt::format("{} x {} cpus", group.count(), group.cpus());
    if (group.memory_bytes() > 0) text += " " + contract::FormatBytes(group.memory_bytes());
    const std::map<std::string, uint32_t> gpus(group.gpus().begin(), group.gpus().end());
    for (const auto& [type, count] : gpus) text += fmt::format(" {}:{}", Harmless(type), count);
    if (group.usable_count() < group.count())
      text += fmt::format(" ({} usable)", group.usable_count());
    groups.push_back(std::move(text));
  }
  std::string text =
      AreNodesUnknown(pool, kind) ? "nodes not known" : fmt::format("{}", fmt::join(groups, "; "));
  if (pool.has_max_time_limit()) {
    const absl::Duration limit = absl::Seconds(pool.max_time_limit().seconds());
    text += fmt::format(", at most {}", contract::FormatDuration(limit));
  }
  if (pool.is_default()) text += ", default";
  if (!pool.available()) text += ", takes no jobs now";
  return text;
}

using Counts = google::protobuf::Map<std::string, uint32_t>;

using FreeParts = google::protobuf::Map<std::string, v1::FreeGpus>;

// Parts that are shown at most; a job needs one that is large enough.
constexpr int kMostPartsShown = 4;

// " +0.5 +0.25": what is left of devices that runs share.
std::string PartsText(const FreeParts& free_gpus, const std::string& type) {
  const auto found = free_gpus.find(type);
  if (found == free_gpus.end()) return "";
  const auto& parts = found->second.parts_millis();
  std::string text;
  for (int i = 0; i < parts.size() && i < kMostPartsShown; ++i)
    text += " +" + contract::FormatCpus(parts[i]);
  return parts.size() > kMostPartsShown ? text + " ..." : text;
}

// "h100 3/8 +0.5, a100 0/4": those that are free of all, and of shared ones what is left.
std::string FreeOfAll(const Counts& free, const Counts& all, const FreeParts& free_gpus) {
  const std::map<std::string, uint32_t> sorted(all.begin(), all.end());
  std::string text;
  for (const auto& [type, count] : sorted) {
    const auto found = free.find(type);
    text += fmt::format("{}{} {}/{}{}", text.empty() ? "" : ", ", Harmless(type),
                        found == free.end() ? 0 : found->second, count, PartsText(free_gpus, type));
  }
  return DashIfEmpty(text);
}

std::string LimitText(const google::protobuf::Duration& limit) {
  return contract::FormatDuration(absl::Seconds(limit.seconds()));
}

// "at most 2d, 1h if none is given, at most 4 nodes", and each of the scheduler's own on a line.
std::vector<std::string> LimitLines(const v1::PoolLoad& load) {
  std::vector<std::string> parts;
  if (load.now().has_max_time_limit()) {
    parts.push_back("at most " + LimitText(load.now().max_time_limit()));
  }
  if (load.now().has_default_time_limit()) {
    parts.push_back(LimitText(load.now().default_time_limit()) + " if none is given");
  }
  if (load.now().max_nodes() > 0) {
    parts.push_back("at most " + contract::Counted(load.now().max_nodes(), "node"));
  }
  std::vector<std::string> lines;
  if (!parts.empty()) lines.push_back(fmt::format("{}", fmt::join(parts, ", ")));
  for (const std::string& limit : load.limits()) lines.push_back(OneLine(limit));
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string PoolTable(const v1::ClusterDetails& details, v1::ClusterKind kind, const Style& style) {
  Table table({{"POOL", 8},
               {"STATE", 6},
               {"CPUS FREE", 9},
               {"GPUS FREE", 9},
               {"RUNNING", 7, true},
               {"OWN", 3, true},
               {"WAITING", 7, true},
               {"OWN", 3, true},
               {"LIMITS", 0}},
              style.colours);
  for (const v1::PoolLoad& load : details.pools()) {
    const bool is_up = load.now().available();
    const bool is_unknown = AreNodesUnknown(load.now(), kind);
    const std::vector<std::string> limits = LimitLines(load);
    table.Add(
        {{Harmless(load.pool()) + (load.now().is_default() ? "*" : "")},
         {load.now().state().empty() ? (is_up ? "up" : "down") : Harmless(load.now().state()),
          is_up ? Colour::kNone : Colour::kYellow},
         {is_unknown ? "?" : fmt::format("{}/{}", load.free_cpus(), load.cpus())},
         {is_unknown ? "?" : FreeOfAll(load.free_gpus(), load.gpus(), load.now().free_gpus())},
         {fmt::format("{}", load.running_jobs())},
         {fmt::format("{}", load.own_running_jobs())},
         {fmt::format("{}", load.waiting_jobs())},
         {fmt::format("{}", load.own_waiting_jobs())},
         {limits.front()}});
    for (size_t i = 1; i < limits.size(); ++i) {
      Table::Row more(8);  // below the others' columns
      more.push_back({limits[i]});
      table.Add(std::move(more));
    }
  }
  return table.Take();
}

Colour ColourOfNode(const v1::Node& node) {
  switch (node.condition()) {
    case v1::NODE_CONDITION_DOWN:
    case v1::NODE_CONDITION_FAILING:
      return Colour::kRed;
    case v1::NODE_CONDITION_CORDONED:
      return Colour::kYellow;
    case v1::NODE_CONDITION_READY:
      return Colour::kNone;
    default:
      break;
  }
  // Slurm's words.
  const std::string_view state = node.state();
  if (state.starts_with("down") || state.starts_with("fail")) return Colour::kRed;
  return state.starts_with("drain") || state.ends_with('*') ? Colour::kYellow : Colour::kNone;
}

// "bad fan (root, 2026-11-21T08:40:28Z)".
std::string NodeReason(const v1::Node& node) {
  const std::string reason = OneLine(node.reason());
  if (!node.has_reason_time()) return reason;
  return fmt::format("{} ({}{}{})", reason, Harmless(node.reason_user()),
                     node.reason_user().empty() ? "" : ", ", Rfc3339(node.reason_time()));
}

std::string NodeTable(const v1::ClusterDetails& details, const Style& style) {
  std::vector<Table::Column> columns = {{"NODE", 8},      {"STATE", 6},        {"POOLS", 8},
                                        {"CPUS FREE", 9}, {"MEMORY FREE", 11}, {"GPUS FREE", 9}};
  if (style.wide) columns.push_back({"FEATURES", 8});
  columns.push_back({"REASON", 0});
  Table table(std::move(columns), style.colours);
  for (const v1::Node& node : details.nodes()) {
    Counts free;
    for (const auto& [type, count] : node.gpus()) {
      const auto used = node.used_gpus().find(type);
      const uint32_t taken = used == node.used_gpus().end() ? 0 : used->second;
      free[type] = count - std::min(count, taken);
    }
    const uint64_t memory =
        node.memory_bytes() - std::min(node.memory_bytes(), node.used_memory_bytes());
    Table::Row row = {
        {Harmless(node.name())},
        {Harmless(node.state()), ColourOfNode(node)},
        {DashIfEmpty(Harmless(fmt::format("{}", fmt::join(node.pools(), ","))))},
        {fmt::format("{}/{}", node.cpus() - std::min(node.cpus(), node.used_cpus()), node.cpus())},
        {node.memory_bytes() == 0 ? "-"
                                  : fmt::format("{}/{}", contract::FormatBytes(memory),
                                                contract::FormatBytes(node.memory_bytes()))},
        {FreeOfAll(free, node.gpus(), node.free_gpus())}};
    if (style.wide)
      row.push_back({DashIfEmpty(Harmless(fmt::format("{}", fmt::join(node.features(), ","))))});
    row.push_back({NodeReason(node)});
    table.Add(std::move(row));
  }
  return table.Take();
}

}  // namespace

std::string ClusterPage(const v1::Cluster& cluster, const v1::ClusterDetails* details,
                        const Style& style, absl::Time now) {
  Page page(style.colours);
  const Table::Row row = ClusterRow(cluster, style, now);
  page.Heading(fmt::format("Cluster {}  ({})", row[0].text, row[1].text));
  page.Line("State", row[2].text, row[2].colour);
  page.Line("Scheduler", Harmless(cluster.inventory().scheduler_version()));
  page.Line("Identity", Harmless(cluster.inventory().identity()));
  page.Line("Agent", Harmless(cluster.agent_version()));
  page.Time("Last seen", cluster.last_seen(), now);
  page.Time("Answered", cluster.scheduler_observed_at(), now);
  page.Line("No answer", OneLine(cluster.scheduler_error()), Colour::kYellow);
  if (cluster.has_cordon())
    page.Line("Cordon", OneLine(contract::CordonText(cluster.cordon())), Colour::kYellow);
  if (cluster.has_fence_delay())
    page.Line("Fence", contract::FormatDuration(absl::Seconds(cluster.fence_delay().seconds())) +
                           " after the end of a lease");
  page.Line("Runs",
            fmt::format("{} of at most {}", cluster.active_runs(), cluster.max_active_runs()));
  if (cluster.has_estimate_errors())
    page.Line("Estimates", EstimateErrorsText(cluster.estimate_errors()));
  for (const v1::Pool& pool : cluster.inventory().pools()) {
    if (details != nullptr) break;
    page.Line("Pool " + Harmless(pool.name()), PoolText(pool, cluster.kind()));
  }
  for (const v1::ClusterIssue& issue : cluster.inventory().issues()) {
    std::string text = OneLine(contract::WithRemedy(issue.message(), issue.remedy()));
    if (issue.has_since()) text += fmt::format(" ({})", Ago(issue.since(), now));
    page.Line("Issue", text, Colour::kYellow);
  }
  const std::map<std::string, uint64_t> calls(cluster.scheduler_calls().begin(),
                                              cluster.scheduler_calls().end());
  std::string counts;
  for (const auto& [name, count] : calls) {
    if (name != contract::kLaunchedRuns)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", Harmless(name), count);
  }
  page.Line("Calls", counts.empty() ? counts : counts + " since the agent's start");
  page.Line("Calls per run", CallsPerRun(cluster));
  if (details != nullptr && !details->pools().empty()) {
    page.Heading("Pools");
    page.Raw(PoolTable(*details, cluster.kind(), style));
  }
  if (details != nullptr && !details->nodes().empty()) {
    page.Heading("Nodes");
    page.Raw(NodeTable(*details, style));
  }
  return page.Take();
}

}  // namespace muster::cli
