#include "agents/machines/answers.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/proto_time.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/free_gpus.h"
#include "agents/machines/run_request.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Less and a few large logs fill the disk.
constexpr uint64_t kLittleDiskBytes = uint64_t{1} << 30;

void AddCheck(v1::ClusterChecks* checks, std::string subject, v1::CheckResult result,
              std::string seen, std::string remedy = "") {
  v1::ClusterCheck* check = checks->add_checks();
  check->set_subject(std::move(subject));
  check->set_result(result);
  check->set_seen(std::move(seen));
  check->set_remedy(std::move(remedy));
}

// Describes the queue that a run would find.
std::string QueueText(size_t waiting, absl::Duration wait, const std::string& shortage) {
  const std::string runs = waiting == 1 ? "1 run waits" : fmt::format("{} runs wait", waiting);
  if (waiting > 0 && wait == absl::ZeroDuration())
    return fmt::format("{}, and this one would start before {}", runs,
                       waiting == 1 ? "it" : "them");
  return fmt::format("{} before it{}", runs,
                     shortage.empty() ? "" : ", and it would wait for " + shortage);
}

// Returns whether runs can have their directories there. False: they cannot.
bool CheckDirectory(const std::string& directory, v1::ClusterChecks* checks) {
  const std::string subject = "directory of runs " + directory;
  hosts::LocalHost host;
  const std::string probe = directory + "/.probe";
  absl::Status status = host.WriteFile(probe, "", {.mode = 0600, .sync = false});
  if (status.ok()) status = host.RemoveTree(probe);
  if (!status.ok()) {
    AddCheck(checks, subject, v1::CHECK_RESULT_FAIL, MessageOf(status),
             "free space there, make it writable for the agent's user, or give the agent another "
             "--state-dir");
    return false;
  }
  AddCheck(checks, subject, v1::CHECK_RESULT_OK, "a file could be written and removed");
  return true;
}

void CheckSpace(const std::string& directory, v1::ClusterChecks* checks) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error) {
    return AddCheck(checks, "disk space", v1::CHECK_RESULT_WARN,
                    fmt::format("it cannot be told: {}", error.message()));
  }
  const bool little = space.available < kLittleDiskBytes;
  AddCheck(
      checks, "disk space", little ? v1::CHECK_RESULT_WARN : v1::CHECK_RESULT_OK,
      fmt::format("{} of {} are free for logs and files of runs",
                  contract::FormatBytes(space.available), contract::FormatBytes(space.capacity)),
      little ? "free space, or lower machines.keep_finished_runs" : "");
}

void CheckGpus(const Machine& machine, v1::ClusterChecks* checks) {
  std::string found;
  for (const auto& [type, count] : machine.capacity.GpuCounts()) {
    found += fmt::format("{}{} {}", found.empty() ? "" : ", ", count, type);
  }
  AddCheck(
      checks, "GPUs", v1::CHECK_RESULT_OK, found.empty() ? "none" : found,
      found.empty() ? "if the machine has some: install nvidia-smi, or set machines.gpus" : "");
  for (const v1::ClusterIssue& issue : machine.issues)
    AddCheck(checks, "inventory", v1::CHECK_RESULT_WARN, issue.message(), issue.remedy());
}

std::string Submission(const RunSpec& spec) {
  std::string text = fmt::format("# in {}\n", spec.working_directory);
  if (!spec.container_tool.empty())
    text += fmt::format("# in a container of {}, by {}\n", spec.image, spec.container_tool);
  for (const std::string& variable : spec.environment) text += variable + "\n";
  if (!spec.setup_words.empty()) {
    text += fmt::format("\n# setup: {}\n{}\n", fmt::join(spec.setup_words, " "), spec.setup_script);
  }
  text += fmt::format("\n# command, word by word:\n{}\n", fmt::join(spec.command_words, "\n"));
  if (!spec.command_script.empty()) text += "\n" + spec.command_script + "\n";
  return text;
}

}  // namespace

