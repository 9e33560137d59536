#include "agents/machines/answers.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/core/proto_time.h"
#include "agents/hosts/local_host.h"
#include "agents/machines/free_gpus.h"
#include "agents/machines/run_request.h"
#include "agents/machines/verdict.h"
#include "contract/checks.h"
#include "contract/issues.h"
#include "contract/message_of.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// A few large logs fill a disk with less room than this.
constexpr uint64_t kLittleDiskBytes = uint64_t{1} << 30;

void AddCheck(v1::ClusterChecks* checks, v1::CheckCode code, std::string subject,
              v1::CheckResult result, std::string seen, std::string remedy = "") {
  *checks->add_checks() =
      contract::MakeCheck(code, result, std::move(subject), std::move(seen), std::move(remedy));
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
    AddCheck(checks, v1::CHECK_CODE_STORAGE, subject, v1::CHECK_RESULT_FAIL, MessageOf(status),
             "free space there, make it writable for the agent's user, or give the agent another "
             "--state-dir");
    return false;
  }
  AddCheck(checks, v1::CHECK_CODE_STORAGE, subject, v1::CHECK_RESULT_OK,
           "a file could be written and removed");
  return true;
}

void CheckSpace(const std::string& directory, v1::ClusterChecks* checks) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error) {
    return AddCheck(checks, v1::CHECK_CODE_STORAGE, "disk space", v1::CHECK_RESULT_WARN,
                    fmt::format("it cannot be told: {}", error.message()));
  }
  const bool little = space.available < kLittleDiskBytes;
  AddCheck(
      checks, v1::CHECK_CODE_STORAGE, "disk space",
      little ? v1::CHECK_RESULT_WARN : v1::CHECK_RESULT_OK,
      fmt::format("{} of {} are free for logs and files of runs",
                  contract::FormatBytes(space.available), contract::FormatBytes(space.capacity)),
      little ? "free space, or lower machines.keep_finished_runs" : "");
}

// Empty: none.
std::string GpusText(const Capacity& capacity) {
  std::string text;
  for (const auto& [type, count] : capacity.GpuCounts())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
  return text;
}

