#include "clients/cli/slurm/node_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_record.h"
#include "clients/cli/text.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

// Slurm's long and short words for states of nodes.
constexpr std::pair<std::string_view, std::string_view> kNodeStates[] = {
    {"allocated", "alloc"},     {"mixed", "mix"},       {"completing", "comp"},
    {"drained", "drain"},       {"draining", "drng"},   {"reserved", "resv"},
    {"unknown", "unk"},         {"planned", "plnd"},    {"power_down", "pow_dn"},
    {"powered_down", "pow_dn"}, {"power_up", "pow_up"}, {"failing", "failg"}};

// The state of a node in Slurm's words, whatever kind of cluster it is of.
std::string InSlurmsWords(const v1::Node& node) {
  switch (node.condition()) {
    case v1::NODE_CONDITION_READY:
      if (node.used_cpus() == 0) return "idle";
      return node.used_cpus() < node.cpus() ? "mixed" : "allocated";
    case v1::NODE_CONDITION_DOWN:
      return "down";
    case v1::NODE_CONDITION_CORDONED:
      return node.used_cpus() > 0 ? "draining" : "drained";
    case v1::NODE_CONDITION_FAILING:
      return "failing";
    default:
      return node.state();
  }
}

// The state of a partition in Slurm's words; `muster clusters` says why it takes no jobs.
std::string InSlurmsWords(const v1::Pool& pool) {
  constexpr std::string_view kWords[] = {"up", "down", "drain", "inact"};
  if (std::find(std::begin(kWords), std::end(kWords), pool.state()) != std::end(kWords))
    return pool.state();
  return pool.available() ? "up" : "down";
}

// Explains the marks behind a word: "*" does not answer, "+CLOUD" and the like.
std::string_view Marks(std::string_view state) {
  const auto* end = std::find_if_not(state.begin(), state.end(),
                                     [](char c) { return contract::IsLetter(c) || c == '_'; });
  return state.substr(static_cast<size_t>(end - state.begin()));
}

std::string ShortState(const std::string& state) {
  const std::string word = NodeState(state);
  const auto* found = std::find_if(std::begin(kNodeStates), std::end(kNodeStates),
                                   [&](const auto& one) { return one.first == word; });
  return Harmless((found == std::end(kNodeStates) ? word : std::string(found->second)) +
                  std::string(Marks(state)));
}

bool IsAllocated(std::string_view word) {
  return word == "allocated" || word == "mixed" || word == "completing";
}
bool IsUsable(const v1::Node& node) {
  const std::string word = NodeState(node.state());
  const bool answers = node.state().find('*') == std::string::npos;
  return answers &&
         (IsAllocated(word) || word == "idle" || word == "planned" || word == "reserved");
}

std::string GresOf(const v1::Node& node) {
  const std::map<std::string, uint32_t> sorted(node.gpus().begin(), node.gpus().end());
  std::string text;
  for (const auto& [type, count] : sorted) {
    text += fmt::format("{}gpu{}{}:{}", text.empty() ? "" : ",", type.empty() ? "" : ":",
                        Harmless(type), count);
  }
  return text.empty() ? "(null)" : text;
}

std::string Limit(bool has, const google::protobuf::Duration& limit, std::string_view without) {
  return has ? SqueueTime(absl::Seconds(limit.seconds())) : std::string(without);
}

using Nodes = std::vector<const v1::Node*>;

// "alloc/idle/other/total".
std::string CpuCounts(const Nodes& nodes) {
  uint64_t used = 0;
  uint64_t idle = 0;
  uint64_t total = 0;
  for (const v1::Node* node : nodes) {
    used += node->used_cpus();
    total += node->cpus();
    if (IsUsable(*node)) idle += node->cpus() - std::min(node->cpus(), node->used_cpus());
  }
  return fmt::format("{}/{}/{}/{}", used, idle, total - std::min(total, used + idle), total);
}

std::string NodeCounts(const Nodes& nodes, bool with_others) {
  size_t used = 0;
  size_t idle = 0;
  for (const v1::Node* node : nodes) {
    const bool is_used = IsUsable(*node) && IsAllocated(NodeState(node->state()));
    used += is_used ? 1 : 0;
    idle += IsUsable(*node) && !is_used ? 1 : 0;
  }
  if (!with_others) return fmt::format("{}/{}", used, idle);
  return fmt::format("{}/{}/{}/{}", used, idle, nodes.size() - used - idle, nodes.size());
}

