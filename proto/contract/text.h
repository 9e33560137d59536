// Debian's Abseil is built with a string_view of its own that does not convert to or from
// std::string_view. Our API uses std::string_view; these two functions are the only bridge.
#ifndef MUSTER_PROTO_CONTRACT_TEXT_H_
#define MUSTER_PROTO_CONTRACT_TEXT_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace muster {

inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}
inline std::string_view ToStd(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

}  // namespace muster

#endif  // MUSTER_PROTO_CONTRACT_TEXT_H_
