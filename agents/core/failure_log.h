// Log lines about what is tried again and again for a run: one for each change of words.
#ifndef MUSTER_AGENTS_CORE_FAILURE_LOG_H_
#define MUSTER_AGENTS_CORE_FAILURE_LOG_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "sync/mutex.h"

namespace muster::agents {

// Any thread may use it.
class FailureLog {
 public:
  // Logs the failure, unless its words are those of the latest try. OK: it works, and whatever
  // fails next is logged. Returns whether it has logged.
  bool Note(std::string_view event, const std::string& run_key, const absl::Status& status);
  // The run is over: as much is kept as there are runs.
  void Forget(const std::string& run_key);

 private:
  Mutex mutex_;
  // The words that were logged last, by run key and event.
  std::map<std::pair<std::string, std::string>, std::string> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_FAILURE_LOG_H_
