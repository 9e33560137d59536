#include "clients/cli/slurm/node_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_record.h"
#include "clients/cli/slurm/node_state.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

// A node, and its state in Slurm's words.
struct SeenNode {
  const v1::Node* node = nullptr;
  NodeState state;
};

// The state of a node in Slurm's words, whatever kind of cluster it is of.
NodeState InSlurmsWords(const v1::Node& node) {
  switch (node.condition()) {
    case v1::NODE_CONDITION_READY:
      if (node.used_cpus() == 0) return NodeState::Parse("idle");
      return NodeState::Parse(node.used_cpus() < node.cpus() ? "mixed" : "allocated");
    case v1::NODE_CONDITION_DOWN:
      return NodeState::Parse("down");
    case v1::NODE_CONDITION_CORDONED:
      return NodeState::Parse(node.used_cpus() > 0 ? "draining" : "drained");
    case v1::NODE_CONDITION_FAILING:
      return NodeState::Parse(node.used_cpus() > 0 ? "failing" : "fail");
    default:
      return NodeState::Parse(node.state());
  }
}

// The state of a partition in Slurm's words; `muster clusters` says why it takes no jobs.
std::string InSlurmsWords(const v1::Pool& pool) {
  constexpr std::string_view kWords[] = {"up", "down", "drain", "inact"};
  if (std::find(std::begin(kWords), std::end(kWords), pool.state()) != std::end(kWords))
    return pool.state();
  return pool.available() ? "up" : "down";
}

std::string GresOf(const v1::Node& node) {
  if (!node.gres().empty()) return Harmless(node.gres());
  const std::map<std::string, uint32_t> sorted(node.gpus().begin(), node.gpus().end());
  std::string text;
  for (const auto& [type, count] : sorted) {
    text += fmt::format("{}gpu{}{}:{}", text.empty() ? "" : ",", type.empty() ? "" : ":",
                        Harmless(type), count);
  }
  return text.empty() ? "(null)" : text;
}

std::string UsedGresOf(const v1::Node& node) {
  const std::map<std::string, uint32_t> types(node.gpus().begin(), node.gpus().end());
  std::string text;
  for (const auto& [type, count] : types) {
    const auto used = node.used_gpus().find(type);
    text += fmt::format("{}gpu{}{}:{}", text.empty() ? "" : ",", type.empty() ? "" : ":",
                        Harmless(type), used == node.used_gpus().end() ? 0 : used->second);
  }
  return text.empty() ? "(null)" : text;
}

std::string Limit(bool has, const google::protobuf::Duration& limit, std::string_view without) {
  return has ? SqueueTime(absl::Seconds(limit.seconds())) : std::string(without);
}

using Nodes = std::vector<SeenNode>;

// "alloc/idle/other/total".
std::string CpuCounts(const Nodes& nodes) {
  uint64_t used = 0;
  uint64_t idle = 0;
  uint64_t total = 0;
  for (const auto& [node, state] : nodes) {
    used += node->used_cpus();
    total += node->cpus();
    if (!state.IsOut()) idle += node->cpus() - std::min(node->cpus(), node->used_cpus());
  }
  return fmt::format("{}/{}/{}/{}", used, idle, total - std::min(total, used + idle), total);
}

std::string NodeCounts(const Nodes& nodes, bool with_others) {
  size_t used = 0;
  size_t idle = 0;
  for (const auto& [node, state] : nodes) {
    used += state.IsBusy() ? 1 : 0;
    idle += !state.IsBusy() && !state.IsOut() ? 1 : 0;
  }
  if (!with_others) return fmt::format("{}/{}", used, idle);
  return fmt::format("{}/{}/{}/{}", used, idle, nodes.size() - used - idle, nodes.size());
}

