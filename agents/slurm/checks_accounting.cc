// Checks the rights of the user: slurmdbd, accounts and QOS, partitions.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "agents/slurm/checks.h"
#include "agents/slurm/fields.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// So many partitions get a line each; a cluster with more gets one line for all.
constexpr size_t kMaxPartitionLines = 64;

std::set<std::string> Names(std::string_view list) {
  std::set<std::string> names;
  for (std::string_view name : Split(list, ',')) {
    if (!name.empty()) names.emplace(name);
  }
  return names;
}

bool Meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

// Maps names that nothing else stands for to themselves.
Asker::Lines Alone(const std::set<std::string>& names) {
  Asker::Lines lines;
  for (const std::string& name : names) lines[name] = {name};
  return lines;
}

bool HasLimit(const Partition& partition, const std::string& key) {
  return std::any_of(partition.limits.begin(), partition.limits.end(),
                     [&](const std::string& limit) { return limit.starts_with(key + "="); });
}

std::string LimitText(const v1::Pool& pool) {
  const auto written = [](const google::protobuf::Duration& limit) {
    return contract::FormatDuration(absl::Seconds(limit.seconds()));
  };
  std::string text = pool.has_max_time_limit()
                         ? fmt::format("time limit {}", written(pool.max_time_limit()))
                         : "no time limit";
  if (pool.has_default_time_limit())
    text += fmt::format(" (default {})", written(pool.default_time_limit()));
  if (pool.max_nodes() > 0) text += fmt::format(", at most {} nodes a job", pool.max_nodes());
  return text;
}

struct NodeCount {
  uint32_t all = 0;
  uint32_t working = 0;
  std::map<std::string, uint32_t> gpus;
};

NodeCount CountNodes(const std::string& partition, const std::vector<v1::Node>& nodes) {
  NodeCount count;
  for (const v1::Node& node : nodes) {
    if (std::find(node.pools().begin(), node.pools().end(), partition) == node.pools().end())
      continue;
    ++count.all;
    if (!TakesWork(node.state())) continue;
    ++count.working;
    for (const auto& [type, gpus] : node.gpus()) count.gpus[type] += gpus;
  }
  return count;
}

// Describes the resources that jobs find there.
std::string Describe(const Partition& partition, const NodeCount& count) {
  std::string text = fmt::format("{}, {}; {} of {} nodes take work", partition.pool.state(),
                                 LimitText(partition.pool), count.working, count.all);
  for (const auto& [type, gpus] : count.gpus) text += fmt::format(", {} GPUs {}", gpus, type);
  if (!partition.limits.empty()) text += fmt::format("; {}", fmt::join(partition.limits, " "));
  return text;
}

// Returns whether the user's jobs can run there.
bool JudgePartition(const Partition& partition, const NodeCount& count, const Asker& asker,
                    agents::CheckList* checks) {
  const std::string subject = "partition " + partition.pool.name();
  const std::string seen = Describe(partition, count);
  const std::string keeps_out = KeepsOut(partition, asker);
  if (!keeps_out.empty()) {
    checks->Warn(v1::CHECK_CODE_POOL, subject,
                 fmt::format("the user may not use it ({}): {}", keeps_out, seen),
                 "use another partition, or ask the cluster's administrator for access");
  } else if (!partition.pool.available() || count.working == 0) {
    checks->Warn(v1::CHECK_CODE_POOL, subject, fmt::format("it starts no jobs now: {}", seen),
                 "jobs wait there; sinfo -R tells why nodes are out of service");
  } else {
    checks->Ok(v1::CHECK_CODE_POOL, subject, seen);
    return true;
  }
  return false;
}

}  // namespace

