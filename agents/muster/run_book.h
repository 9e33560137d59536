// Knows the jobs that are runs: their numbers, and the last observation of each. Any thread may use
// it.
#ifndef MUSTER_AGENTS_MUSTER_RUN_BOOK_H_
#define MUSTER_AGENTS_MUSTER_RUN_BOOK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/job.pb.h"
#include "sync/mutex.h"

namespace muster::remote {

// Times are those of a clock that nobody sets (hosts::SteadyNow).
class RunBook {
 public:
  // A job that waits in the remote broker is looked at again after this time: the feed leaves out
  // why such jobs wait.
  static constexpr absl::Duration kWaitingAge = absl::Seconds(10);
  // Any other job is looked at after this time, in case the feed has lost a change.
  static constexpr absl::Duration kAge = absl::Minutes(1);
  // The end of a run waits at most this long for the rest of its output.
  static constexpr absl::Duration kOutputPatience = absl::Seconds(10);

  // Notes that the run is that job. If the job is known already, its last observation stays.
  void Add(const std::string& run_key, uint64_t job);
  // 0: not known.
  uint64_t JobOf(const std::string& run_key) const;
  bool Knows(const std::string& run_key) const { return JobOf(run_key) != 0; }
  void Forget(const std::string& run_key);

  // Notes that the job has changed. Returns whether it is a run.
  bool Mark(uint64_t job);
  void MarkAll();
  // Returns those of `jobs` that have to be looked at, in order. `is_live` says that the feed
  // reports changes.
  std::vector<uint64_t> TakeDue(const std::vector<uint64_t>& jobs, bool is_live,
                                absl::Duration now);
  // Notes the job as it was seen. A job of another run does not count: a broker whose database was
  // restored gives its numbers out again.
  void Put(const v1::Job& job, absl::Duration now);
  // Notes that the remote broker does not have the job.
  void PutMissing(uint64_t job, absl::Duration now);

  struct Seen {
    std::shared_ptr<const v1::Job> job;          // null: never seen
    bool awaits_output = false;                  // it has ended, and its output may still come
    std::optional<absl::Duration> missing = {};  // for so long; nothing: it is there
  };
  Seen Look(const std::string& run_key, absl::Duration now) const;

 private:
  struct Entry {
    uint64_t number = 0;  // of the job
    std::shared_ptr<const v1::Job> job;
    bool is_marked = true;
    absl::Duration looked = absl::ZeroDuration();
    std::optional<absl::Duration> ended;    // first seen so
    std::optional<absl::Duration> missing;  // since the first look that lacked it
  };
  static bool AwaitsOutput(const Entry& entry, absl::Duration now);
  static bool IsDue(const Entry& entry, bool is_live, absl::Duration now);

  // These are the runs that have had the number: more than one after the remote broker's database
  // was restored, until the older run is forgotten.
  std::vector<std::pair<const std::string, Entry>*> EntriesOf(uint64_t job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);             // by run key
  std::set<std::pair<uint64_t, std::string>> runs_ ABSL_GUARDED_BY(mutex_);  // by number
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_RUN_BOOK_H_
