#include "agents/machines/leases.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/file_status.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

using agents::LeaseFile;

constexpr std::string_view kPrefix = agents::kLeasePrefix;

}  // namespace

absl::Duration FenceDelay(absl::Duration cancel_grace, int clocks) {
  return cancel_grace + absl::Milliseconds(agents::kLeaseLookMs + agents::kLeaseKillTimeMs +
                                           clocks * agents::kLeaseClockSkewMs);
}

std::string LeaseFileFor(const std::string& run_directory, const std::string& name) {
  const std::filesystem::path path(run_directory);
  return (path.parent_path().parent_path() / name).string();
}

std::string OwnLease::path() const {
  const MutexLock lock(mutex_);
  return path_.empty() ? directory_ + "/lease.none" : path_;
}

absl::Status OwnLease::Renew(absl::Duration remaining) {
  const int64_t now = absl::ToUnixMillis(absl::Now());
  const int64_t steady = MillisecondsSinceBoot();
  if (!std::exchange(is_resumed_, true)) Resume(now);
  const LeaseFile lease = agents::NextLease(number_, now, absl::ToInt64Milliseconds(remaining));
  const bool has_lapsed = now >= end_unix_ms_ || (end_steady_ms_ != 0 && steady >= end_steady_ms_);
  const std::string file =
      has_lapsed ? directory_ + "/" + std::string(kPrefix) + std::to_string(lease.number) : path();
  if (const int error = ReplaceSmallFile(file, agents::FormatLeaseFile(lease), 0600))
    return FileError(error, "write", file);
  number_ = lease.number;
  end_unix_ms_ = lease.end_unix_ms;
  end_steady_ms_ = steady + lease.remaining_ms;
  if (!has_lapsed) return absl::OkStatus();
  {
    const MutexLock lock(mutex_);
    path_ = file;
  }
  RemoveOthers(file);
  return absl::OkStatus();
}

void OwnLease::Resume(int64_t unix_ms) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().string();
    std::string text;
    if (!entry->path().filename().string().starts_with(kPrefix) ||
        ReadSmallFile(file, agents::kMaxLeaseFileBytes, &text) != 0) {
      continue;
    }
    const std::optional<LeaseFile> lease = agents::ParseLeaseFile(text);
    if (!lease.has_value()) continue;
    number_ = std::max(number_, lease->number);
    if (!agents::MayStartUnderLease(lease, unix_ms) || lease->end_unix_ms <= end_unix_ms_) continue;
    end_unix_ms_ = lease->end_unix_ms;
    const MutexLock lock(mutex_);
    path_ = file;
  }
}

void OwnLease::RemoveOthers(const std::string& kept) const {
  std::error_code error;
  std::vector<std::string> others;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().string();
    if (file != kept && entry->path().filename().string().starts_with(kPrefix))
      others.push_back(file);
  }
  for (const std::string& file : others) unlink(file.c_str());
}

}  // namespace muster::machines
