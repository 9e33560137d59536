// Removes what is below a directory, except for what is mounted there.
//
// Errors are told in words. Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_TREE_REMOVAL_H_
#define MUSTER_AGENTS_MACHINES_TREE_REMOVAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::machines {

struct TreeRemoval {
  bool is_gone = false;
  bool is_late = false;      // the time was up before
  int64_t steps = 0;         // what was removed, or brought nearer to it
  std::string trouble = {};  // the first that could not be removed, why, and what to do

  std::string Encode() const;
  static std::optional<TreeRemoval> Decode(std::string_view bytes);
};

// Returns the number of the mount that an open file is on, bind mounts too. Nothing: the system
// does not tell (Linux before 3.15, no /proc).
std::optional<uint64_t> MountOf(int file);

// Removes `name` in the open directory, and all below if it is a directory, as far as that is of
// `mount`. Links are not followed. It works until `until_ms`, by SteadyMilliseconds, but removes
// one entry at least; another call does the rest. `path`: of the directory, to be told.
TreeRemoval RemoveTree(int directory, const std::string& path, const std::string& name,
                       uint64_t mount, int64_t until_ms);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_TREE_REMOVAL_H_
