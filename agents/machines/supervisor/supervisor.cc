#include "agents/machines/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/machines/clock_now.h"
#include "agents/machines/process_id.h"
#include "agents/machines/small_file.h"
#include "agents/machines/supervisor/child.h"

namespace muster::machines {
namespace {

// A disk that hiccups at the end of a run must not cost its result, so there are this many tries,
// this far apart.
constexpr int kExitTries = 30;
constexpr unsigned kExitRetrySeconds = 1;
// The agent's to read, and another user's to write to.
constexpr mode_t kUserOutputMode = 0602;

// Adds SkyPilot's names for variables that differ in setup.
void AddSetupNames(std::vector<std::string>* environment) {
  constexpr std::string_view kPrefix = "SKYPILOT_";
  constexpr std::string_view kOther[] = {"NODE_RANK=", "NODE_IPS=", "NUM_GPUS_PER_NODE="};
  const std::vector<std::string> variables = *environment;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::string rest = variable.substr(kPrefix.size());
    const bool has_other =
        std::any_of(std::begin(kOther), std::end(kOther),
                    [&](std::string_view name) { return rest.starts_with(name); });
    if (has_other) environment->push_back(std::string(kPrefix) + "SETUP_" + rest);
  }
}

}  // namespace

int OpenSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSupervisorSignals) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Supervisor::Supervisor(SupervisorArguments arguments, int signal_fd)
    : arguments_(std::move(arguments)), signal_fd_(signal_fd), family_(signal_fd) {}

int Supervisor::Run() {
  if (const std::optional<int> code = TakeClaim()) return *code;
  TellOfClaim();
  if (Prepare()) {
    MakeGroup();
    if (spec_.time_limit_ms > 0) limit_ms_ = SteadyMilliseconds() + spec_.time_limit_ms;
    if (!spec_.container_tool.empty() && !FetchImage()) {
      // The exit record says why.
    } else if (spec_.setup_words.empty() || RunPhase(ExitRecord::Phase::kSetup)) {
      RunPhase(ExitRecord::Phase::kCommand);
    }
    LeaveGroup();
  }
  RemoveSecrets();
  return WriteExit();
}

std::optional<int> Supervisor::TakeClaim() {
  reserved_ = PathOf(kExitFile) + "." + std::to_string(getpid()) + ".tmp";
  int error = WriteSmallFile(reserved_, std::string(kMaxRecordBytes, '\0'), 0600);
  if (error == 0) {
    const Claim claim = {.owner = Identify(getpid()), .devices = arguments_.devices};
    error = ClaimFile(PathOf(kClaimFile), claim.Encode(), 0600);
  }
  if (error == 0) return std::nullopt;
  unlink(reserved_.c_str());
  return error == EEXIST ? kSupervisorLostClaim : kSupervisorErrnoBase + error;
}

void Supervisor::TellOfClaim() const {
  if (arguments_.claimed_fd < 0) return;
  // The process that waited may be gone.
  signal(SIGPIPE, SIG_IGN);
  const ssize_t n = write(arguments_.claimed_fd, "c", 1);
  signal(SIGPIPE, SIG_DFL);
  close(arguments_.claimed_fd);
  static_cast<void>(n);
}

bool Supervisor::Failed(ExitRecord::Step step, int error, const std::string& path) {
  exit_.end = ExitRecord::End::kNotStarted;
  exit_.step = step;
  exit_.error = error;
  exit_.path = path;
  return false;
}

