#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/control_group.h"
#include "agents/machines/host_report.h"
#include "agents/machines/process_id.h"
#include "agents/machines/process_search.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"
#include "agents/machines/split.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {
namespace {

// How soon the end of a supervisor is noticed where the kernel has no pidfd (before 5.3).
constexpr int kLookAgainMs = 1000;
// Time for removing containers in one report, all of them together: as long as a report without
// news takes. The next one goes on with it.
constexpr int kRemovalMs = 10'000;
// A hundred thousand runs.
constexpr size_t kMaxInputBytes = 16 << 20;

// There is no such record: nothing of that name, or what a run has put there instead.
bool IsAbsence(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == ELOOP || error == EFBIG;
}

// A descriptor for each run that lives; what cannot be had is noticed when it is wanted.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Reporter {
 public:
  Reporter(std::string runs_directory, int64_t question)
      : runs_directory_(std::move(runs_directory)),
        question_(question),
        boot_id_(ReadBootId()),
        inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    inotify_add_watch(inotify_.get(), runs_directory_.c_str(), IN_MOVED_TO | IN_ONLYDIR);
  }

  // "LETTER RUN_DIR" in each line. False: something else.
  bool ReadQuestion(const std::string& input) {
    for (const std::string& line : LinesOf(input)) {
      if (line.size() < 2 || line[1] != ' ') return false;
      const std::string directory = line.substr(2);
      const std::string key = RunKeyOf(directory);
      const std::optional<HostStage> stage = StageOf(line[0]);
      if (key.empty() || !stage.has_value()) return false;
      known_[key] = {.stage = *stage, .directory = directory};
      inotify_add_watch(inotify_.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    }
    return true;
  }

  // Until there is news, or so long.
  HostReport Wait(int patience_ms) {
    const int64_t until = SteadyMilliseconds() + patience_ms;
    while (true) {
      const HostReport report = Look();
      const int64_t left = until - SteadyMilliseconds();
      if (left <= 0 || HasNews(report) || IsOutdated()) return report;
      Sleep(static_cast<int>(left));
    }
  }

 private:
  struct Known {
    HostStage stage;
    std::string directory;
  };

  bool HasNews(const HostReport& report) const {
    return std::any_of(report.runs.begin(), report.runs.end(), [this](const RankReport& rank) {
      return known_.at(rank.run_key).stage < rank.stage;
    });
  }

  bool IsOutdated() const {
    std::string text;
    ReadSmallFile(runs_directory_ + "/" + kQuestionFile, kMaxRecordBytes, &text);
    return strtoll(text.c_str(), nullptr, 10) > question_;
  }

  HostReport Look() {
    owners_.clear();
    has_all_pidfds_ = true;
    HostReport report = {.boot_id = boot_id_, .time_us = NowMicroseconds(), .runs = {}};
    for (const auto& [key, known] : known_) {
      // A run that has ended stays so.
      if (known.stage == HostStage::kEnded || known.stage == HostStage::kVanished) continue;
      could_look_ = true;
      RankReport rank = LookAt(key, known);
      // Nothing is said of what could not be looked at: "could not look" is not "gone".
      if (could_look_) report.runs.push_back(std::move(rank));
    }
    return report;
  }

  RankReport LookAt(const std::string& key, const Known& known) {
    const std::string& directory = known.directory;
    RankReport rank = {.run_key = key};
    std::optional<Claim> claim = Load<Claim>(directory + "/" + kClaimFile);
    // Only now, so that a supervisor that has ended meanwhile has left its record.
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

  void Sleep(int ms) {
    std::vector<pollfd> fds = {{inotify_.get(), POLLIN, 0}};
    for (const hosts::Fd& owner : owners_) fds.push_back({owner.get(), POLLIN, 0});
    poll(fds.data(), fds.size(), has_all_pidfds_ ? ms : std::min(ms, kLookAgainMs));
    alignas(inotify_event) char buffer[65536];
    // The events only tell that something has happened; a look finds out what.
    while (read(inotify_.get(), buffer, sizeof buffer) > 0) {
    }
  }

  // Nothing: it is not there, or not whole.
  template <typename T>
  std::optional<T> Load(const std::string& path) {
    std::string bytes;
    const int error = ReadSmallFile(path, kMaxRecordBytes, &bytes);
    if (error != 0 && !IsAbsence(error)) could_look_ = false;
    return error == 0 ? T::Decode(bytes) : std::nullopt;
  }

  const std::string runs_directory_;
  const int64_t question_;
  const std::string boot_id_;
  const hosts::Fd inotify_;
  std::map<std::string, Known> known_;  // by run key
  std::vector<hosts::Fd> owners_;       // the supervisors that the last look has found
  bool has_all_pidfds_ = true;          // of these
  bool could_look_ = true;              // at the run that is being looked at
  const int64_t removals_end_ms_ = SteadyMilliseconds() + kRemovalMs;
};

}  // namespace

int ReportCommand(const std::string& runs_directory, int64_t question, int patience_ms) {
  RaiseFileLimit();
  std::string input;
  Reporter reporter(runs_directory, question);
  if (!ReadInput(kMaxInputBytes, &input) || !reporter.ReadQuestion(input))
    return HostError("understand the question about", runs_directory, EBADMSG);
  const std::string answer = reporter.Wait(patience_ms).Encode();
  fwrite(answer.data(), 1, answer.size(), stdout);
  return fflush(stdout) == 0 ? kHostDone : kHostFailed;
}

int QuestionCommand(const std::string& runs_directory, const std::string& question) {
  const std::string path = runs_directory + "/" + kQuestionFile;
  const int error = ReplaceSmallFile(path, question, 0600);
  return error == 0 ? kHostDone : HostError("write", path, error);
}

}  // namespace muster::machines
