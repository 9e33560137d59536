#include "agents/kubernetes/api/retry_after.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"

namespace muster::kubernetes {

absl::Duration RetryAfterOf(const std::map<std::string, std::string>& headers) {
  int64_t seconds = 0;
  const auto told = headers.find("retry-after");
  if (told == headers.end() || !absl::SimpleAtoi(told->second, &seconds) || seconds <= 0)
    return absl::ZeroDuration();
  return std::min(kLongestRetryAfter, absl::Seconds(seconds));
}

absl::Duration PauseOf(absl::Duration own, absl::Duration retry_after) {
  thread_local absl::BitGen random;
  return std::max(own * absl::Uniform(random, 0.5, 1.0),
                  retry_after * absl::Uniform(random, 1.0, 1.5));
}

}  // namespace muster::kubernetes
