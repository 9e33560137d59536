// Removes the files that users left in work/ of runs that are long over, where the operator says
// so.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_OLD_WORK_H_
#define MUSTER_AGENTS_MACHINES_OLD_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::machines {

struct OldWork {
  int64_t removed = 0;       // runs whose files are gone
  bool is_more = false;      // the time was up, but a further step will remove more
  std::string last = {};     // the run that the time was up at; empty: all were looked at
  int64_t stuck = 0;         // runs that have files which cannot be removed
  std::string trouble = {};  // the first of them, why, and what to do

  std::string Encode() const;
  static std::optional<OldWork> Decode(std::string_view bytes);
};

// Removes work/ of the runs below `runs_directory` that have begun and are forgotten, and in whose
// directories nothing was made or removed since `before_us` (since 1970); what is mounted in it
// stays. Goes round by the runs' names, beginning behind `after`, until `until_ms` by
// SteadyMilliseconds, but removes one file at least. The next call goes on with what is half
// removed then.
OldWork RemoveOldWork(const std::string& runs_directory, const std::string& after,
                      int64_t before_us, int64_t until_ms);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_OLD_WORK_H_