// "8", or "8+" if some nodes have more.
std::string Least(const Nodes& nodes, uint64_t (*amount)(const v1::Node&)) {
  if (nodes.empty()) return "0";
  uint64_t least = amount(*nodes.front().node);
  uint64_t most = least;
  for (const SeenNode& seen : nodes) {
    least = std::min(least, amount(*seen.node));
    most = std::max(most, amount(*seen.node));
  }
  return fmt::format("{}{}", least, most > least ? "+" : "");
}
uint64_t CpusOf(const v1::Node& node) { return node.cpus(); }
uint64_t MebibytesOf(const v1::Node& node) { return node.memory_bytes() >> 20; }

std::string FeaturesOf(const v1::Node& node) {
  const std::string text = Harmless(fmt::format("{}", fmt::join(node.features(), ",")));
  return text.empty() ? "(null)" : text;
}

uint64_t UsedMebibytesOf(const v1::Node& node) { return node.used_memory_bytes() >> 20; }

// The codes of columns that only --Format has, in place of letters.
constexpr char kUsedMemory = 1;
constexpr char kComment = 2;
constexpr char kExtra = 3;
constexpr char kUsedGpus = 4;
constexpr char kPort = 5;
constexpr char kStateComplete = 6;

// The word of sinfo for what it does not know.
std::string NotKnown(const v1::PoolLoad&) { return "N/A"; }

std::string OrUnknown(const std::string& text) { return text.empty() ? "Unknown" : Harmless(text); }

// A column of a partition, of each node, or of several nodes together.
struct NodeColumn {
  char letter;
  std::string_view heading;
  std::string (*of_pool)(const v1::PoolLoad&) = nullptr;
  std::string (*of_node)(const SeenNode&) = nullptr;
  std::string (*of_nodes)(const Nodes&) = nullptr;
  // A partition without nodes has it in place of a node's value.
  std::string_view of_none = "";
};
using P = v1::PoolLoad;
using N = SeenNode;
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
    NodeColumn{'t', "STATE", nullptr, [](const N& n) { return Harmless(n.state.Short()); }, nullptr,
               "n/a"},
    NodeColumn{'T', "STATE", nullptr, [](const N& n) { return Harmless(n.state.Long()); }, nullptr,
               "n/a"},
    NodeColumn{'c', "CPUS", nullptr, nullptr, [](const Nodes& n) { return Least(n, CpusOf); }},
    NodeColumn{'m', "MEMORY", nullptr, nullptr,
               [](const Nodes& n) { return Least(n, MebibytesOf); }},
    NodeColumn{'G', "GRES", nullptr, [](const N& n) { return GresOf(*n.node); }, nullptr, "(null)"},
    NodeColumn{'f', "AVAIL_FEATURES", nullptr, [](const N& n) { return FeaturesOf(*n.node); },
               nullptr, "(null)"},
    NodeColumn{'b', "ACTIVE_FEATURES", nullptr, [](const N& n) { return FeaturesOf(*n.node); },
               nullptr, "(null)"},
    NodeColumn{
        'E', "REASON", nullptr,
        [](const N& n) { return n.node->reason().empty() ? "none" : OneLine(n.node->reason()); },
        nullptr, "none"},
    NodeColumn{'u', "USER", nullptr, [](const N& n) { return OrUnknown(n.node->reason_user()); },
               nullptr, "Unknown"},
    NodeColumn{'H', "TIMESTAMP", nullptr,
               [](const N& n) { return LocalTime(n.node->reason_time(), "Unknown"); }, nullptr,
               "Unknown"},
    NodeColumn{'n', "HOSTNAMES", nullptr, [](const N& n) { return Harmless(n.node->name()); }},
    NodeColumn{'N', "NODELIST", nullptr, nullptr,
               [](const Nodes& nodes) {
                 std::vector<std::string> names;
                 for (const SeenNode& seen : nodes) names.push_back(seen.node->name());
                 return Harmless(HostList(names));
               }},
    NodeColumn{'D', "NODES", nullptr, nullptr,
               [](const Nodes& nodes) { return fmt::format("{}", nodes.size()); }},
    NodeColumn{'C', "CPUS(A/I/O/T)", nullptr, nullptr, [](const Nodes& n) { return CpuCounts(n); }},
    NodeColumn{'F', "NODES(A/I/O/T)", nullptr, nullptr,
               [](const Nodes& n) { return NodeCounts(n, true); }},
    NodeColumn{'A', "NODES(A/I)", nullptr, nullptr,
               [](const Nodes& n) { return NodeCounts(n, false); }},
    NodeColumn{kUsedMemory, "ALLOCMEM", nullptr, nullptr,
               [](const Nodes& n) { return Least(n, UsedMebibytesOf); }},
    // These are columns that no cluster tells.
    NodeColumn{'B', "MAX_CPUS_PER_NODE", NotKnown},
    NodeColumn{'d', "TMP_DISK", NotKnown},
    NodeColumn{'e', "FREE_MEM", NotKnown},
    NodeColumn{'g', "GROUPS", NotKnown},
    NodeColumn{'h', "OVERSUBSCRIBE", NotKnown},
    NodeColumn{'I', "PRIO_JOB_FACTOR", NotKnown},
    NodeColumn{'M', "PREEMPT_MODE", NotKnown},
    NodeColumn{'o', "NODE_ADDR", NotKnown},
    NodeColumn{'O', "CPU_LOAD", NotKnown},
    NodeColumn{'p', "PRIO_TIER", NotKnown},
    NodeColumn{'r', "ROOT", NotKnown},
    NodeColumn{'S', "ALLOCNODES", NotKnown},
    NodeColumn{'U', "USER", nullptr, [](const N& n) { return OrUnknown(n.node->reason_user()); },
               nullptr, "Unknown"},
    NodeColumn{'v', "VERSION", NotKnown},
    NodeColumn{'V', "CLUSTER", NotKnown},
    NodeColumn{'w', "WEIGHT", NotKnown},
    NodeColumn{'X', "SOCKETS", NotKnown},
    NodeColumn{'Y', "CORES", NotKnown},
    NodeColumn{'Z', "THREADS", NotKnown},
    NodeColumn{'z', "S:C:T", NotKnown},
    NodeColumn{kComment, "COMMENT", NotKnown},
    NodeColumn{kExtra, "EXTRA", NotKnown},
    NodeColumn{kUsedGpus, "GRES_USED", nullptr, [](const N& n) { return UsedGresOf(*n.node); },
               nullptr, "(null)"},
    NodeColumn{kPort, "PORT", NotKnown},
    NodeColumn{kStateComplete, "STATECOMPLETE", nullptr,
               [](const N& n) { return Harmless(n.state.Complete()); }, nullptr, "n/a"},
};