// Slurm ignores the list of those who may not use a partition if there is a list of those who may.
std::string KeepsOut(const Partition& partition, const Asker& asker) {
  struct Rule {
    std::string_view key;
    Asker::Lines mine;
    bool allows;
  };
  const std::array<Rule, 5> rules = {{{"AllowGroups", Alone(asker.groups), true},
                                      {"AllowAccounts", asker.accounts, true},
                                      {"AllowQos", Alone(asker.qos), true},
                                      {"DenyAccounts", asker.accounts, false},
                                      {"DenyQos", Alone(asker.qos), false}}};
  constexpr std::string_view kDeny = "Deny";
  for (const std::string& limit : partition.limits) {
    const size_t equals = limit.find('=');
    const std::string_view key = std::string_view(limit).substr(0, equals);
    // Slurm lets root and SlurmUser in: validate_group() and the check of PART_FLAG_ROOT_ONLY in
    // its job_mgr.c.
    if (asker.is_privileged && (key == "RootOnly" || key == "AllowGroups")) continue;
    if (limit == "RootOnly=YES") return limit;
    for (const Rule& rule : rules) {
      if (key != rule.key || rule.mine.empty()) continue;
      if (!rule.allows && HasLimit(partition, "Allow" + std::string(key.substr(kDeny.size()))))
        continue;
      const std::set<std::string> named = Names(std::string_view(limit).substr(equals + 1));
      const auto is_named = [&](const auto& one) { return Meet(one.second, named); };
      const bool is_out = rule.allows ? std::none_of(rule.mine.begin(), rule.mine.end(), is_named)
                                      : std::all_of(rule.mine.begin(), rule.mine.end(), is_named);
      if (is_out) return limit;
    }
  }
  return {};
}

bool ListsSubaccounts(const ClusterSettings& settings) {
  return IsFrom(settings, 23, 0).value_or(true);
}

Asker::Lines LinesOf(const std::vector<Association>& associations, bool lists_subaccounts) {
  Asker::Lines lines;
  for (const Association& one : associations) {
    if (lists_subaccounts && one.line.empty()) return {};
    lines[one.account] = lists_subaccounts ? one.line : std::set<std::string>{one.account};
  }
  return lines;
}

bool JudgeAccounting(const absl::Status& history, const absl::Status& accounts,
                     agents::CheckList* checks) {
  constexpr char kSubject[] = "slurmdbd";
  if (absl::IsFailedPrecondition(history)) {
    checks->Warn(v1::CHECK_CODE_ACCOUNTING, kSubject, MessageOf(history),
                 "nothing has to be done; but who canceled a job, and how one ended that left no "
                 "exit record, cannot be told once slurmctld has forgotten it (MinJobAge)");
    return false;
  }
  if (history.ok() && accounts.ok()) {
    checks->Ok(v1::CHECK_CODE_ACCOUNTING, kSubject, "it answers about jobs and about accounts");
    return true;
  }
  checks->Warn(v1::CHECK_CODE_ACCOUNTING, kSubject,
               history.ok() ? MessageOf(accounts) : MessageOf(history),
               "jobs run, and their states come from the queue and exit records meanwhile; ask the "
               "cluster's administrator to start slurmdbd");
  return accounts.ok();
}

std::vector<std::string> AssociationArguments(const ClusterSettings& settings,
                                              const std::string& user) {
  const bool tells_lineage = IsFrom(settings, 24, 11).value_or(false);
  return {"sacctmgr",
          "--noheader",
          "--parsable2",
          "show",
          "user",
          "withassoc",
          "where",
          fmt::format("cluster={}", settings.name),
          fmt::format("name={}", user),
          fmt::format("format=account,partition,qos,defaultaccount,defaultqos{}",
                      tells_lineage ? ",lineage" : "")};
}

std::set<std::string> AccountsInLineage(std::string_view lineage) {
  std::set<std::string> accounts = {};
  const size_t user = lineage.substr(0, lineage.find_last_not_of('/') + 1).rfind('/');
  if (user == std::string_view::npos) return accounts;
  for (std::string_view name : Split(lineage.substr(0, user), '/')) {
    if (!name.empty()) accounts.emplace(name);
  }
  return accounts;
}

