// Finds the name that somebody may have meant.
#ifndef MUSTER_PROTO_CONTRACT_NEAREST_H_
#define MUSTER_PROTO_CONTRACT_NEAREST_H_

#include <string_view>
#include <vector>

namespace muster::contract {

// Returns the candidate that `name` probably misspells or begins; empty if none is near.
std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_NEAREST_H_