void CheckGpus(const Machine& machine, v1::ClusterChecks* checks) {
  const std::string found = GpusText(machine.capacity);
  AddCheck(
      checks, v1::CHECK_CODE_GPUS, "GPUs", v1::CHECK_RESULT_OK, found.empty() ? "none" : found,
      found.empty() ? "if the machine has some: install nvidia-smi, or set machines.gpus" : "");
  for (const v1::ClusterIssue& issue : machine.issues)
    AddCheck(checks, v1::CHECK_CODE_NODES, "inventory", v1::CHECK_RESULT_WARN, issue.message(),
             issue.remedy());
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

std::string StateText(const HostView& host, const Room& room, uint32_t index) {
  if (!host.is_up) return "down";
  if (host.is_cordoned) return "cordoned";
  if (!host.start_trouble.empty()) return "failing";
  const uint32_t free = room.FreeCores(index);
  if (free == host.capacity.cores) return "idle";
  return free == 0 ? "full" : "mixed";
}

v1::NodeCondition ConditionOf(const HostView& host) {
  if (!host.is_up) return v1::NODE_CONDITION_DOWN;
  if (host.is_cordoned) return v1::NODE_CONDITION_CORDONED;
  return host.start_trouble.empty() ? v1::NODE_CONDITION_READY : v1::NODE_CONDITION_FAILING;
}

// Returns the reason that the host gets no runs now; "" if it gets some.
std::string WhyNot(const HostView& host) {
  if (!host.is_up) return host.why;
  if (host.is_cordoned) return "cordoned in the file of hosts";
  if (host.start_trouble.empty()) return "";
  return fmt::format("it could not start a run, and is tried again soon: {}", host.start_trouble);
}

void AddNode(const Load& load, uint32_t index, v1::ClusterDetails* details) {
  const HostView& host = load.hosts[index];
  const Room& room = load.ledger.room();
  v1::Node* node = details->add_nodes();
  node->set_name(host.config.name);
  node->set_state(StateText(host, room, index));
  node->set_condition(ConditionOf(host));
  node->set_reason(WhyNot(host));
  node->add_pools(kPoolName);
  node->set_cpus(host.capacity.cores);
  node->set_used_cpus(host.capacity.cores - room.FreeCores(index));
  node->set_memory_bytes(host.capacity.memory_bytes);
  node->set_used_memory_bytes(host.capacity.memory_bytes - room.FreeMemory(index));
  for (const auto& [type, count] : host.capacity.GpuCounts()) {
    (*node->mutable_gpus())[type] = count;
    (*node->mutable_used_gpus())[type] = count;
  }
  for (const auto& [type, count] : load.ledger.FreeGpuCounts(index))
    (*node->mutable_used_gpus())[type] -= count;
  // The pool counts the same: GPUs of a host that takes no runs are not free for any.
  if (host.TakesRuns()) AddFreeGpus(load.ledger, index, node->mutable_free_gpus());
  for (const std::string& label : host.config.labels) node->add_features(label);
}

// Tells of hosts that are one: what it has is counted, and given to runs, for each of its names.
std::vector<v1::ClusterIssue> IssuesOfTwins(const Load& load) {
  std::map<std::string, std::vector<std::string>> names;  // by the way there
  for (const HostView& host : load.hosts) {
    // The agent's own machine has no way there.
    for (const hosts::LoginHost& way : host.config.ssh.hosts)
      names[way.ToString()].push_back(host.config.name);
  }
  std::vector<v1::ClusterIssue> issues;
  for (const auto& [way, twins] : names) {
    if (twins.size() < 2) continue;
    issues.push_back(contract::HostTwice(twins, way));
  }
  return issues;
}

// Returns the issues that concern no single host.
std::vector<v1::ClusterIssue> IssuesOf(const Load& load) {
  std::vector<v1::ClusterIssue> issues = load.issues;
  for (v1::ClusterIssue& issue : IssuesOfTwins(load)) issues.push_back(std::move(issue));
  return issues;
}

// Returns the issues of one host.
std::vector<v1::ClusterIssue> IssuesOf(const HostView& host) {
  const std::string& name = host.config.name;
  std::vector<v1::ClusterIssue> issues;
  if (!host.is_up) {
    issues.push_back(contract::HostDown(name, host.why));
  } else if (!host.start_trouble.empty()) {
    issues.push_back(contract::HostStartsNothing(name, WhyNot(host)));
  }
  for (const v1::ClusterIssue& issue : host.issues) issues.push_back(contract::OfHost(name, issue));
  return issues;
}

}  // namespace

// ---- pure except for the time of day

ContainerRuntime ContainersOf(const Load& load) {
  ContainerRuntime least = {.tool = "", .why = "none of its hosts has been reached yet"};
  for (const HostView& host : load.hosts) {
    if (!host.is_known || (!host.is_up && host.containers.tool.empty())) continue;
    if (host.containers.tool.empty())
      return {.tool = "", .why = fmt::format("host {}: {}", host.config.name, host.containers.why)};
    least = host.containers;
  }
  return least;
}