std::vector<Association> ParseAssociations(std::string_view output) {
  std::vector<Association> associations;
  for (std::string_view line : Lines(output)) {
    const std::vector<std::string_view> columns = Split(line, '|');
    // A user without any has a line without an account.
    if (columns.size() < 5 || columns.size() > 6 || columns[0].empty()) continue;
    Association association{
        std::string(columns[0]),
        std::string(columns[1]),
        {},
        columns[0] == columns[3],
        std::string(columns[4]),
        columns.size() > 5 ? AccountsInLineage(columns[5]) : std::set<std::string>()};
    for (const std::string& qos : Names(columns[2])) association.qos.push_back(qos);
    associations.push_back(std::move(association));
  }
  return associations;
}

bool NeedsAssociation(std::string_view config) {
  constexpr std::string_view kKey = "AccountingStorageEnforce";
  for (std::string_view line : Lines(config)) {
    if (line.starts_with(kKey)) return line.find("associations") != std::string_view::npos;
  }
  return false;
}

void JudgeAssociations(const std::string& user, const std::vector<Association>& associations,
                       std::optional<bool> needs_one, agents::CheckList* checks) {
  const std::string subject = fmt::format("accounts and QOS of {}", user);
  if (associations.empty() && !needs_one.has_value()) {
    return checks->Warn(v1::CHECK_CODE_ACCOUNTING, subject,
                        "none; whether Slurm refuses jobs of users without one "
                        "(AccountingStorageEnforce) is not told",
                        "if jobs are refused, ask the cluster's administrator for an account");
  }
  if (associations.empty() && *needs_one) {
    return checks->Fail(v1::CHECK_CODE_ACCOUNTING, subject,
                        "the user has no account, and Slurm refuses jobs without one",
                        fmt::format("ask the cluster's administrator: sacctmgr add user {} "
                                    "account=ACCOUNT",
                                    user));
  }
  if (associations.empty())
    return checks->Ok(v1::CHECK_CODE_ACCOUNTING, subject, "none, and none is needed");
  std::set<std::string> accounts;
  std::vector<std::string> told;
  for (const Association& one : associations) {
    accounts.insert(one.account);
    told.push_back(fmt::format(
        "account {}{}{}, QOS {}", one.account, one.partition.empty() ? "" : " in partition ",
        one.partition, one.qos.empty() ? "none" : fmt::format("{}", fmt::join(one.qos, ","))));
  }
  const bool is_choice = accounts.size() > 1;
  checks->Ok(
      v1::CHECK_CODE_ACCOUNTING, subject, fmt::format("{}", fmt::join(told, "; ")),
      is_choice ? "jobs use the default account unless they name another one (slurm.account)" : "");
}

void JudgePartitions(const std::vector<Partition>& partitions, const std::vector<v1::Node>& nodes,
                     const Asker& asker, const std::string& conversion_partition,
                     agents::CheckList* checks) {
  size_t usable = 0;
  bool has_conversion = false;
  for (size_t i = 0; i < partitions.size(); ++i) {
    const Partition& partition = partitions[i];
    const NodeCount count = CountNodes(partition.pool.name(), nodes);
    agents::CheckList untold;
    usable += JudgePartition(partition, count, asker, i < kMaxPartitionLines ? checks : &untold);
    has_conversion = has_conversion || partition.pool.name() == conversion_partition;
  }
  if (partitions.size() > kMaxPartitionLines) {
    checks->Ok(
        v1::CHECK_CODE_POOL, "other partitions",
        fmt::format("{} more are not told one by one", partitions.size() - kMaxPartitionLines));
  }
  if (usable == 0) {
    checks->Fail(v1::CHECK_CODE_POOL, "partitions",
                 partitions.empty() ? "there is none that the user may see"
                                    : "the user's jobs can start in none of them now",
                 "ask the cluster's administrator");
  }
  if (conversion_partition.empty() || has_conversion) return;
  checks->Fail(v1::CHECK_CODE_POOL, "partition for image conversions",
               fmt::format("there is no partition \"{}\"", conversion_partition),
               "set slurm.conversion_partition to one that there is");
}

}  // namespace muster::slurm
