#include "agents/core/failure_log.h"

#include "contract/text.h"
#include "daemon/log.h"
#include "sync/mutex.h"

namespace muster::agents {

bool FailureLog::Note(std::string_view event, const std::string& run_key,
                      const absl::Status& status) {
  const std::string words(ToStd(status.message()));
  {
    const MutexLock lock(mutex_);
    const std::pair key(run_key, std::string(event));
    if (status.ok()) {
      told_.erase(key);
      return false;
    }
    const auto [told, is_new] = told_.try_emplace(key, words);
    if (!is_new && told->second == words) return false;
    told->second = words;
  }
  LogEvent(spdlog::level::warn, event, {{"run", run_key}, {"error", words}});
  return true;
}

void FailureLog::Forget(const std::string& run_key) {
  const MutexLock lock(mutex_);
  auto it = told_.lower_bound({run_key, ""});
  while (it != told_.end() && it->first.first == run_key) it = told_.erase(it);
}

}  // namespace muster::agents
