// Tells an agent what has become of runs, over a channel of its own.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/control_group.h"
#include "agents/machines/host_frames.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_id.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "agents/machines/split.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// The end of a supervisor is noticed within this time where the kernel has no pidfd (before 5.3).
constexpr int64_t kLookAgainMs = 1000;
// One look removes containers for this long, all of them together: as long as a report without news
// takes. The next one goes on with it.
constexpr int kRemovalMs = 10'000;

// Tells whether the error means that there is no such record: nothing has that name, or a run has
// put something else there.
bool IsAbsence(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == ELOOP || error == EFBIG;
}

// Each run that lives has a descriptor; what cannot be had is noticed when it is wanted.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Watcher {
 public:
  // One watcher serves all questions, as its closing costs the kernel milliseconds.
  Watcher(std::string program, std::string runs_directory)
      : needed_({std::move(program), std::move(runs_directory)}),
        boot_id_(ReadBootId()),
        inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    // The watch tells of runs that begin.
    inotify_add_watch(inotify_.get(), needed_[1].c_str(), IN_CREATE | IN_ONLYDIR);
  }

  int Run() {
    // An agent that has gone is no reason to end in the middle of a removal.
    signal(SIGPIPE, SIG_IGN);
    heard_ms_ = SteadyMilliseconds();
    while (!is_over_ || question_.has_value()) {
      // The agent puts them there again when it prepares the host anew.
      for (const std::string& path : needed_) {
        if (access(path.c_str(), F_OK) != 0) return HostError("find", path, errno);
      }
      AnswerIfDue();
      Sleep();
      if (has_input_) TakeFrames();
      if (SteadyMilliseconds() >= heard_ms_ + kAgentSilenceMs) return kHostDone;
    }
    return kHostDone;
  }

 private:
  struct Known {
    HostStage stage;
    std::string directory;
    int watch = -1;
  };

  // A question that is not answered yet.
  struct Question {
    int64_t id = 0;
    int64_t number = 0;
    int64_t until_ms = 0;
  };

  void TakeFrames() {
    std::string bytes;
    is_over_ = !ReadSome(STDIN_FILENO, &bytes) || is_over_;
    heard_ms_ = SteadyMilliseconds();
    frames_.Add(bytes);
    while (std::optional<HostFrame> frame = frames_.Next()) {
      if (std::optional<HostRequest> request = HostRequest::Decode(*std::move(frame)))
        Take(*request);
    }
    is_over_ = frames_.is_broken() || is_over_;
  }

  void Take(const HostRequest& request) {
    const bool is_whole = request.words.size() == 2;
    const int64_t number = is_whole ? atoll(request.words[1].c_str()) : 0;
    if (is_whole && request.words[0] == "again") {
      latest_ = std::max(latest_, number);
      return;
    }
    // There is one question at a time, because the agent waits for its answer.
    if (question_.has_value()) Answer(Look());
    question_ = {
        .id = request.id, .number = number, .until_ms = SteadyMilliseconds() + request.patience_ms};
    if (is_whole && request.words[0] == "report" && ReadRuns(request.input)) return;
    Tell({.id = request.id, .exit_code = kHostFailed, .complaint = "cannot understand a question"});
  }

  // "LETTER RUN_DIR" in each line. False: something else.
  bool ReadRuns(const std::string& lines) {
    std::map<std::string, Known> asked;
    for (const std::string& line : LinesOf(lines)) {
      if (line.size() < 2 || line[1] != ' ') return false;
      const std::string directory = line.substr(2);
      const std::string key = RunKeyOf(directory);
      const std::optional<HostStage> stage = StageOf(line[0]);
      if (key.empty() || !stage.has_value()) return false;
      asked[key] = {.stage = *stage, .directory = directory, .watch = WatchDirectory(directory)};
    }
    for (const auto& [key, known] : known_) {
      if (!asked.contains(key) && known.watch >= 0) inotify_rm_watch(inotify_.get(), known.watch);
    }
    known_ = std::move(asked);
    return true;
  }

  // Returns a negative number if it is not there yet, or is noticed late for lack of a watch.
  int WatchDirectory(const std::string& directory) const {
    return inotify_add_watch(inotify_.get(), directory.c_str(),
                             IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  }

  // Answers once there is news, or a later question is to come, or its time is over.
  void AnswerIfDue() {
    if (!question_.has_value()) return;
    const HostReport report = Look();
    const bool is_due = HasNews(report) || latest_ > question_->number ||
                        SteadyMilliseconds() >= question_->until_ms;
    if (is_due) Answer(report);
  }

  void Answer(const HostReport& report) { Tell({.id = question_->id, .output = report.Encode()}); }

  void Tell(const HostAnswer& answer) {
    question_.reset();
    owners_.clear();
    is_over_ = !WriteAll(STDOUT_FILENO, answer.Encode()) || is_over_;
  }

  bool HasNews(const HostReport& report) const {
    return std::any_of(report.runs.begin(), report.runs.end(), [this](const RankReport& rank) {
      return known_.at(rank.run_key).stage < rank.stage;
    });
  }

  HostReport Look() {
    owners_.clear();
    has_all_pidfds_ = true;
    removals_end_ms_ = SteadyMilliseconds() + kRemovalMs;
    HostReport report = {.boot_id = boot_id_, .time_us = NowMicroseconds(), .runs = {}};
    for (auto& [key, known] : known_) {
      if (known.watch < 0) known.watch = WatchDirectory(known.directory);
      // A run that has ended stays so.
      if (known.stage == HostStage::kEnded || known.stage == HostStage::kVanished) continue;
      could_look_ = true;
      RankReport rank = LookAt(key, known);
      // The report leaves out the runs that could not be looked at: "could not look" is not "gone".
      if (could_look_) report.runs.push_back(std::move(rank));
    }
    return report;
  }

  RankReport LookAt(const std::string& key, const Known& known) {
    const std::string& directory = known.directory;
    RankReport rank = {.run_key = key};
    std::optional<Claim> claim = Load<Claim>(directory + "/" + kClaimFile);
    // Comes only now, so that a supervisor that has ended meanwhile has left its record.
    const bool lives = claim.has_value() && Watch(claim->owner);
    rank.started = Load<Started>(directory + "/" + kStartedFile);
    rank.exit = Load<ExitRecord>(directory + "/" + kExitFile);
    if (!rank.exit.has_value() && claim.has_value()) rank.exit = claim->End();
    const bool was_claimed = claim.has_value() ||
                             access((directory + "/" + kClaimFile).c_str(), F_OK) == 0 ||
                             known.stage != HostStage::kAbsent;
    if (!could_look_) return rank;
    if (rank.exit.has_value()) {
      rank.stage = HostStage::kEnded;
    } else if (lives) {
      rank.stage = rank.started.has_value() ? HostStage::kStarted : HostStage::kClaimed;
    } else if (was_claimed || rank.started.has_value()) {
      LookForOwner(directory, claim, &rank);
    }
    return rank;
  }

  // It has begun, and the claim does not lead to a living supervisor: the run may have removed it.
  void LookForOwner(const std::string& directory, const std::optional<Claim>& claim,
                    RankReport* rank) {
    // There is one process at least, this one.
    could_look_ = !ListProcesses().empty();
    if (!could_look_) return;
    const auto supervisors = ListSupervisors();
    const auto found = supervisors.find(directory);
    if (found != supervisors.end() && Watch(found->second.owner)) {
      rank->stage = rank->started.has_value() ? HostStage::kStarted : HostStage::kClaimed;
      return;
    }
    // It may have written its record after that was looked for, and ended.
    rank->exit = Load<ExitRecord>(directory + "/" + kExitFile);
    if (!could_look_) return;
    if (rank->exit.has_value()) {
      rank->stage = HostStage::kEnded;
      return;
    }
    rank->stage = HostStage::kVanished;
    if (claim.has_value() && claim->owner.boot_id != boot_id_) {
      rank->detail = "the host was started anew while the run was there (boot " +
                     claim->owner.boot_id + ", now " + boot_id_ + ")";
      return;
    }
    KillProcessesWith("MUSTER_RUN_DIR=" + directory);
    could_look_ = RemoveContainersOf(directory, {.until_ms = removals_end_ms_});
    RemoveGroupsOf(directory);
    rank->detail = "the run's supervisor";
    if (claim.has_value()) rank->detail += " (process " + std::to_string(claim->owner.pid) + ")";
    rank->detail += " ended and left no exit record";
  }

  // Returns whether this very process lives; then its end wakes Sleep.
  bool Watch(const ProcessId& process) {
    if (process.pid <= 0) return false;
    hosts::Fd pidfd(hosts::PidfdOpen(process.pid));
    if (!pidfd.valid()) {
      if (errno == ESRCH) return false;
      // ENOSYS, EPERM: not here; others: not now.
      if (errno != ENOSYS && errno != EPERM) could_look_ = false;
      has_all_pidfds_ = false;
      return Identify(process.pid) == process;
    }
    if (Identify(process.pid) != process) return false;
    pollfd fd = {pidfd.get(), POLLIN, 0};
    if (poll(&fd, 1, 0) != 0) return false;  // a zombie
    owners_.push_back(std::move(pidfd));
    return true;
  }

  void Sleep() {
    std::vector<pollfd> fds = {{is_over_ ? -1 : STDIN_FILENO, POLLIN, 0},
                               {inotify_.get(), POLLIN, 0}};
    for (const hosts::Fd& owner : owners_) fds.push_back({owner.get(), POLLIN, 0});
    int64_t until = heard_ms_ + kAgentSilenceMs;
    if (question_.has_value()) until = std::min(until, question_->until_ms);
    int64_t ms = std::max<int64_t>(until - SteadyMilliseconds(), 0);
    if (!has_all_pidfds_ && question_.has_value()) ms = std::min(ms, kLookAgainMs);
    if (is_over_ && !question_.has_value()) return;
    has_input_ = poll(fds.data(), fds.size(), static_cast<int>(ms)) > 0 && fds[0].revents != 0;
    alignas(inotify_event) char buffer[65536];
    // The events only tell that something has happened; a look finds out what.
    while (read(inotify_.get(), buffer, sizeof buffer) > 0) {
    }
  }

  // Returns nothing if the file is not there, or not whole.
  template <typename T>
  std::optional<T> Load(const std::string& path) {
    std::string bytes;
    const int error = ReadSmallFile(path, kMaxRecordBytes, &bytes);
    if (error != 0 && !IsAbsence(error)) could_look_ = false;
    return error == 0 ? T::Decode(bytes) : std::nullopt;
  }

  const std::vector<std::string> needed_;  // the program and the directory of runs
  const std::string boot_id_;
  const hosts::Fd inotify_;
  FrameReader frames_;
  std::optional<Question> question_;
  int64_t latest_ = 0;    // number of a question that is to come
  int64_t heard_ms_ = 0;  // the agent
  bool has_input_ = false;
  bool is_over_ = false;                // nothing more is asked
  std::map<std::string, Known> known_;  // by run key
  std::vector<hosts::Fd> owners_;       // the supervisors that the last look has found
  bool has_all_pidfds_ = true;          // of these
  bool could_look_ = true;              // at the run that is being looked at
  int64_t removals_end_ms_ = 0;
};

}  // namespace

int WatchCommand(const std::string& program, const std::string& runs_directory) {
  RaiseFileLimit();
  return Watcher(program, runs_directory).Run();
}

}  // namespace muster::machines