bool Supervisor::Prepare() {
  exit_.phase = ExitRecord::Phase::kQueue;
  std::string bytes;
  const std::string spec_path = PathOf(kSpecFile);
  if (const int error = ReadSmallFile(spec_path, kMaxSpecBytes, &bytes)) {
    return Failed(ExitRecord::Step::kFiles, error, spec_path);
  }
  std::optional<RunSpec> spec = RunSpec::Decode(bytes);
  if (!spec.has_value() || spec->command_words.empty()) {
    return Failed(ExitRecord::Step::kFiles, EBADMSG, spec_path);
  }
  spec_ = std::move(*spec);
  explicit_bzero(bytes.data(), bytes.size());
  if (!TakeSecrets()) return false;

  // The agent has made those of another user, who could not enter this one.
  const std::string work = PathOf(kWorkDirectory);
  if (!spec_.user.IsOther() && mkdir(work.c_str(), 0755) != 0 && errno != EEXIST) {
    return Failed(ExitRecord::Step::kFiles, errno, work);
  }
  stdin_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (stdin_fd_ < 0) return Failed(ExitRecord::Step::kFiles, errno, "/dev/null");
  return OpenOutput(kStdoutFile, &stdout_fd_) && OpenOutput(kStderrFile, &stderr_fd_);
}

bool Supervisor::OpenOutput(const char* name, int* fd) {
  const std::string path = PathOf(name);
  // O_APPEND: a program that truncates or seeks in its output, or opens it a second time, must not
  // overwrite it.
  *fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (*fd < 0) return Failed(ExitRecord::Step::kFiles, errno, path);
  // /dev/stdout opens the file once more. Nobody else's programs come to it: the directory is
  // closed to them.
  return !spec_.user.IsOther() || fchmod(*fd, kUserOutputMode) == 0 ||
         Failed(ExitRecord::Step::kFiles, errno, path);
}

void Supervisor::MakeGroup() {
  const GroupLimits limits = {.memory_bytes = spec_.memory_limit_bytes, .cores = spec_.core_limit};
  if (limits.memory_bytes == 0 && limits.cores == 0) return;
  if (SetsLimits(spec_.container_tool)) {
    exit_.unlimited = WhyToolSetsNoLimits(limits);
    if (exit_.unlimited.empty()) exit_.memory_limit_bytes = limits.memory_bytes;
    return;
  }
  const GroupPlaces places = FindGroupPlaces();
  const std::string name = RunGroup::NameOf(spec_.run_key);
  std::string names;
  for (const std::string& directory : RunGroup::DirectoriesOf(places, name, limits))
    names += directory + "\n";
  // First of all, so that whoever finds the run without its supervisor finds the groups, too.
  const int error = WriteSmallFile(PathOf(kGroupsFile), names, 0600);
  exit_.unlimited = error == 0 ? group_.Make(places, name, limits)
                               : std::string("cannot write the file ") + kGroupsFile;
  if (exit_.unlimited.empty()) exit_.memory_limit_bytes = limits.memory_bytes;
}

void Supervisor::LeaveGroup() {
  exit_.oom_kills += group_.CountOomKills();
  // Groups that could not be removed are named there.
  if (group_.Remove()) unlink(PathOf(kGroupsFile).c_str());
}

bool Supervisor::MayBegin(ExitRecord::Phase phase) {
  exit_.phase = phase;
  exit_.end = ExitRecord::End::kNothingRan;
  ReadSignals(-1);
  if (CancelWasAsked()) exit_.cause = ExitRecord::Cause::kCanceled;
  if (exit_.cause == ExitRecord::Cause::kNone && LeaseIsOver())
    exit_.cause = ExitRecord::Cause::kLeaseEnded;
  return exit_.cause == ExitRecord::Cause::kNone;
}

bool Supervisor::RunPhase(ExitRecord::Phase phase) {
  if (!MayBegin(phase)) return false;
  const std::optional<pid_t> leader = StartPhase(phase);
  if (!leader.has_value()) return false;
  if (!spec_.container_tool.empty()) LeaveContainer(phase, *leader);
  exit_.left_behind = !KillRest(*leader);
  if (user_program_.has_value() && user_program_->trouble().has_value()) {
    const UserProgram::Trouble& trouble = *user_program_->trouble();
    return Failed(trouble.step, trouble.error, trouble.path);
  }
  const std::optional<int> end = EndOf(*leader);
  if (!end.has_value()) return false;
  if (WIFSIGNALED(*end)) {
    exit_.end = ExitRecord::End::kSignaled;
    exit_.status = WTERMSIG(*end);
  } else {
    exit_.end = ExitRecord::End::kExited;
    exit_.status = WEXITSTATUS(*end);
  }
  return exit_.end == ExitRecord::End::kExited && exit_.status == 0 &&
         exit_.cause == ExitRecord::Cause::kNone;
}

