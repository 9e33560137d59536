#include "agents/slurm/pool_limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "agents/slurm/fields.h"
#include "agents/slurm/submit.h"
#include "contract/errors.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

// Returns the limit in minutes, as Slurm counts; nothing if there is none.
std::optional<uint64_t> LimitOf(const v1::Pool& pool) {
  if (!pool.has_max_time_limit()) return std::nullopt;
  return static_cast<uint64_t>(pool.max_time_limit().seconds()) / 60;
}

bool Allows(const v1::Pool& pool, uint64_t minutes) {
  const std::optional<uint64_t> limit = LimitOf(pool);
  return !limit.has_value() || minutes <= *limit;
}

std::string Written(uint64_t minutes) { return contract::FormatDuration(absl::Minutes(minutes)); }

// Returns the names of the partitions that the job names; an empty one stands for the default.
std::vector<std::string_view> NamedBy(const v1::JobSpec& spec) {
  return Split(
      spec.slurm().partition().empty() ? spec.placement().pool() : spec.slurm().partition(), ',');
}

// Returns the partitions that the job may run in; none if one is not known. `pool_of` is the pool
// of one.
template <typename One, typename PoolOf>
std::vector<const One*> Wanted(const v1::JobSpec& spec, const std::vector<One>& all,
                               PoolOf pool_of) {
  std::vector<const One*> wanted;
  for (std::string_view name : NamedBy(spec)) {
    const size_t before = wanted.size();
    for (const One& one : all) {
      const v1::Pool& pool = pool_of(one);
      if (name.empty() ? pool.is_default() : pool.name() == name) wanted.push_back(&one);
    }
    if (wanted.size() == before) return {};
  }
  return wanted;
}

bool IsAboutAccounts(const std::string& limit) {
  return limit.starts_with("AllowAccounts=") || limit.starts_with("DenyAccounts=");
}

// Returns the names, and who they are: `account "a"`, `its user's accounts "a", "b"`.
std::string Quoted(std::string_view what, const std::vector<std::string>& names) {
  return names.size() == 1
             ? fmt::format("{} \"{}\"", what, names.front())
             : fmt::format("any {} of its user (\"{}\")", what, fmt::join(names, "\", \""));
}

absl::Status NoRight(const Partition& partition, const std::string& limit, const Asker& asker,
                     const std::string& elsewhere) {
  const bool is_of_qos = limit.find("Qos=") != std::string::npos;
  const std::string_view field = IsAboutAccounts(limit) ? "slurm.account"
                                 : is_of_qos            ? "slurm.qos"
                                                        : "placement.pool";
  std::vector<std::string> accounts;
  for (const auto& [account, unused] : asker.accounts) accounts.push_back(account);
  const std::string who = IsAboutAccounts(limit) ? Quoted("account", accounts)
                          : is_of_qos ? Quoted("QOS", {asker.qos.begin(), asker.qos.end()})
                                      : std::string("the agent's user");
  const std::string_view remedy = IsAboutAccounts(limit)
                                      ? "use another account (slurm.account, --account)"
                                  : is_of_qos ? "use another QOS (slurm.qos, --qos)"
                                              : "ask the cluster's administrator for access";
  return contract::BadField(
      field, fmt::format("partition {} is closed to {} ({}), so that Slurm would never start the "
                         "job; {}{}",
                         partition.pool.name(), who, limit, remedy, elsewhere));
}

}  // namespace

absl::Status CheckTimeLimit(const v1::JobSpec& spec, const std::vector<v1::Pool>& pools) {
  if (!spec.has_time_limit() || !spec.slurm().qos().empty()) return absl::OkStatus();
  const uint64_t minutes = TimeLimitMinutes(spec);
  const std::vector<const v1::Pool*> wanted =
      Wanted(spec, pools, [](const v1::Pool& pool) -> const v1::Pool& { return pool; });
  const bool one_allows = std::any_of(wanted.begin(), wanted.end(),
                                      [&](const v1::Pool* pool) { return Allows(*pool, minutes); });
  if (wanted.empty() || one_allows) return absl::OkStatus();
  const v1::Pool* longest = *std::max_element(
      wanted.begin(), wanted.end(),
      [](const v1::Pool* one, const v1::Pool* other) { return *LimitOf(*one) < *LimitOf(*other); });
  std::vector<std::string_view> others;
  for (const v1::Pool& pool : pools) {
    if (pool.available() && Allows(pool, minutes)) others.push_back(pool.name());
  }
  const std::string elsewhere =
      others.empty()
          ? ""
          : fmt::format(", or use a partition that allows more: {}", fmt::join(others, ", "));
  return contract::BadField(
      "time_limit",
      fmt::format("{} is more than partition {} allows; ask for at most {}{}", Written(minutes),
                  longest->name(), Written(*LimitOf(*longest)), elsewhere));
}

Asker AskerOf(const v1::JobSpec& spec, const Rights& rights) {
  Asker asker;
  asker.is_privileged = rights.is_privileged;
  asker.groups = rights.groups;
  const std::string account = LowerCase(spec.slurm().account());
  const bool has_default = std::any_of(rights.associations.begin(), rights.associations.end(),
                                       [](const Association& one) { return one.is_default; });
  std::vector<Association> mine;
  for (const Association& one : rights.associations) {
    const bool may_be = account.empty() ? one.is_default || !has_default : one.account == account;
    if (!may_be) continue;
    mine.push_back(one);
    if (one.default_qos.empty()) {
      asker.qos.insert(one.qos.begin(), one.qos.end());
    } else {
      asker.qos.insert(one.default_qos);
    }
  }
  asker.accounts = LinesOf(mine, rights.lists_subaccounts);
  if (!account.empty() && mine.empty() && !rights.lists_subaccounts)
    asker.accounts = {{account, {account}}};
  if (!spec.slurm().qos().empty()) asker.qos = {LowerCase(spec.slurm().qos())};
  return asker;
}

absl::Status CheckRights(const v1::JobSpec& spec, const Rights& rights) {
  const std::vector<const Partition*> wanted = Wanted(
      spec, rights.partitions, [](const Partition& one) -> const v1::Pool& { return one.pool; });
  const Asker asker = AskerOf(spec, rights);
  const auto is_open = [&](const Partition& one) { return KeepsOut(one, asker).empty(); };
  if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                    [&](const Partition* one) { return is_open(*one); })) {
    return absl::OkStatus();
  }
  std::vector<std::string_view> open;
  for (const Partition& one : rights.partitions) {
    if (one.pool.available() && is_open(one)) open.push_back(one.pool.name());
  }
  const Partition& first = *wanted.front();
  return NoRight(first, KeepsOut(first, asker), asker,
                 open.empty() ? ""
                              : fmt::format(", or a partition that is open to it (pool, "
                                            "--partition): {}",
                                            fmt::join(open, ", ")));
}

}  // namespace muster::slurm
