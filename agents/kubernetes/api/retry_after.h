// The time that a server that has sent a call away is left alone.
#ifndef MUSTER_AGENTS_KUBERNETES_API_RETRY_AFTER_H_
#define MUSTER_AGENTS_KUBERNETES_API_RETRY_AFTER_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace muster::kubernetes {

// An API server asks for half a minute at most; a proxy that asks for a day must not leave the
// agent blind for so long.
inline constexpr absl::Duration kLongestRetryAfter = absl::Minutes(1);

// Returns the seconds of the header Retry-After, up to that bound; zero if there is none. Header
// names are in small letters.
absl::Duration RetryAfterOf(const std::map<std::string, std::string>& headers);

// The caller's own pause, or half of it, and never less than the server has asked for. It has
// jitter, so that many that were sent away together do not come back together.
absl::Duration PauseOf(absl::Duration own, absl::Duration retry_after);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_RETRY_AFTER_H_
