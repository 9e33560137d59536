// Builds the agent's settings, beside the parts that all daemons share (daemon/settings.h).
#ifndef MUSTER_AGENTS_APP_SETTING_VALUES_H_
#define MUSTER_AGENTS_APP_SETTING_VALUES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::agents {

// Its errors quote the value.
using Setter = std::function<absl::Status(const std::string& value)>;

absl::Status InvalidSetting(std::string_view text);
// "KEY,KEY"; a key has no comma. Empty: none.
std::vector<std::string> SplitAtCommas(std::string_view text);

// "30s", "5m"; above 0.
Setter DurationInto(absl::Duration* out);
// "16Gi", "1048576".
Setter BytesInto(uint64_t* out);
Setter AbsolutePathInto(std::string* out);
Setter OneOf(std::vector<std::string> words, std::function<void(const std::string&)> set);
// "yes" or "no".
Setter YesInto(bool* out);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_SETTING_VALUES_H_