v1::Inventory InventoryOf(const Load& load, const std::string& identity) {
  v1::Inventory inventory;
  inventory.set_identity(identity);
  inventory.set_scheduler_version("muster " MUSTER_VERSION);
  const ContainerRuntime containers = ContainersOf(load);
  inventory.set_images(containers.tool.empty() ? v1::IMAGE_SUPPORT_NONE
                                               : v1::IMAGE_SUPPORT_OPTIONAL);
  *inventory.mutable_observed_at() = agents::ToProto(absl::Now());
  v1::Pool* pool = inventory.add_pools();
  pool->set_name(kPoolName);
  pool->set_is_default(true);
  pool->set_max_nodes(static_cast<uint32_t>(load.hosts.size()));
  pool->set_available(true);
  for (v1::ClusterIssue& issue : IssuesOf(load)) *inventory.add_issues() = std::move(issue);
  for (uint32_t i = 0; i < load.hosts.size(); ++i) {
    const HostView& host = load.hosts[i];
    if (host.TakesRuns()) AddFreeGpus(load.ledger, i, pool->mutable_free_gpus());
    for (v1::ClusterIssue& issue : IssuesOf(host)) *inventory.add_issues() = std::move(issue);
    if (!host.is_known) continue;
    v1::NodeGroup* group = pool->add_node_groups();
    group->set_count(1);
    group->set_usable_count(host.TakesRuns() ? 1 : 0);
    group->set_cpus(host.capacity.cores);
    group->set_memory_bytes(host.capacity.memory_bytes);
    for (const auto& [type, count] : host.capacity.GpuCounts())
      (*group->mutable_gpus())[type] = count;
  }
  return inventory;
}

v1::ClusterDetails DetailsOf(const Load& load) {
  v1::ClusterDetails details;
  *details.mutable_observed_at() = agents::ToProto(absl::Now());
  for (uint32_t i = 0; i < load.hosts.size(); ++i) AddNode(load, i, &details);
  v1::PoolLoad* pool = details.add_pools();
  pool->set_pool(kPoolName);
  pool->mutable_now()->set_name(kPoolName);
  pool->mutable_now()->set_is_default(true);
  pool->mutable_now()->set_available(true);
  pool->mutable_now()->set_max_nodes(static_cast<uint32_t>(load.hosts.size()));
  for (uint32_t i = 0; i < load.hosts.size(); ++i) {
    const HostView& host = load.hosts[i];
    pool->set_cpus(pool->cpus() + host.capacity.cores);
    for (const auto& [type, count] : host.capacity.GpuCounts())
      (*pool->mutable_gpus())[type] += count;
    // GPUs of a host that takes no runs are not free for any.
    if (!host.TakesRuns()) continue;
    pool->set_free_cpus(pool->free_cpus() + load.ledger.room().FreeCores(i));
    for (const auto& [type, count] : load.ledger.FreeGpuCounts(i))
      (*pool->mutable_free_gpus())[type] += count;
    AddFreeGpus(load.ledger, i, pool->mutable_now()->mutable_free_gpus());
  }
  pool->set_waiting_jobs(static_cast<uint32_t>(load.waiting));
  pool->set_running_jobs(static_cast<uint32_t>(load.running));
  pool->set_own_waiting_jobs(pool->waiting_jobs());
  pool->set_own_running_jobs(pool->running_jobs());
  return details;
}

v1::ClusterChecks CheckHosts(const Load& load) {
  v1::ClusterChecks checks;
  for (const v1::ClusterIssue& issue : IssuesOf(load))
    AddCheck(&checks, v1::CHECK_CODE_CONFIGURATION, "file of hosts", v1::CHECK_RESULT_WARN,
             issue.message(), issue.remedy());
  for (const HostView& host : load.hosts) {
    const std::string subject =
        fmt::format("host {} ({})", host.config.name, host.config.ssh.hosts[0].ToString());
    if (!host.is_up) {
      AddCheck(&checks, v1::CHECK_CODE_NODES, subject, v1::CHECK_RESULT_FAIL, host.why,
               fmt::format("see that `ssh -p {} {}@{}` works with machines.ssh_key and "
                           "machines.ssh_known_hosts, or take the host out of the file of hosts",
                           host.config.ssh.hosts[0].port, host.config.ssh.user,
                           host.config.ssh.hosts[0].name));
      continue;
    }
    const std::string gpus = GpusText(host.capacity);
    AddCheck(&checks, v1::CHECK_CODE_NODES, subject, v1::CHECK_RESULT_OK,
             fmt::format(
                 "muster-supervisor runs there; runs may use {} cores, {} of memory and {}{}{}{}",
                 host.capacity.cores, contract::FormatBytes(host.capacity.memory_bytes),
                 gpus.empty() ? "no GPUs" : gpus,
                 host.limits.empty() ? "" : ", and are held to their " + host.limits,
                 host.containers.tool.empty() ? "" : "; containers by " + host.containers.tool,
                 host.is_cordoned ? "; it is cordoned" : ""));
    for (const v1::ClusterIssue& issue : host.issues) {
      AddCheck(&checks, v1::CHECK_CODE_NODES, "inventory of " + host.config.name,
               v1::CHECK_RESULT_WARN, issue.message(), issue.remedy());
    }
  }
  return checks;
}

