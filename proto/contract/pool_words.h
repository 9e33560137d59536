// What the agent of a Kubernetes cluster says of a namespace that takes no runs, for the broker to
// look for.
#ifndef MUSTER_PROTO_CONTRACT_POOL_WORDS_H_
#define MUSTER_PROTO_CONTRACT_POOL_WORDS_H_

#include <string>
#include <string_view>

#include "fmt/format.h"

namespace muster::contract {

// States of pools: the server has no such namespace, or the agent's account may do nothing there.
inline constexpr std::string_view kMissing = "missing";
inline constexpr std::string_view kForbidden = "forbidden";

inline constexpr std::string_view kUntilThen = "; its pool takes no jobs until then: ";

// A warning of the inventory; `problem` as "namespace lab is missing: ...".
inline std::string PoolWarning(std::string_view problem, std::string_view remedy) {
  return fmt::format("{}{}{}", problem, kUntilThen, remedy);
}

// What that warning says is to be done; empty: it is not of that pool.
inline std::string_view PoolRemedy(std::string_view warning, std::string_view pool) {
  const size_t at = warning.find(kUntilThen);
  const bool is_of_pool = warning.starts_with(fmt::format("namespace {} is ", pool));
  return is_of_pool && at != warning.npos ? warning.substr(at + kUntilThen.size()) : "";
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_POOL_WORDS_H_
