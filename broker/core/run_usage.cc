#include "broker/core/run_usage.h"

#include <algorithm>
#include <utility>

#include "broker/core/amounts.h"
#include "broker/core/timestamps.h"

namespace muster::core {
namespace {

constexpr int64_t kMicrosOfDay = int64_t{24} * 3600 * 1'000'000;
constexpr int64_t kMicrosOfMs = 1000;

// `millis` are thousandths of a core or of a GPU.
int64_t Used(double millis, int64_t ms) {
  return static_cast<int64_t>(millis * static_cast<double>(ms) / 1000);
}

}  // namespace

int64_t DayOf(int64_t unix_micros) {
  const int64_t day = unix_micros / kMicrosOfDay;
  return unix_micros % kMicrosOfDay < 0 ? day - 1 : day;
}

UsageKey KeyOf(const AddUsage& row) {
  return {row.day, row.project, row.user, row.cluster, row.gpu_type};
}

void AddTo(const AddUsage& row, AddUsage* sum) {
  sum->runs += row.runs;
  sum->run_ms += row.run_ms;
  sum->core_ms += row.core_ms;
  sum->gpu_ms += row.gpu_ms;
}

AddUsage& RunUsage::RowOf(int64_t day, const v1::Run& run, const Requirements& requirements,
                          const std::string& user) {
  AddUsage row{.day = day,
               .project = requirements.project,
               .user = user,
               .cluster = run.cluster(),
               .gpu_type = GpuTypeOf(requirements)};
  UsageKey key = KeyOf(row);
  return rows_.try_emplace(std::move(key), std::move(row)).first->second;
}

void RunUsage::Add(const v1::Run& run, const Requirements& requirements, const std::string& user) {
  if (!run.has_start_time() || !run.has_end_time()) return;
  const int64_t end = ToUnixMicros(run.end_time());
  const int64_t last_day = DayOf(end);
  ++RowOf(last_day, run, requirements, user).runs;
  const Amounts amounts = AmountsOf(requirements);
  const int64_t first_counted = (last_day - kMaxDaysOfRun + 1) * kMicrosOfDay;
  int64_t from = std::max(ToUnixMicros(run.start_time()), first_counted);
  while (from < end) {
    const int64_t day = DayOf(from);
    const int64_t to = std::min(end, (day + 1) * kMicrosOfDay);
    const int64_t ms = (to - from) / kMicrosOfMs;
    AddUsage& row = RowOf(day, run, requirements, user);
    row.run_ms += ms;
    row.core_ms += Used(amounts[0], ms);
    row.gpu_ms += Used(amounts[2], ms);
    from = to;
  }
}

std::vector<AddUsage> RunUsage::Take() {
  std::vector<AddUsage> rows;
  rows.reserve(rows_.size());
  for (auto& [key, row] : std::exchange(rows_, {})) rows.push_back(std::move(row));
  return rows;
}

}  // namespace muster::core