ChildRequest Supervisor::DescribeChild(ExitRecord::Phase phase) {
  const bool setup = phase == ExitRecord::Phase::kSetup;
  ChildRequest child = {.words = setup ? spec_.setup_words : spec_.command_words,
                        .environment = spec_.environment,
                        .working_directory = spec_.working_directory,
                        .stdin_fd = stdin_fd_,
                        .stdout_fd = stdout_fd_,
                        .stderr_fd = stderr_fd_,
                        .group_fds = group_.Entrances()};
  child.environment.insert(child.environment.end(), spec_.secrets.begin(), spec_.secrets.end());
  // The command knows which GPUs are its own.
  if (setup) {
    AddSetupNames(&child.environment);
  } else {
    child.environment.insert(child.environment.end(), arguments_.variables.begin(),
                             arguments_.variables.end());
  }
  return child;
}

std::optional<pid_t> Supervisor::StartPhase(ExitRecord::Phase phase) {
  const bool setup = phase == ExitRecord::Phase::kSetup;
  const std::string& script = setup ? spec_.setup_script : spec_.command_script;
  if (!script.empty() && !spec_.user.IsOther()) {
    const std::string path = PathOf(setup ? kSetupFile : kCommandFile);
    if (const int error = WriteSmallFile(path, script, 0700)) {
      Failed(ExitRecord::Step::kFiles, error, path);
      return std::nullopt;
    }
  }
  ChildRequest child = DescribeChild(phase);
  if (!spec_.container_tool.empty()) {
    const ContainerPlan plan = PlanFor(phase);
    if (!PrepareContainer(plan, phase, child.environment)) return std::nullopt;
    child.words.insert(child.words.begin(), plan.run.begin(), plan.run.end());
    child.environment = ToolEnvironment(plan);
    child.working_directory = arguments_.directory;
  }
  user_program_.reset();
  if (spec_.user.IsOther() && !user_program_.emplace(spec_.user).Wrap(&child)) {
    Failed(ExitRecord::Step::kProcess, errno, "the socket of muster-run-as");
    return std::nullopt;
  }
  const ChildStart start = StartChild(child);
  if (user_program_.has_value()) user_program_->LetGo();
  if (!setup) ForgetSecrets();
  if (start.error != 0) {
    family_.Reap();
    Failed(start.step, start.error, start.path);
    return std::nullopt;
  }
  // The processes that fetched the image are none of the run's.
  if (!exit_.is_counted) family_.StartCounting();
  exit_.is_counted = !SetsLimits(spec_.container_tool);
  family_.Watch(start.pid);
  if (!setup && !user_program_.has_value()) WriteStarted(start.pid);
  Wait(start.pid);
  return start.pid;
}

void Supervisor::WriteStarted(pid_t pid) {
  exit_.pid = pid;
  exit_.start_us = NowMicroseconds();
  const Started started = {.process = Identify(pid), .time_us = exit_.start_us};
  // The record is only news: a run without it is taken for one that is still being set up, and the
  // exit record has it all.
  ReplaceSmallFile(PathOf(kStartedFile), started.Encode(), 0600);
}

void Supervisor::Wait(pid_t leader) {
  while (true) {
    const bool family_left = family_.Reap();
    HearOfUserProgram();
    const bool ending = kill_ms_ != 0;
    if (EndOf(leader).has_value() && !(ending && family_left)) return;
    const int64_t now = SteadyMilliseconds();
    if (ending && now >= kill_ms_) return;
    if (!ending && limit_ms_ != 0 && now >= limit_ms_) {
      EndRun(ExitRecord::Cause::kTimeLimit, leader);
      continue;
    }
    if (!ending && lease_.has_value() && now >= next_look_ms_ && LeaseIsOver()) {
      EndRun(ExitRecord::Cause::kLeaseEnded, leader);
      continue;
    }
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {-1, 0, 0}};
    if (user_program_.has_value()) fds[1] = {user_program_->fd(), user_program_->events(), 0};
    poll(fds, 2, PatienceMs());
    ReadSignals(leader);
  }
}

