// Orders the work on one host over SSH, one command after the other, as it matters to people: ends,
// then starts. Clean-ups come last, many runs at a time. Starts that bring files
// along have these laid out first, one after the other and beside the commands, which do not wait
// for them. Pure; its owner guards it.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agents/machines/run_records.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// The runs that one command cleans up. It takes the host some tens of milliseconds. A queue of so
// many does not wait for starts any longer.
inline constexpr size_t kCleanBatch = 1000;
// A host that stays away can be behind with this many clean-ups; the files of further ones stay on
// its disk.
inline constexpr size_t kMaxCleaning = 100'000;

// The part of its files that was sent to the host.
struct FilesSent {
  uint64_t bytes = 0;
  uint64_t of = 0;  // 0: nothing is sent, or not yet
};

struct RankStart {
  std::string run_key;
  size_t rank = 0;
  std::string directory;  // the run's
  std::string devices;
  std::vector<std::string> device_variables;
  RunSpec spec;
  std::shared_ptr<const v1::JobSpec> job;  // with this host's paths
  bool is_prepared = false;                // all that it needs is there
  FilesSent sent = {};                     // by earlier steps of its layout
};
struct RankStop {
  std::string run_key;
  size_t rank = 0;
  std::string directory;
};
struct CleanCommand {
  std::vector<std::string> directories;
  bool logs = false;  // these, too
};
// One step of removing work/ of old runs (work_sweeper.h).
struct SweepCommand {};
using HostCommand = std::variant<RankStop, RankStart, CleanCommand, SweepCommand>;

class CommandQueue {
 public:
  void Push(RankStart start);
  // Cancels the start of that rank if it was still waiting: the host need not be told.
  std::optional<RankStart> Push(RankStop stop);
  void Clean(const std::string& directory, bool logs);
  // Keeps a clean-up that could not be sent to the host; it waits until Resume.
  void Defer(const CleanCommand& clean);
  void Resume();

  // Comes after everything else.
  void Sweep() { is_swept_ = true; }

  bool IsEmpty() const {
    return stops_.empty() && starts_.empty() && cleans_.empty() && !is_swept_;
  }
  // The queue may not be empty.
  HostCommand Pop();

  bool HasLayout() const { return !layouts_.empty(); }
  // Returns the next start whose files are to be laid out. There is one, and none is under way.
  RankStart BeginLayout();
  // Notes the progress of the layout that is under way.
  void NoteSent(const FilesSent& sent) { laying_out_->sent = sent; }
  // Returns whether that rank is still to start.
  bool IsLayoutWanted() const { return is_layout_wanted_; }
  // The same, at the end. It is, or is not, pushed again then.
  bool EndLayout();
  // Returns the progress of a rank whose files are being laid out, or wait for that.
  std::optional<FilesSent> LayoutOf(const std::string& run_key, size_t rank) const;

 private:
  struct Layout {
    std::string run_key;
    size_t rank = 0;
    FilesSent sent;
  };
  CleanCommand PopCleans();

  std::deque<RankStop> stops_;     // at most one for each rank of the agent's active runs
  std::deque<RankStart> starts_;   // likewise
  std::deque<RankStart> layouts_;  // likewise
  std::optional<Layout> laying_out_;
  bool is_layout_wanted_ = false;  // of laying_out_
  bool is_swept_ = false;
  // The directories; true stands for their logs, too. Together at most kMaxCleaning.
  std::map<std::string, bool> cleans_;
  std::map<std::string, bool> deferred_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_
