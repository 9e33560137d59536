// Compares the places of paths. Both paths are absolute and normal.
#ifndef MUSTER_PROTO_CONTRACT_PATH_WITHIN_H_
#define MUSTER_PROTO_CONTRACT_PATH_WITHIN_H_

#include <string_view>

namespace muster::contract {

// Returns whether it is the directory, or below it.
inline bool IsWithin(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (directory.ends_with('/') || path.size() == directory.size() ||
          path[directory.size()] == '/');
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PATH_WITHIN_H_
