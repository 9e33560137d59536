// Turns what was committed into the changes that watchers get, each with its job as it was right
// after the step. Belongs to whoever carries out effects: the effects thread, or its detour while
// that has changes; never both at a time.
#ifndef MUSTER_BROKER_ENGINE_CHANGE_FEED_H_
#define MUSTER_BROKER_ENGINE_CHANGE_FEED_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/engine/change_tail.h"
#include "broker/engine/cluster_board.h"
#include "broker/store/job_past.h"
#include "broker/store/store.h"

namespace muster::broker {

class ChangeFeed {
 public:
  struct Options {
    // Jobs that changed lately, about 1 KiB each. One that is not among them is read from the store
    // at its next change.
    size_t max_known_jobs = 20'000;
    size_t max_known_bytes = size_t{64} << 20;  // of them, with all the nodes of their runs
  };

  ChangeFeed(Options options, const store::Store* store, const ClusterBoard* clusters,
             ChangeTail* tail)
      : options_(options), store_(store), clusters_(clusters), tail_(tail) {}

  // Take note of what was committed, all of it and in order: the changes, and the sequence of the
  // latest one, not 0. AddFromMemory reads nothing. False: it would have to, and has done nothing.
  bool AddFromMemory(const core::Changes& committed, uint64_t last);
  void Add(const core::Changes& committed, uint64_t last);

 private:
  // A job as it was after its latest change.
  struct Known {
    store::StepsSoFar steps;
    v1::Job job;                            // without runs, and without what ShowState fills in
    std::shared_ptr<const v1::Run> latest;  // run; null: it has none
    std::shared_ptr<const v1::Transition> hold;  // the latest; null: not known
    ChangeBytes shown;                           // null: not yet
    std::list<uint64_t>::iterator use;           // among those used last
  };
  // Holds the changes of one job in one step: its transitions, and what is written last.
  struct Step {
    const core::InsertJob* insert = nullptr;
    std::vector<const core::AppendTransition*> transitions;
    const core::UpdateJob* update = nullptr;
    const core::EditJob* edit = nullptr;
    std::vector<const core::PutRun*> runs;
    std::vector<const core::PutUsage*> usages;
    const core::PutWithdrawal* withdrawal = nullptr;
  };
  using Steps = std::vector<std::pair<uint64_t, Step>>;

  static Steps StepsOf(const core::Changes& changes);
  // True if the step has a change for watchers.
  static bool Tells(const Step& step);
  // The jobs of which only the store knows what they were, each with its first step.
  using Unknown = std::vector<std::pair<uint64_t, const Step*>>;
  Unknown UnknownOf(const Steps& steps) const;
  // Holds the jobs with a run whose usage came late, by number: only the store has such runs.
  using LateJobs = std::map<uint64_t, v1::Job>;
  absl::StatusOr<LateJobs> ReadLateJobs(const Steps& steps) const;
  // Reads what they were right before their steps. The store may be ahead of these: it commits on
  // while the changes wait.
  absl::Status Learn(const Unknown& unknown, const LateJobs& late);
  void LearnFrom(v1::Job now, const store::JobPast& past);
  void Append(const Steps& steps, const LateJobs& late, uint64_t last);
  void ForgetAll();
  v1::ClusterKind KindOf(const std::string& cluster) const;
  void AddStep(uint64_t job, const Step& step, const LateJobs& late,
               std::vector<TailEntry>* entries);
  void AddTransition(const core::AppendTransition& change, const Step& step, Known* known,
                     std::vector<TailEntry>* entries);
  // Makes a message of the change, which is what the job was before the next one.
  void Show(uint64_t sequence, const v1::Transition* transition, const v1::Run* run, Known* known,
            std::vector<TailEntry>* entries);
  static size_t BytesOf(const ChangeBytes& shown);
  Known* Insert(v1::Job job);
  void Forget(uint64_t job);

  const Options options_;
  const store::Store* const store_;
  const ClusterBoard* const clusters_;
  ChangeTail* const tail_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Known>> known_;
  std::list<uint64_t> uses_;  // the jobs in known_, the one used last first
  size_t known_bytes_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CHANGE_FEED_H_
