#ifndef MUSTER_PROTO_CONTRACT_MESSAGE_OF_H_
#define MUSTER_PROTO_CONTRACT_MESSAGE_OF_H_

#include <string>

#include "absl/status/status.h"
#include "contract/text.h"

namespace muster {

// Returns the words of an error, without its code and details.
inline std::string MessageOf(const absl::Status& status) {
  return std::string(ToStd(status.message()));
}

}  // namespace muster

#endif  // MUSTER_PROTO_CONTRACT_MESSAGE_OF_H_
