// Removes users' files in work/ of old runs every now and then (old_work.h). The supervisor's
// program does it, on this machine as on hosts over SSH.
#ifndef MUSTER_AGENTS_MACHINES_WORK_SWEEPER_H_
#define MUSTER_AGENTS_MACHINES_WORK_SWEEPER_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "sync/mutex.h"

namespace muster::machines {

// Returns the time from one look to the next.
absl::Duration SweepInterval(absl::Duration keep);

// Words that are not to be told again and again. Not thread-safe.
class RareWords {
 public:
  // Returns whether they are to be told now, by SteadyMilliseconds: not if they were within the
  // hour.
  bool AreDue(const std::string& words, int64_t now_ms);

 private:
  std::map<std::string, int64_t> told_ms_;
};

// The steps on one host, one after the other. Not thread-safe.
class SweepSteps {
 public:
  SweepSteps(std::string host, absl::Duration keep) : host_(std::move(host)), keep_(keep) {}

  // Returns the arguments of the supervisor's program for one step, which takes two seconds or
  // little more.
  std::vector<std::string> Words(const std::string& runs_directory) const;
  // Logs what the program said of a step. Returns whether another step is to follow at once.
  bool Take(std::string_view answer);
  void TellTrouble(std::string_view trouble, int64_t runs = 0);

 private:
  const std::string host_;
  const absl::Duration keep_;
  std::string last_;  // the run that the step before ended at
  RareWords told_;
};

// This machine's, in a thread of its own. One agent for each directory of runs.
class WorkSweeper {
 public:
  struct Options {
    std::string supervisor;  // the path of its program
    std::string runs_directory;
    std::string hostname;
    absl::Duration keep;  // infinite: nothing is ever removed
  };

  explicit WorkSweeper(Options options);
  // Returns after the step that is under way.
  ~WorkSweeper();

 private:
  void Loop();
  // Returns whether another step is to follow at once.
  bool Step();

  const Options options_;
  SweepSteps steps_;  // the thread's
  Mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_WORK_SWEEPER_H_