v1::ClusterChecks CheckMachine(const Machine& machine, const std::string& runs_directory,
                               const absl::Status& supervisor) {
  v1::ClusterChecks checks;
  AddCheck(
      &checks, "machine", v1::CHECK_RESULT_OK,
      fmt::format("{}: runs may use {} cores and {} of memory", machine.hostname,
                  machine.capacity.cores, contract::FormatBytes(machine.capacity.memory_bytes)));
  CheckGpus(machine, &checks);
  if (!machine.limits.empty())
    AddCheck(&checks, "limits", v1::CHECK_RESULT_OK, "runs are held to their " + machine.limits);
  AddCheck(&checks, "containers", v1::CHECK_RESULT_OK,
           machine.containers.tool.empty() ? "none: " + machine.containers.why
                                           : "made by " + machine.containers.tool);
  if (supervisor.ok()) {
    AddCheck(&checks, "muster-supervisor", v1::CHECK_RESULT_OK, "it can be started");
  } else {
    AddCheck(&checks, "muster-supervisor", v1::CHECK_RESULT_FAIL, MessageOf(supervisor),
             "install muster-supervisor beside muster-agent, or set machines.supervisor");
  }
  if (CheckDirectory(runs_directory, &checks)) {
    CheckSpace(runs_directory, &checks);
  } else {
    AddCheck(&checks, "disk space", v1::CHECK_RESULT_SKIPPED, "the directory cannot be used");
  }
  return checks;
}

v1::ClusterDetails DescribeMachine(const Machine& machine, const Scheduler::Load& load) {
  const Room& room = load.ledger.room();
  const Capacity& capacity = machine.capacity;
  v1::ClusterDetails details;
  *details.mutable_observed_at() = agents::ToProto(absl::Now());

  v1::Node* node = details.add_nodes();
  node->set_name(machine.hostname);
  node->set_state(load.running == 0 ? "idle" : room.FreeCores(0) == 0 ? "full" : "mixed");
  node->set_condition(v1::NODE_CONDITION_READY);
  node->add_pools(kPoolName);
  node->set_cpus(capacity.cores);
  node->set_used_cpus(capacity.cores - room.FreeCores(0));
  node->set_memory_bytes(capacity.memory_bytes);
  node->set_used_memory_bytes(capacity.memory_bytes - room.FreeMemory(0));

  v1::PoolLoad* pool = details.add_pools();
  pool->set_pool(kPoolName);
  pool->mutable_now()->set_name(kPoolName);
  pool->mutable_now()->set_is_default(true);
  pool->mutable_now()->set_available(true);
  pool->mutable_now()->set_max_nodes(1);
  pool->set_cpus(capacity.cores);
  pool->set_free_cpus(room.FreeCores(0));
  for (const auto& [type, count] : capacity.GpuCounts()) (*pool->mutable_gpus())[type] = count;
  for (const auto& [type, count] : load.ledger.FreeGpuCounts(0)) {
    (*pool->mutable_free_gpus())[type] = count;
    (*node->mutable_used_gpus())[type] = pool->gpus().at(type) - count;
  }
  *node->mutable_gpus() = pool->gpus();
  AddFreeGpus(load.ledger, 0, node->mutable_free_gpus());
  *pool->mutable_now()->mutable_free_gpus() = node->free_gpus();
  // The queue is the agent's alone.
  pool->set_waiting_jobs(static_cast<uint32_t>(load.waiting));
  pool->set_running_jobs(static_cast<uint32_t>(load.running));
  pool->set_own_waiting_jobs(pool->waiting_jobs());
  pool->set_own_running_jobs(pool->running_jobs());
  return details;
}

v1::JobPlan PlanRun(const RunSpec& spec, const std::optional<Misfit>& misfit,
                    const Request& request, const Ledger& ledger, size_t waiting,
                    absl::Duration wait, std::string_view place) {
  v1::JobPlan plan;
  plan.set_submission(Submission(spec));
  v1::ClusterChecks checks;
  if (misfit.has_value()) {
    AddCheck(&checks, "what the job asks for", v1::CHECK_RESULT_FAIL, misfit->why, misfit->remedy);
  } else {
    AddCheck(&checks, "what the job asks for", v1::CHECK_RESULT_OK,
             fmt::format("the {} has it", place));
    const std::string shortage = ledger.Shortage(request);
    if (wait < absl::InfiniteDuration())
      *plan.mutable_estimated_start_time() = agents::ToProto(absl::Now() + wait);
    AddCheck(&checks, fmt::format("the {}'s queue", place), v1::CHECK_RESULT_OK,
             QueueText(waiting, wait, shortage));
  }
  plan.mutable_checks()->Swap(checks.mutable_checks());
  return plan;
}

v1::JobPlan PlanRefusal(const std::string& why) {
  v1::ClusterChecks checks;
  AddCheck(&checks, "the job", v1::CHECK_RESULT_FAIL, why, "correct the job");
  v1::JobPlan plan;
  plan.mutable_checks()->Swap(checks.mutable_checks());
  return plan;
}

}  // namespace muster::machines