// The names of --Format.
constexpr std::pair<std::string_view, char> kLongNames[] = {
    {"AllocMem", kUsedMemory},
    {"AllocNodes", 'S'},
    {"Available", 'a'},
    {"Cluster", 'V'},
    {"Comment", kComment},
    {"Cores", 'Y'},
    {"CPUs", 'c'},
    {"CPUsLoad", 'O'},
    {"CPUsState", 'C'},
    {"DefaultTime", 'L'},
    {"Disk", 'd'},
    {"Extra", kExtra},
    {"Features", 'f'},
    {"features_act", 'b'},
    {"FreeMem", 'e'},
    {"Gres", 'G'},
    {"GresUsed", kUsedGpus},
    {"Groups", 'g'},
    {"MaxCPUsPerNode", 'B'},
    {"Memory", 'm'},
    {"NodeAddr", 'o'},
    {"NodeAI", 'A'},
    {"NodeAIOT", 'F'},
    {"NodeHost", 'n'},
    {"NodeList", 'N'},
    {"Nodes", 'D'},
    {"OverSubscribe", 'h'},
    {"Partition", 'P'},
    {"PartitionName", 'R'},
    {"Port", kPort},
    {"PreemptMode", 'M'},
    {"PriorityJobFactor", 'I'},
    {"PriorityTier", 'p'},
    {"Reason", 'E'},
    {"Root", 'r'},
    {"Size", 's'},
    {"SocketCoreThread", 'z'},
    {"Sockets", 'X'},
    {"StateCompact", 't'},
    {"StateLong", 'T'},
    {"StateComplete", kStateComplete},
    {"Threads", 'Z'},
    {"Time", 'l'},
    {"TimeStamp", 'H'},
    {"User", 'u'},
    {"UserLong", 'U'},
    {"Version", 'v'},
    {"Weight", 'w'},
};