v1::JobPlan PlanRun(const RunSpec& spec, const std::optional<Misfit>& misfit,
                    const Request& request, const Ledger& ledger, size_t waiting,
                    absl::Duration wait, std::string_view place) {
  v1::JobPlan plan;
  plan.set_submission(Submission(spec));
  v1::ClusterChecks checks;
  if (misfit.has_value()) {
    AddCheck(&checks, v1::CHECK_CODE_NODES, "what the job asks for", v1::CHECK_RESULT_FAIL,
             misfit->why, RemedyOf(*misfit));
  } else {
    AddCheck(&checks, v1::CHECK_CODE_NODES, "what the job asks for", v1::CHECK_RESULT_OK,
             fmt::format("the {} has it", place));
    const std::string shortage = ledger.Shortage(request);
    if (wait < absl::InfiniteDuration())
      *plan.mutable_estimated_start_time() = agents::ToProto(absl::Now() + wait);
    AddCheck(&checks, v1::CHECK_CODE_POOL, fmt::format("the {}'s queue", place),
             v1::CHECK_RESULT_OK, QueueText(waiting, wait, shortage));
  }
  plan.mutable_checks()->Swap(checks.mutable_checks());
  return plan;
}

v1::JobPlan PlanRefusal(const std::string& why) {
  v1::ClusterChecks checks;
  AddCheck(&checks, v1::CHECK_CODE_OTHER, "the job", v1::CHECK_RESULT_FAIL, why, "correct the job");
  v1::JobPlan plan;
  plan.mutable_checks()->Swap(checks.mutable_checks());
  return plan;
}

// ---- the agent's own machine

v1::ClusterChecks CheckMachine(const Machine& machine, const std::string& runs_directory,
                               const absl::Status& supervisor) {
  v1::ClusterChecks checks;
  AddCheck(
      &checks, v1::CHECK_CODE_NODES, "machine", v1::CHECK_RESULT_OK,
      fmt::format("{}: runs may use {} cores and {} of memory", machine.hostname,
                  machine.capacity.cores, contract::FormatBytes(machine.capacity.memory_bytes)));
  CheckGpus(machine, &checks);
  if (!machine.limits.empty())
    AddCheck(&checks, v1::CHECK_CODE_LIMITS, "limits", v1::CHECK_RESULT_OK,
             "runs are held to their " + machine.limits);
  AddCheck(&checks, v1::CHECK_CODE_CONTAINERS, "containers", v1::CHECK_RESULT_OK,
           machine.containers.tool.empty() ? "none: " + machine.containers.why
                                           : "made by " + machine.containers.tool);
  if (supervisor.ok()) {
    AddCheck(&checks, v1::CHECK_CODE_PROGRAMS, "muster-supervisor", v1::CHECK_RESULT_OK,
             "it can be started");
  } else {
    AddCheck(&checks, v1::CHECK_CODE_PROGRAMS, "muster-supervisor", v1::CHECK_RESULT_FAIL,
             MessageOf(supervisor),
             "install muster-supervisor beside muster-agent, or set machines.supervisor");
  }
  if (CheckDirectory(runs_directory, &checks)) {
    CheckSpace(runs_directory, &checks);
  } else {
    AddCheck(&checks, v1::CHECK_CODE_STORAGE, "disk space", v1::CHECK_RESULT_SKIPPED,
             "the directory cannot be used");
  }
  return checks;
}

}  // namespace muster::machines