void Supervisor::HearOfUserProgram() {
  if (!user_program_.has_value()) return;
  user_program_->Step();
  const bool is_news = exit_.phase == ExitRecord::Phase::kCommand && exit_.start_us == 0;
  if (is_news && user_program_->pid().has_value()) WriteStarted(*user_program_->pid());
}

std::optional<int> Supervisor::EndOf(pid_t leader) const {
  if (user_program_.has_value() && user_program_->end().has_value()) return user_program_->end();
  return family_.EndOf(leader);
}

bool Supervisor::KillRest(pid_t leader) {
  if (!user_program_.has_value()) return family_.KillAll();
  user_program_->OrderKill();
  // Only if somebody has killed muster-run-as, its processes are this one's children.
  const bool is_all = family_.KillAll(leader, [this] {
    RunAsUser(spec_.user, {"kill-children", std::to_string(getpid())});
  });
  HearOfUserProgram();
  return is_all;
}

int Supervisor::PatienceMs() const {
  const int64_t until = kill_ms_ != 0 ? kill_ms_ : UntilLook(limit_ms_);
  if (until == 0) return -1;
  return static_cast<int>(std::clamp<int64_t>(until - SteadyMilliseconds(), 0, INT_MAX));
}

void Supervisor::ReadSignals(pid_t leader) {
  signalfd_siginfo signal;
  while (read(signal_fd_, &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo == SIGCHLD || exit_.cause != ExitRecord::Cause::kNone) continue;
    if (CancelWasAsked()) {
      EndRun(ExitRecord::Cause::kCanceled, leader);
    } else {
      exit_.sender = "signal " + std::to_string(signal.ssi_signo) + " from process " +
                     std::to_string(signal.ssi_pid) + " of user " + std::to_string(signal.ssi_uid);
      EndRun(ExitRecord::Cause::kTerminated, leader);
    }
  }
}

bool Supervisor::CancelWasAsked() const { return access(PathOf(kCancelFile).c_str(), F_OK) == 0; }

void Supervisor::EndRun(ExitRecord::Cause cause, pid_t leader) {
  // A program that has ended by itself keeps its own end.
  family_.Reap();
  HearOfUserProgram();
  if (leader > 0 && EndOf(leader).has_value()) return;
  exit_.cause = cause;
  kill_ms_ = SteadyMilliseconds() + std::max<int64_t>(spec_.grace_ms, 1);
  if (leader <= 0 || TellContainer(leader)) return;
  kill(-leader, SIGTERM);
  kill(-leader, SIGCONT);  // a stopped process would not see the TERM
}

int Supervisor::WriteReserved(const std::string& bytes) const {
  const int fd = open(reserved_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  // The record is written in place, where the blocks are; a record that is cut does not decode.
  errno = ENOSPC;
  const bool written =
      pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  const int error = written ? 0 : errno;
  close(fd);
  return error;
}

int Supervisor::WriteExit() {
  exit_.end_us = NowMicroseconds();
  exit_.user_cpu_us = family_.usage().user_cpu_us;
  exit_.system_cpu_us = family_.usage().system_cpu_us;
  exit_.max_rss_bytes = family_.usage().max_rss_bytes;
  std::string bytes = exit_.Encode();
  bytes.resize(kMaxRecordBytes, '\0');
  const std::string path = PathOf(kExitFile);
  int error = 0;
  for (int attempt = 0; attempt < kExitTries; ++attempt) {
    if (attempt > 0) sleep(kExitRetrySeconds);
    error = WriteReserved(bytes);
    if (error == 0 && rename(reserved_.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) error = SyncFile(path);
    if (error == 0) return kSupervisorRecorded;
  }
  return kSupervisorUnrecorded;
}

}  // namespace muster::machines