const NodeColumn& NodeColumnOf(char letter) {
  return *std::find_if(kNodeColumns.begin(), kNodeColumns.end(),
                       [&](const NodeColumn& column) { return column.letter == letter; });
}

bool IsAsked(const std::vector<std::string>& list, std::string_view word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

bool Takes(const NodeQuery& query, const SeenNode& seen, const std::string& pool) {
  const v1::Node& node = *seen.node;
  const bool is_there =
      std::find(node.pools().begin(), node.pools().end(), pool) != node.pools().end();
  const bool is_asked =
      query.states.empty() ||
      std::any_of(query.states.begin(), query.states.end(), [&](const std::string& states) {
        const absl::StatusOr<bool> is_it = seen.state.IsAskedBy(states);
        return is_it.ok() && *is_it;
      });
  const bool is_out = !query.with_reason || !query.states.empty() || seen.state.NeedsReason();
  return is_there && is_asked && is_out && IsAsked(query.nodes, node.name()) &&
         !(query.only_silent && seen.state.Answers()) &&
         !(query.only_answering && !seen.state.Answers());
}

// Nodes of which the same is shown.
struct Group {
  int place = 0;  // of the first of their partitions
  Nodes nodes;
  std::set<const v1::Node*> known;  // the same nodes
};

// The values that tell nodes of different rows apart.
std::vector<std::string> KeyOf(const v1::PoolLoad& pool, const SeenNode& seen,
                               const ColumnFormat& format, const NodeQuery& query) {
  std::vector<std::string> key;
  if (query.by_node) key = {seen.node->name(), pool.pool()};
  for (const FormatField& field : format.fields) {
    const NodeColumn& column = NodeColumnOf(field.letter);
    const bool is_size =
        column.letter == 'c' || column.letter == 'm' || column.letter == kUsedMemory;
    if (column.of_pool != nullptr) key.push_back(column.of_pool(pool));
    if (column.of_node != nullptr) key.push_back(column.of_node(seen));
    if (is_size && (query.is_exact || column.letter == kUsedMemory))
      key.push_back(column.of_nodes({seen}));
  }
  return key;
}

// The groups in the order in which partitions and nodes come. A partition without nodes that are
// asked for has a group of its own where partitions are listed.
std::vector<Group> Groups(const v1::ClusterDetails& details, const Nodes& nodes,
                          const ColumnFormat& format, const NodeQuery& query) {
  const bool lists_pools = !query.by_node && (format.Has('P') || format.Has('R'));
  std::vector<Group> groups;
  std::map<std::vector<std::string>, size_t> places;
  for (int place = 0; place < details.pools_size(); ++place) {
    const v1::PoolLoad& pool = details.pools(place);
    if (!IsAsked(query.partitions, pool.pool())) continue;
    const size_t before = groups.size();
    for (const SeenNode& seen : nodes) {
      if (!Takes(query, seen, pool.pool())) continue;
      const auto [at, is_new] = places.try_emplace(KeyOf(pool, seen, format, query), groups.size());
      if (is_new) groups.push_back({place, {}, {}});
      Group& group = groups[at->second];
      if (group.known.insert(seen.node).second) group.nodes.push_back(seen);
    }
    const bool is_empty = groups.size() == before;
    if (is_empty && lists_pools) groups.push_back({place, {}, {}});
  }
  return groups;
}

// Numbers in names by their value: n2 comes before n10.
bool ComesBefore(std::string_view a, std::string_view b) {
  const auto number_at_end = [](std::string_view name) {
    size_t begin = name.size();
    while (begin > 0 && contract::IsDigit(name[begin - 1])) --begin;
    return begin;
  };
  const size_t a_number = number_at_end(a);
  const size_t b_number = number_at_end(b);
  if (a.substr(0, a_number) != b.substr(0, b_number)) return a < b;
  const auto value_of = [](std::string_view digits) {
    return contract::ParseNumber<uint64_t>(digits).value_or(0);
  };
  return value_of(a.substr(a_number)) < value_of(b.substr(b_number));
}

std::string ValueOf(const v1::ClusterDetails& details, const Group& group, char letter) {
  const NodeColumn& column = NodeColumnOf(letter);
  if (column.of_pool != nullptr) return column.of_pool(details.pools(group.place));
  if (column.of_nodes != nullptr) return column.of_nodes(group.nodes);
  return group.nodes.empty() ? std::string(column.of_none) : column.of_node(group.nodes.front());
}

// Negative: `a` comes first; 0: they are equal.
int Compare(const v1::ClusterDetails& details, const Group& a, const Group& b, const SortKey& key) {
  const auto order = [](auto one, auto other) { return one < other ? -1 : other < one ? 1 : 0; };
  const bool have_nodes = !a.nodes.empty() && !b.nodes.empty();
  if (key.is_clusters) return order(a.place, b.place);
  if ((key.letter == 'N' || key.letter == 'n') && have_nodes) {
    const std::string& one = a.nodes.front().node->name();
    const std::string& other = b.nodes.front().node->name();
    return ComesBefore(one, other) ? -1 : ComesBefore(other, one) ? 1 : 0;
  }
  if ((key.letter == 'T' || key.letter == 't') && have_nodes)
    return order(a.nodes.front().state.rank(), b.nodes.front().state.rank());
  return Compare(ToSortValue(ValueOf(details, a, key.letter)),
                 ToSortValue(ValueOf(details, b, key.letter)));
}

void SortBy(const std::vector<SortKey>& keys, const v1::ClusterDetails& details,
            std::vector<Group>* groups) {
  std::stable_sort(groups->begin(), groups->end(), [&](const Group& a, const Group& b) {
    for (const SortKey& key : keys) {
      const int order = Compare(details, a, b, key);
      if (order != 0) return (order < 0) != key.descending;
    }
    return false;
  });
}

// A list of nodes goes by their names, one of partitions by those and then by the nodes' states.
void Sort(bool by_node, std::vector<Group>* groups) {
  std::stable_sort(groups->begin(), groups->end(), [by_node](const Group& a, const Group& b) {
    if (by_node) return ComesBefore(a.nodes.front().node->name(), b.nodes.front().node->name());
    if (a.place != b.place) return a.place < b.place;
    const auto rank_of = [](const Group& group) {
      return group.nodes.empty() ? 0 : group.nodes.front().state.rank();
    };
    return rank_of(a) > rank_of(b);
  });
}

}  // namespace

std::string NodeLetters() {
  std::string letters;
  for (const NodeColumn& column : kNodeColumns) {
    if (contract::IsLetter(column.letter)) letters += column.letter;
  }
  return letters;
}

LongNames NodeLongNames() { return kLongNames; }

std::vector<std::string> NodeHeadings(const ColumnFormat& format) {
  std::vector<std::string> headings;
  for (const FormatField& field : format.fields) {
    headings.emplace_back(NodeColumnOf(field.letter).heading);
  }
  return headings;
}

std::vector<std::vector<std::string>> NodeRows(const v1::ClusterDetails& details,
                                               const ColumnFormat& format, const NodeQuery& query) {
  if (query.is_none) return {};
  Nodes nodes;
  for (const v1::Node& node : details.nodes()) nodes.push_back({&node, InSlurmsWords(node)});
  std::vector<Group> groups = Groups(details, nodes, format, query);
  Sort(query.by_node, &groups);
  SortBy(query.sort, details, &groups);
  std::vector<std::vector<std::string>> rows;
  for (const Group& group : groups) {
    auto& row = rows.emplace_back();
    for (const FormatField& field : format.fields) {
      row.push_back(ValueOf(details, group, field.letter));
    }
  }
  return rows;
}

}  // namespace muster::cli
