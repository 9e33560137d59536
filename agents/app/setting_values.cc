#include "agents/app/setting_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "contract/text.h"
#include "contract/units.h"

namespace muster::agents {

absl::Status InvalidSetting(std::string_view text) {
  return absl::InvalidArgumentError(ToAbsl(text));
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

Setter DurationInto(absl::Duration* out) {
  return [out](const std::string& value) -> absl::Status {
    const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
    if (!duration.ok()) return duration.status();
    if (*duration <= absl::ZeroDuration()) return InvalidSetting("0 is too short");
    *out = *duration;
    return absl::OkStatus();
  };
}

Setter BytesInto(uint64_t* out) {
  return [out](const std::string& value) -> absl::Status {
    const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
    if (bytes.ok()) *out = *bytes;
    return bytes.status();
  };
}

Setter AbsolutePathInto(std::string* out) {
  return [out](const std::string& value) {
    if (!value.starts_with('/'))
      return InvalidSetting(fmt::format("\"{}\" is not an absolute path", value));
    *out = value;
    return absl::OkStatus();
  };
}

Setter OneOf(std::vector<std::string> words, std::function<void(const std::string&)> set) {
  return [words = std::move(words), set = std::move(set)](const std::string& value) {
    std::string known;
    for (const std::string& word : words) {
      if (word == value) {
        set(value);
        return absl::OkStatus();
      }
      known += (known.empty() ? "" : ", ") + word;
    }
    return InvalidSetting(fmt::format("\"{}\" is none of {}", value, known));
  };
}

Setter YesInto(bool* out) {
  return OneOf({"yes", "no"}, [out](const std::string& value) { *out = value == "yes"; });
}

}  // namespace muster::agents
