#include "broker/app/fetches.h"

#include <fmt/format.h>

#include <random>

#include "contract/errors.h"
#include "contract/text.h"
#include "sync/mutex.h"

namespace muster::broker {

absl::Status AgentFailed(const absl::Status& status) {
  const bool is_away = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!is_away || contract::GetErrorInfo(status).has_value()) return status;
  return contract::Error(status.code(), "FETCH_FAILED", ToStd(status.message()));
}

absl::Status Fetches::Add(const std::shared_ptr<FileTaker>& taker, std::string* ticket) {
  std::random_device random;
  *ticket = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  const MutexLock lock(mutex_);
  if (takers_.size() >= kMaxFetches) {
    return contract::RetryableError(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_FETCHES",
        fmt::format("files of {} runs are being fetched, the most at the same time; try again",
                    kMaxFetches),
        absl::Seconds(1));
  }
  takers_.emplace(*ticket, taker);
  return absl::OkStatus();
}

std::shared_ptr<FileTaker> Fetches::Find(std::string_view ticket) const {
  const MutexLock lock(mutex_);
  const auto found = takers_.find(ToAbsl(ticket));
  return found == takers_.end() ? nullptr : found->second.lock();
}

size_t Fetches::size() const {
  const MutexLock lock(mutex_);
  return takers_.size();
}

void Fetches::Remove(const std::string& ticket) {
  const MutexLock lock(mutex_);
  takers_.erase(ticket);
}

}  // namespace muster::broker
