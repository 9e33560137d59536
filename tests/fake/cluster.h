// Models a cluster in memory: what truly happens on it, in a time that its owner moves. It knows
// nothing of agents. The backend beside it has the words with which agents ask.
//
//   Submit --> queued --> starting --> running <--> suspended
//                |                        |
//                +--> ended <-- finishing <        Cancel and Vanish end a run in any phase
//
// One thread.
#ifndef MUSTER_TESTS_FAKE_CLUSTER_H_
#define MUSTER_TESTS_FAKE_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/jobs_service.pb.h"
#include "tests/fake/memory_host.h"
#include "tests/sim/loop.h"

namespace muster::fake {

// The true end of a run.
struct TrueEnd {
  enum class Kind { kExit, kSignal, kCanceled, kVanished, kRefused, kNotStarted, kLeaseEnded };
  // The fault of a command that failed.
  enum class Fault { kProgram, kCluster, kPreemption };
  Kind kind = Kind::kExit;
  int code = 0;
  Fault fault = Fault::kProgram;
};

// The doings of one rank of a run, in place of a program.
struct Program {
  absl::Duration duration = absl::ZeroDuration();  // infinite: until it is ended
  TrueEnd end = {};                                // by itself
  std::string output = {};                         // all of it, at the start
  std::string last_words = {};                     // the output when it is asked to end
  v1::Failure failure = {};                        // kNotStarted: why
};

// Decides what the cluster leaves open, and hears what happens on it.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual Program ProgramOf(const agent::v1::Assignment& run, uint32_t rank) = 0;
  // Return the times that a run takes to start, to be ended, and from its end until the cluster has
  // cleaned up.
  virtual absl::Duration StartTime() { return absl::Milliseconds(1); }
  virtual absl::Duration EndTime() { return absl::Milliseconds(1); }
  virtual absl::Duration FinishTime() { return absl::Milliseconds(1); }
  // Returns whether the lease of a run, if it keeps one, lets it start now.
  virtual bool MayStart(const std::string& /*run_key*/) { return true; }
  virtual void OnSubmitted(const std::string& /*run_key*/) {}
  virtual void OnStarted(const std::string& /*run_key*/, int /*restart*/) {}
  virtual void OnEnded(const std::string& /*run_key*/, const TrueEnd& /*end*/) {}
  // Called for a run that leaves no trace: neither the queue nor the history nor a record tells of
  // it.
  virtual void OnLeftNoTrace(const std::string& /*run_key*/) {}
};

class Cluster {
 public:
  struct Options {
    bool keeps_history = true;                  // knows how a job ended that the queue forgot
    absl::Duration memory = absl::Seconds(10);  // how long an ended job stays in the queue
    int slots = 4;                              // runs at the same time
  };
  enum class Phase { kQueued, kStarting, kRunning, kSuspended, kFinishing, kEnded };

  struct Job {
    uint64_t id = 0;
    std::string run_key;
    Phase phase = Phase::kQueued;
    int restart = 0;                // how often the scheduler has requeued it
    int phase_number = 0;           // makes earlier plans for it void
    std::vector<Program> programs;  // by rank
    bool is_held = false;
    bool is_stopping = false;  // its processes are being ended; nothing resumes them
    bool has_started = false;  // its directory says so
    bool in_queue = true;      // the scheduler knows it
    bool has_record = false;   // of its program's end
    TrueEnd end;
    uint32_t end_rank = 0;  // the rank whose end that is
    absl::Time start_time;
    absl::Time end_time;
  };

  // Loop and owner outlive it.
  Cluster(sim::Loop* loop, Owner* owner, Options options)
      : loop_(*loop), owner_(*owner), options_(options) {}

  // ---- the scheduler's commands
  // Makes a job of the run, whether or not there is one already. False: the run is fenced, and its
  // job does nothing.
  bool Submit(const agent::v1::Assignment& run);
  void Cancel(const std::string& run_key);
  void SetHeld(const std::string& run_key, bool held);
  // Ends a run that has started, because its lease is over.
  void EndLease(const std::string& run_key);
  // Lets no job of the run begin from now on; until Lift.
  void Fence(const std::string& run_key) { fenced_.insert(run_key); }
  void Lift(const std::string& run_key) { fenced_.erase(run_key); }
  void Forget(const std::string& run_key);

  // ---- misfortunes
  void SetAwayUntil(absl::Time time) { away_until_ = time; }
  bool is_away() const { return loop_.now() < away_until_; }
  void Requeue(const std::string& run_key);
  void Suspend(const std::string& run_key, absl::Duration time);

  // ---- what is there
  // Null: no job of the run was ever there, or it was forgotten.
  const Job* Find(const std::string& run_key) const;
  // Returns whether the cluster can tell of the job, by its queue, its history or its records.
  bool Knows(const Job& job) const {
    return job.in_queue || job.has_started || options_.keeps_history;
  }
  bool keeps_history() const { return options_.keeps_history; }
  const std::map<std::string, Job>& jobs() const {
    return jobs_;
  }  // by run key; the latest of each
  absl::Time now() const { return loop_.now(); }
  MemoryHost& files() { return files_; }
  static std::string LogPath(const std::string& run_key, uint32_t rank, v1::LogStream stream);

 private:
  Job* FindJob(const std::string& run_key);
  void StartWhatFits();
  // Does `action` unless the job has moved on meanwhile.
  void Plan(Job* job, absl::Duration delay, std::function<void(Job*)> action);
  void Enter(Job* job, Phase phase);
  // Has a run that has started end after the time that this takes.
  void Stop(Job* job, TrueEnd::Kind kind);
  void Begin(Job* job);
  void Run(Job* job);
  void End(Job* job, TrueEnd end);

  sim::Loop& loop_;
  Owner& owner_;
  const Options options_;
  uint64_t next_id_ = 1;
  std::map<std::string, Job> jobs_;
  std::set<std::string> fenced_;  // run keys
  absl::Time away_until_ = absl::InfinitePast();
  MemoryHost files_;
};

}  // namespace muster::fake

#endif  // MUSTER_TESTS_FAKE_CLUSTER_H_
