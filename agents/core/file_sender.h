// Sends files of runs to the broker, each request in a stream of its own, beside everything else.
//
// Any thread may ask. A lane of kMaxSends threads reads and sends: who waits for the broker's
// client waits there.
#ifndef MUSTER_AGENTS_CORE_FILE_SENDER_H_
#define MUSTER_AGENTS_CORE_FILE_SENDER_H_

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/core/broker_link.h"
#include "agents/core/run_files.h"
#include "agents/core/worker_lane.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "sync/mutex.h"

namespace muster::agents {

// Sends at the same time. Each has a piece of 256 KiB here, the bytes that gRPC keeps on their way,
// and a thread.
inline constexpr int kMaxSends = 4;
// A request has at most this many entries; a tree with more is better packed in the job.
inline constexpr uint64_t kMaxSentEntries = 1'000'000;

// Sends what is at the path, and what is below it. The end is the caller's to tell. False: the
// broker wants no more.
absl::StatusOr<bool> SendFiles(RunFiles* files, const std::string& path, FilesLink* link);

// Files of a run, and what is asked for among them.
struct FilesAt {
  std::unique_ptr<RunFiles> files;
  std::string path;
};
// Opens what a path of a run names: in its working directory, or, if that has nothing called
// results, in its results directory. Either way of opening may be missing.
absl::StatusOr<FilesAt> FindFiles(const OpenRunFiles& open, const OpenRunFiles& open_results,
                                  const RankOfRun& of, const std::string& path);

class FileSender {
 public:
  struct Ways {
    std::function<std::unique_ptr<FilesLink>()> dial;
    OpenRunFiles open;          // none: nothing can be sent
    OpenRunFiles open_results;  // of RankOfRun::results_directory; none: likewise
    RelayRunFiles relay = {};   // in the place of both; none: the files are read here
  };

  // `cluster` and `journal_id` say who sends.
  FileSender(Ways ways, std::string cluster, std::string journal_id);
  // Ends what is under way, and waits for the reads of it.
  ~FileSender();

  bool can_send() const {
    return ways_.open != nullptr || ways_.open_results != nullptr || ways_.relay != nullptr;
  }
  // Takes it on. RESOURCE_EXHAUSTED: enough are under way; UNIMPLEMENTED.
  absl::Status Send(const agent::v1::SendFilesQuestion& question);

 private:
  void Serve(const agent::v1::SendFilesQuestion& question);
  absl::Status SendTo(FilesLink* link, const agent::v1::SendFilesQuestion& question,
                      bool* is_wanted);

  const Ways ways_;
  const std::string cluster_;
  const std::string journal_id_;

  Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<FilesLink*> links_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<WorkerLane> lane_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_FILE_SENDER_H_
