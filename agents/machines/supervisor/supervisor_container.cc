// Runs in a container: its image, its program, and its end.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "agents/machines/clock_now.h"
#include "agents/machines/container_removal.h"
#include "agents/machines/small_file.h"
#include "agents/machines/split.h"
#include "agents/machines/supervisor/supervisor.h"

namespace muster::machines {
namespace {

// Removing a container takes a second; on a host under load it takes several.
constexpr int64_t kToolPatienceMs = 60'000;
// Two looks at a tool are this far apart; a signal tells of its end.
constexpr int64_t kToolRoundMs = 100;
// Bytes of a tool's log, which has a line for each layer of an image.
constexpr size_t kMaxToolLogBytes = 1 << 20;
// Bytes for which an exit record has room.
constexpr size_t kMaxQuotedBytes = 1000;

// Returns the value of a variable among "NAME=value"; empty if it is not there.
std::string ValueOf(const std::vector<std::string>& variables, std::string_view name) {
  for (const std::string& variable : variables) {
    if (variable.starts_with(name) && variable.size() > name.size() && variable[name.size()] == '=')
      return variable.substr(name.size() + 1);
  }
  return "";
}

bool IsNumber(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// A tool that shows the container its own GPUs alone numbers them anew.
void NumberAnew(std::vector<std::string>* environment) {
  for (std::string& variable : *environment) {
    if (!variable.starts_with("CUDA_VISIBLE_DEVICES=")) continue;
    const std::vector<std::string> names = Split(variable.substr(variable.find('=') + 1), ",");
    if (names.empty() || !std::all_of(names.begin(), names.end(), IsNumber)) return;
    variable = "CUDA_VISIBLE_DEVICES=0";
    for (size_t i = 1; i < names.size(); ++i) variable += "," + std::to_string(i);
  }
}

std::string WithoutBlanksAtEnd(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  return text;
}

}  // namespace

std::string Supervisor::ContainerName(ExitRecord::Phase phase) const {
  // enroot has one for both, made with the image.
  const bool is_setups = phase == ExitRecord::Phase::kSetup && spec_.container_tool != kEnroot;
  const char* end = is_setups ? ".setup" : "";
  return ContainerPrefix(spec_.run_key) + std::to_string(getpid()) + end;
}

std::vector<std::string> Supervisor::DeviceNames() const {
  const std::string amd = ValueOf(arguments_.variables, "ROCR_VISIBLE_DEVICES");
  return Split(amd.empty() ? ValueOf(arguments_.variables, "CUDA_VISIBLE_DEVICES") : amd, ",");
}

ContainerPlan Supervisor::PlanFor(ExitRecord::Phase phase) const {
  return PlanContainer(
      {.tool = spec_.container_tool,
       .image = spec_.image,
       .name = ContainerName(phase),
       .directory = arguments_.directory,
       .mounts = spec_.mounts,
       .gpus = DeviceNames(),
       .has_amd_gpus = !ValueOf(arguments_.variables, "ROCR_VISIBLE_DEVICES").empty(),
       .memory_bytes = exit_.unlimited.empty() ? spec_.memory_limit_bytes : 0,
       .cores = exit_.unlimited.empty() ? spec_.core_limit : 0,
       .user = geteuid(),
       .group = getegid()});
}

std::vector<std::string> Supervisor::ToolEnvironment(const ContainerPlan& plan) const {
  std::vector<std::string> environment = ToolVariables();
  environment.insert(environment.end(), plan.environment.begin(), plan.environment.end());
  // These variables lead to the rest of a run whose supervisor was killed.
  for (const char* name : {"MUSTER_RUN_KEY", "MUSTER_RUN_DIR"})
    environment.push_back(std::string(name) + "=" + ValueOf(spec_.environment, name));
  return environment;
}

pid_t Supervisor::StartTool(const std::vector<std::string>& words) {
  const std::string log = PathOf(kContainerLogFile);
  const hosts::Fd fd(
      open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    Failed(ExitRecord::Step::kFiles, errno, log);
    return -1;
  }
  const ChildStart start = StartChild({.words = words,
                                       .environment = ToolEnvironment({}),
                                       .working_directory = arguments_.directory,
                                       .stdin_fd = stdin_fd_,
                                       .stdout_fd = fd.get(),
                                       .stderr_fd = fd.get()});
  if (start.error != 0) {
    family_.Reap();
    Failed(start.step, start.error, start.path);
    return -1;
  }
  family_.Watch(start.pid);
  return start.pid;
}

std::string Supervisor::WhyToolSetsNoLimits(const GroupLimits& limits) {
  const std::string& tool = spec_.container_tool;
  std::string said;
  if (FinishTool(LimitsQuestionOf(tool), -1))
    ReadSmallFile(PathOf(kContainerLogFile), kMaxToolLogBytes, &said);
  return WhyNoLimits(tool, said, limits.memory_bytes, limits.cores);
}

bool Supervisor::NoteContainer(const ContainerPlan& plan, ExitRecord::Phase phase) {
  if (plan.remove.empty()) return true;
  const std::string file = PathOf(kContainersFile);
  const std::string line = spec_.container_tool + " " + ContainerName(phase) + "\n";
  const int error = WriteSmallFile(file, line, 0600);
  return error == 0 || Failed(ExitRecord::Step::kFiles, error, file);
}

bool Supervisor::FetchImage() {
  if (!MayBegin(ExitRecord::Phase::kImage)) return false;
  const ContainerPlan plan = PlanFor(ExitRecord::Phase::kCommand);
  // enroot makes the container of the image.
  if (plan.is_there.empty() && !NoteContainer(plan, ExitRecord::Phase::kCommand)) return false;
  std::vector<Words> steps = plan.pull;
  if (!plan.is_there.empty()) steps.insert(steps.begin(), plan.is_there);
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_question = i == 0 && !plan.is_there.empty();
    const pid_t tool = StartTool(steps[i]);
    if (tool < 0) return false;
    Wait(tool);
    const std::optional<int> end = family_.EndOf(tool);
    const bool is_good = end.has_value() && WIFEXITED(*end) && WEXITSTATUS(*end) == 0;
    if (exit_.cause != ExitRecord::Cause::kNone) {
      exit_.left_behind = !family_.KillAll();
      return false;
    }
    if (is_question && is_good) return true;
    if (is_question || is_good) continue;
    std::string said;
    ReadSmallFile(PathOf(kContainerLogFile), kMaxToolLogBytes, &said);
    said = WithoutBlanksAtEnd(std::move(said));
    return Failed(ExitRecord::Step::kImage, 0,
                  said.substr(said.size() - std::min(said.size(), kMaxQuotedBytes)));
  }
  return true;
}

bool Supervisor::PrepareContainer(const ContainerPlan& plan, ExitRecord::Phase phase,
                                  const std::vector<std::string>& environment) {
  std::vector<std::string> own = environment;
  if (spec_.container_tool != kApptainer) NumberAnew(&own);
  const std::string enter = PathOf(kEnterFile);
  const std::string script =
      EnterScript(own, spec_.working_directory, SetsLimits(spec_.container_tool));
  if (const int error = WriteSmallFile(enter, script, 0700))
    return Failed(ExitRecord::Step::kFiles, error, enter);
  return NoteContainer(plan, phase);
}

bool Supervisor::FinishTool(const std::vector<std::string>& words, pid_t leader) {
  return FinishToolUntil(SteadyMilliseconds() + kToolPatienceMs, words, leader);
}

bool Supervisor::FinishToolUntil(int64_t until_ms, const std::vector<std::string>& words,
                                 pid_t leader) {
  const ExitRecord kept = exit_;
  const pid_t tool = StartTool(words);
  exit_ = kept;
  if (tool < 0) return false;
  while (!family_.EndOf(tool).has_value()) {
    const int64_t left_ms = until_ms - SteadyMilliseconds();
    if (left_ms <= 0) break;
    pollfd fd = {signal_fd_, POLLIN, 0};
    poll(&fd, 1, static_cast<int>(std::min(left_ms, kToolRoundMs)));
    ReadSignals(leader);
    family_.Reap();
  }
  const std::optional<int> end = family_.EndOf(tool);
  if (!end.has_value()) kill(tool, SIGKILL);
  return end.has_value() && WIFEXITED(*end) && WEXITSTATUS(*end) == 0;
}

bool Supervisor::TellContainer(pid_t leader) {
  const std::string& tool = spec_.container_tool;
  const bool is_in_it =
      exit_.phase == ExitRecord::Phase::kSetup || exit_.phase == ExitRecord::Phase::kCommand;
  if (!is_in_it || (tool != kPodman && tool != kDocker)) return false;
  // A tool that hangs does not make the grace longer.
  return FinishToolUntil(kill_ms_, {tool, "kill", "--signal=TERM", ContainerName(exit_.phase)},
                         leader);
}

bool Supervisor::WasOom(const ContainerPlan& plan, pid_t leader) {
  // A process that was killed without a limit was killed for lack of memory on the machine.
  if (exit_.memory_limit_bytes == 0) return false;
  // conmon notes it where it was started, even for a process that is not the container's first.
  if (access(PathOf(kConmonOomFile).c_str(), F_OK) == 0) return true;
  if (plan.was_oom.empty() || !FinishTool(plan.was_oom, leader)) return false;
  std::string said;
  ReadSmallFile(PathOf(kContainerLogFile), kMaxToolLogBytes, &said);
  return WithoutBlanksAtEnd(std::move(said)) == "true";
}

void Supervisor::LeaveContainer(ExitRecord::Phase phase, pid_t leader) {
  const ContainerPlan plan = PlanFor(phase);
  const std::optional<int> end = family_.EndOf(leader);
  const bool was_good = end.has_value() && WIFEXITED(*end) && WEXITSTATUS(*end) == 0;
  if (!was_good && exit_.cause == ExitRecord::Cause::kNone && WasOom(plan, leader))
    ++exit_.oom_kills;
  // enroot's is the command's, too.
  const bool is_needed = phase == ExitRecord::Phase::kSetup && spec_.container_tool == kEnroot;
  if (!plan.remove.empty() && !is_needed && FinishTool(plan.remove, leader))
    unlink(PathOf(kContainersFile).c_str());
  if (phase != ExitRecord::Phase::kCommand) return;
  for (const char* file : {kEnrootImageFile, kApptainerImageFile, kConmonOomFile})
    unlink(PathOf(file).c_str());
}

}  // namespace muster::machines
