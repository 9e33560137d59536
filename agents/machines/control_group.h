// Limits of a run's memory and cores, by the kernel's control groups.
//
// Groups are made only where this process may make them: below the group of a service that was
// given its own (cgroup v2: the service's processes are in a group named muster-agent, as systemd's
// DelegateSubgroup= has it, and the group above is theirs), else at the top, where only root may.
// On cgroup v1 they are also below a group named muster, which an operator may have given away.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_CONTROL_GROUP_H_
#define MUSTER_AGENTS_MACHINES_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/fd.h"

namespace muster::machines {

// The group of a service's own processes, beside which runs have theirs.
inline constexpr char kServiceGroup[] = "muster-agent";
// This file in a run's directory has the directories of its groups, one in each line; it is written
// before the groups are made.
inline constexpr char kGroupsFile[] = "groups";

// The places in which groups are made.
struct GroupPlaces {
  bool is_unified = false;  // cgroup v2
  std::string memory = {};  // a directory; empty: nowhere
  std::string cores = {};
};
// `root` is where the kernel shows groups. `own`: what it says of the groups of this process.
GroupPlaces FindGroupPlaces(const std::string& root = "/sys/fs/cgroup",
                            const std::string& own = "/proc/self/cgroup");

// 0: no limit.
struct GroupLimits {
  uint64_t memory_bytes = 0;
  uint32_t cores = 0;
};

// Holds the groups of one run: one, or on cgroup v1 one for memory and one for cores.
class RunGroup {
 public:
  RunGroup() = default;
  RunGroup(const RunGroup&) = delete;
  RunGroup& operator=(const RunGroup&) = delete;

  // Returns the name that the groups of a run have, made by this process.
  static std::string NameOf(std::string_view run_key);
  // Returns the directories that Make would make.
  static std::vector<std::string> DirectoriesOf(const GroupPlaces& places, const std::string& name,
                                                const GroupLimits& limits);

  // Makes all that the limits ask for, or nothing; returns "", or what failed with which file.
  std::string Make(const GroupPlaces& places, const std::string& name, const GroupLimits& limits);

  // A process that writes "0" to each of these is in the group, and so is all that it starts.
  std::vector<int> Entrances() const;
  // Counts processes that the kernel has killed because the run had reached its limit of memory.
  int64_t CountOomKills() const;
  // Kills what is left in it. False: it could not be removed in time.
  bool Remove();

 private:
  std::string MakeOne(const std::string& directory, bool is_unified, const GroupLimits& limits);

  std::vector<std::string> directories_;
  std::vector<hosts::Fd> entrances_;
};

// The kernel also counts those of the group that it kills for lack of memory on the machine, or in
// a group above; these are none of them. 0 of a group without a limit.
int64_t CountOomKillsAtLimit(const std::string& group);

// Removes the groups that the file in the run's directory names, with all that is left in them. The
// run itself can write there: what is not this run's group is left alone.
void RemoveGroupsOf(const std::string& run_directory);

// The limits that can be set on this machine, found out by setting them.
struct LimitsFound {
  bool memory = false;
  bool cores = false;
  std::string kind = {};  // "control groups (v2)"
  std::string why = {};   // not both

  std::string Encode() const;
  static std::optional<LimitsFound> Decode(std::string_view bytes);
};
LimitsFound ProbeLimits();

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTROL_GROUP_H_
