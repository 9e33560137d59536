#include "agents/slurm/pool_limits.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "agents/slurm/fields.h"
#include "agents/slurm/submit.h"
#include "contract/errors.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// In minutes, as Slurm counts; nothing if there is none.
std::optional<uint64_t> LimitOf(const v1::Pool& pool) {
  if (!pool.has_max_time_limit()) return std::nullopt;
  return static_cast<uint64_t>(pool.max_time_limit().seconds()) / 60;
}

bool Allows(const v1::Pool& pool, uint64_t minutes) {
  const std::optional<uint64_t> limit = LimitOf(pool);
  return !limit.has_value() || minutes <= *limit;
}

std::string Written(uint64_t minutes) { return contract::FormatDuration(absl::Minutes(minutes)); }

// The partitions that the job may run in; none if one is not known.
std::vector<const v1::Pool*> PoolsOf(const v1::JobSpec& spec, const std::vector<v1::Pool>& pools) {
  const std::string& names =
      spec.slurm().partition().empty() ? spec.placement().pool() : spec.slurm().partition();
  std::vector<const v1::Pool*> found;
  for (std::string_view name : Split(names, ',')) {
    const auto pool = std::find_if(pools.begin(), pools.end(), [&](const v1::Pool& one) {
      return name.empty() ? one.is_default() : one.name() == name;
    });
    if (pool == pools.end()) return {};
    found.push_back(&*pool);
  }
  return found;
}

}  // namespace

absl::Status CheckTimeLimit(const v1::JobSpec& spec, const std::vector<v1::Pool>& pools) {
  if (!spec.has_time_limit() || !spec.slurm().qos().empty()) return absl::OkStatus();
  const uint64_t minutes = TimeLimitMinutes(spec);
  const std::vector<const v1::Pool*> wanted = PoolsOf(spec, pools);
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

}  // namespace muster::slurm
