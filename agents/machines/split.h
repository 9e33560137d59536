// The parts of a text. Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_SPLIT_H_
#define MUSTER_AGENTS_MACHINES_SPLIT_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster::machines {

// Returns the parts between any of these characters; empty parts are left out.
std::vector<std::string> Split(std::string_view text, std::string_view separators);

inline std::vector<std::string> LinesOf(std::string_view text) { return Split(text, "\n"); }

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SPLIT_H_