// A column of a partition, of each node, or of several nodes together.
struct NodeColumn {
  char letter;
  std::string_view heading;
  std::string (*of_pool)(const v1::PoolLoad&) = nullptr;
  std::string (*of_node)(const v1::Node&) = nullptr;
  std::string (*of_nodes)(const Nodes&) = nullptr;
};
using P = v1::PoolLoad;
using N = v1::Node;
constexpr std::array kNodeColumns = {
    NodeColumn{'P', "PARTITION",
               [](const P& p) { return Harmless(p.pool()) + (p.now().is_default() ? "*" : ""); }},
    NodeColumn{'R', "PARTITION", [](const P& p) { return Harmless(p.pool()); }},
    NodeColumn{'a', "AVAIL", [](const P& p) { return InSlurmsWords(p.now()); }},
    NodeColumn{'l', "TIMELIMIT",
               [](const P& p) {
                 return Limit(p.now().has_max_time_limit(), p.now().max_time_limit(), "infinite");
               }},
    NodeColumn{'L', "DEFAULTTIME",
               [](const P& p) {
                 return Limit(p.now().has_default_time_limit(), p.now().default_time_limit(),
                              "n/a");
               }},
    NodeColumn{'s', "JOB_SIZE",
               [](const P& p) {
                 return p.now().max_nodes() == 0 ? std::string("1-infinite")
                                                 : fmt::format("1-{}", p.now().max_nodes());
               }},
    NodeColumn{'t', "STATE", nullptr, [](const N& n) { return ShortState(n.state()); }},
    NodeColumn{'T', "STATE", nullptr,
               [](const N& n) { return NodeState(n.state()) + Harmless(Marks(n.state())); }},
    NodeColumn{'c', "CPUS", nullptr, [](const N& n) { return fmt::format("{}", n.cpus()); }},
    NodeColumn{'m', "MEMORY", nullptr,
               [](const N& n) { return fmt::format("{}", n.memory_bytes() >> 20); }},
    NodeColumn{'G', "GRES", nullptr, [](const N& n) { return GresOf(n); }},
    NodeColumn{'f', "AVAIL_FEATURES", nullptr,
               [](const N& n) {
                 const std::string text = Harmless(fmt::format("{}", fmt::join(n.features(), ",")));
                 return text.empty() ? "(null)" : text;
               }},
    NodeColumn{'E', "REASON", nullptr,
               [](const N& n) { return n.reason().empty() ? "none" : OneLine(n.reason()); }},
    NodeColumn{'n', "HOSTNAMES", nullptr, [](const N& n) { return Harmless(n.name()); }},
    NodeColumn{'N', "NODELIST", nullptr, nullptr,
               [](const Nodes& nodes) {
                 std::vector<std::string> names;
                 for (const v1::Node* node : nodes) names.push_back(node->name());
                 return Harmless(HostList(names));
               }},
    NodeColumn{'D', "NODES", nullptr, nullptr,
               [](const Nodes& nodes) { return fmt::format("{}", nodes.size()); }},
    NodeColumn{'C', "CPUS(A/I/O/T)", nullptr, nullptr, [](const Nodes& n) { return CpuCounts(n); }},
    NodeColumn{'F', "NODES(A/I/O/T)", nullptr, nullptr,
               [](const Nodes& n) { return NodeCounts(n, true); }},
    NodeColumn{'A', "NODES(A/I)", nullptr, nullptr,
               [](const Nodes& n) { return NodeCounts(n, false); }},
};

const NodeColumn& NodeColumnOf(char letter) {
  return *std::find_if(kNodeColumns.begin(), kNodeColumns.end(),
                       [&](const NodeColumn& column) { return column.letter == letter; });
}

bool IsAsked(const std::vector<std::string>& list, std::string_view word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

bool Takes(const NodeQuery& query, const v1::Node& node, const std::string& pool) {
  const bool is_there =
      std::find(node.pools().begin(), node.pools().end(), pool) != node.pools().end();
  return is_there && IsAsked(query.nodes, node.name()) &&
         IsAsked(query.states, NodeState(node.state())) &&
         (!query.with_reason || !node.reason().empty());
}

// The nodes of a pool, those together of which the same is shown.
std::map<std::vector<std::string>, Nodes> Groups(const v1::ClusterDetails& details,
                                                 const std::string& pool,
                                                 const ColumnFormat& format,
                                                 const NodeQuery& query) {
  std::map<std::vector<std::string>, Nodes> groups;
  for (const v1::Node& node : details.nodes()) {
    if (!Takes(query, node, pool)) continue;
    std::vector<std::string> key;
    if (query.by_node) key.push_back(node.name());
    for (const FormatField& field : format.fields) {
      const NodeColumn& column = NodeColumnOf(field.letter);
      if (column.of_node != nullptr) key.push_back(column.of_node(node));
    }
    groups[key].push_back(&node);
  }
  return groups;
}

}  // namespace

std::string NodeState(std::string_view state) {
  std::string word(state.substr(0, state.size() - Marks(state).size()));
  for (char& c : word) {
    if (contract::IsLetter(c) && !contract::IsLowerLetter(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  const auto* found = std::find_if(std::begin(kNodeStates), std::end(kNodeStates),
                                   [&](const auto& one) { return one.second == word; });
  return found == std::end(kNodeStates) ? word : std::string(found->first);
}

std::string NodeLetters() {
  std::string letters;
  for (const NodeColumn& column : kNodeColumns) letters += column.letter;
  return letters;
}

std::vector<std::string> NodeHeadings(const ColumnFormat& format) {
  std::vector<std::string> headings;
  for (const FormatField& field : format.fields) {
    headings.emplace_back(NodeColumnOf(field.letter).heading);
  }
  return headings;
}

std::vector<std::vector<std::string>> NodeRows(v1::ClusterDetails details,
                                               const ColumnFormat& format, const NodeQuery& query) {
  for (v1::Node& node : *details.mutable_nodes()) node.set_state(InSlurmsWords(node));
  // With the name of the first node.
  std::vector<std::pair<std::string, std::vector<std::string>>> named;
  for (const v1::PoolLoad& pool : details.pools()) {
    if (!IsAsked(query.partitions, pool.pool())) continue;
    for (const auto& [key, nodes] : Groups(details, pool.pool(), format, query)) {
      auto& [name, row] = named.emplace_back();
      name = nodes.front()->name();
      for (const FormatField& field : format.fields) {
        const NodeColumn& column = NodeColumnOf(field.letter);
        row.push_back(column.of_pool != nullptr   ? column.of_pool(pool)
                      : column.of_node != nullptr ? column.of_node(*nodes.front())
                                                  : column.of_nodes(nodes));
      }
    }
  }
  // A list of nodes goes by their names, one of partitions by those.
  if (query.by_node) {
    std::stable_sort(named.begin(), named.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  std::vector<std::vector<std::string>> rows;
  for (auto& [name, row] : named) rows.push_back(std::move(row));
  return rows;
}

}  // namespace muster::cli
