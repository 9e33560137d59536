#include "agents/machines/remote/remote_answers.h"

#include <map>
#include <utility>

#include "absl/time/clock.h"
#include "agents/core/proto_time.h"
#include "agents/machines/free_gpus.h"
#include "agents/machines/run_request.h"
#include "contract/issues.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

std::string GpusText(const Capacity& capacity) {
  std::string text;
  for (const auto& [type, count] : capacity.GpuCounts())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, type);
  return text.empty() ? "no GPUs" : text;
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

// Why the host gets no runs now; "" if it does.
std::string WhyNot(const HostView& host) {
  if (!host.is_up) return host.why;
  if (host.is_cordoned) return "cordoned in the file of hosts";
  if (host.start_trouble.empty()) return "";
  return fmt::format("it could not start a run, and is tried again soon: {}", host.start_trouble);
}

void AddNode(const RemoteScheduler::Load& load, uint32_t index, v1::ClusterDetails* details) {
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

void Add(v1::ClusterChecks* checks, std::string subject, v1::CheckResult result, std::string seen,
         std::string remedy) {
  v1::ClusterCheck* check = checks->add_checks();
  check->set_subject(std::move(subject));
  check->set_result(result);
  check->set_seen(std::move(seen));
  check->set_remedy(std::move(remedy));
}

// Hosts that are one: what it has is counted, and given to runs, for each of its names.
std::vector<v1::ClusterIssue> IssuesOfTwins(const RemoteScheduler::Load& load) {
  std::map<std::string, std::vector<std::string>> names;  // by the way there
  for (const HostView& host : load.hosts)
    names[host.config.ssh.hosts[0].ToString()].push_back(host.config.name);
  std::vector<v1::ClusterIssue> issues;
  for (const auto& [way, twins] : names) {
    if (twins.size() < 2) continue;
    issues.push_back(contract::HostTwice(twins, way));
  }
  return issues;
}

// Returns the issues that concern no single host.
std::vector<v1::ClusterIssue> IssuesOf(const RemoteScheduler::Load& load) {
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

ContainerRuntime ContainersOf(const RemoteScheduler::Load& load) {
  ContainerRuntime least = {.tool = "", .why = "none of its hosts has been reached yet"};
  for (const HostView& host : load.hosts) {
    if (!host.is_known || (!host.is_up && host.containers.tool.empty())) continue;
    if (host.containers.tool.empty())
      return {.tool = "", .why = fmt::format("host {}: {}", host.config.name, host.containers.why)};
    least = host.containers;
  }
  return least;
}

v1::Inventory InventoryOf(const RemoteScheduler::Load& load, const std::string& cluster) {
  v1::Inventory inventory;
  // Hosts come and go; the cluster is the one that its operator gave this name.
  inventory.set_identity("hosts of " + cluster);
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

v1::ClusterDetails DetailsOf(const RemoteScheduler::Load& load) {
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

v1::ClusterChecks ChecksOf(const RemoteScheduler::Load& load) {
  v1::ClusterChecks checks;
  for (const v1::ClusterIssue& issue : IssuesOf(load))
    Add(&checks, "file of hosts", v1::CHECK_RESULT_WARN, issue.message(), issue.remedy());
  for (const HostView& host : load.hosts) {
    const std::string subject =
        fmt::format("host {} ({})", host.config.name, host.config.ssh.hosts[0].ToString());
    if (!host.is_up) {
      Add(&checks, subject, v1::CHECK_RESULT_FAIL, host.why,
          fmt::format("see that `ssh -p {} {}@{}` works with machines.ssh_key and "
                      "machines.ssh_known_hosts, or take the host out of the file of hosts",
                      host.config.ssh.hosts[0].port, host.config.ssh.user,
                      host.config.ssh.hosts[0].name));
      continue;
    }
    Add(&checks, subject, v1::CHECK_RESULT_OK,
        fmt::format(
            "muster-supervisor runs there; runs may use {} cores, {} of memory and {}{}{}{}",
            host.capacity.cores, contract::FormatBytes(host.capacity.memory_bytes),
            GpusText(host.capacity),
            host.limits.empty() ? "" : ", and are held to their " + host.limits,
            host.containers.tool.empty() ? "" : "; containers by " + host.containers.tool,
            host.is_cordoned ? "; it is cordoned" : ""),
        "");
    for (const v1::ClusterIssue& issue : host.issues) {
      Add(&checks, "inventory of " + host.config.name, v1::CHECK_RESULT_WARN, issue.message(),
          issue.remedy());
    }
  }
  return checks;
}

}  // namespace muster::machines
