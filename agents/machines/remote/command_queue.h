// What is to be done on one host over SSH, one command after the other, in the order in which it
// matters to people: ends, then questions, then starts. What is cleaned up comes last, many runs at
// a time. Starts that bring files along have these laid out first, one after the other and beside
// the commands, which do not wait for them. Pure; its owner guards it.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agents/machines/run_records.h"
#include "muster/v1/agent_link.pb.h"

namespace muster::machines {

// So many runs are cleaned up by one command, which takes the host some tens of milliseconds; and
// so many do not wait for starts any longer.
inline constexpr size_t kCleanBatch = 1000;
// What a host that stays away can be behind with; what is beyond it stays on its disk.
inline constexpr size_t kMaxCleaning = 100'000;

struct RankStart {
  std::string run_key;
  size_t rank = 0;
  std::string directory;  // the run's
  std::string devices;
  std::vector<std::string> device_variables;
  RunSpec spec;
  std::shared_ptr<const v1::JobSpec> job;  // with this host's paths
  bool is_prepared = false;                // all that it needs is there
};
struct RankStop {
  std::string run_key;
  size_t rank = 0;
  std::string directory;
};
// Has the next question answered at once.
struct QuestionCommand {};
struct CleanCommand {
  std::vector<std::string> directories;
  bool logs = false;  // these, too
};
using HostCommand = std::variant<RankStop, QuestionCommand, RankStart, CleanCommand>;

class CommandQueue {
 public:
  void Push(RankStart start);
  // The start of that rank, if it was still waiting: the host need not hear of it.
  std::optional<RankStart> Push(RankStop stop);
  void Ask() { is_asked_ = true; }
  void Clean(const std::string& directory, bool logs);
  // What the host could not be told; it waits until Resume.
  void Defer(const CleanCommand& clean);
  void Resume();

  bool IsEmpty() const {
    return stops_.empty() && !is_asked_ && starts_.empty() && cleans_.empty();
  }
  // Not empty.
  HostCommand Pop();

  bool HasLayout() const { return !layouts_.empty(); }
  // The next start whose files are to be laid out. There is one, and none is under way.
  RankStart BeginLayout();
  // Whether that rank is still to start. It is, or is not, pushed again then.
  bool EndLayout();

 private:
  struct RankName {
    std::string run_key;
    size_t rank = 0;
  };
  CleanCommand PopCleans();

  std::deque<RankStop> stops_;     // at most one for each rank of the agent's active runs
  std::deque<RankStart> starts_;   // likewise
  std::deque<RankStart> layouts_;  // likewise
  std::optional<RankName> laying_out_;
  bool is_layout_wanted_ = false;  // of laying_out_
  bool is_asked_ = false;
  // Directories; true: logs, too. Together at most kMaxCleaning.
  std::map<std::string, bool> cleans_;
  std::map<std::string, bool> deferred_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_COMMAND_QUEUE_H_
