#include "agents/machines/scheduling/ledger.h"

#include <algorithm>
#include <utility>

#include "contract/counted.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::machines {
namespace {

// Keeps messages readable.
constexpr size_t kMaxNamedHosts = 8;

std::vector<ClusterHost> AllUp(std::vector<ClusterHost> hosts) {
  for (ClusterHost& host : hosts) host.state = HostState::kUp;
  return hosts;
}

}  // namespace

std::map<std::string, uint32_t> Capacity::GpuCounts() const {
  std::map<std::string, uint32_t> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.type];
  return counts;
}

Ledger::Ledger(std::vector<ClusterHost> hosts)
    : hosts_(std::move(hosts)), whole_(AllUp(hosts_)), free_(hosts_), room_(hosts_) {}

void Ledger::SetState(uint32_t host, HostState state) {
  hosts_[host].state = state;
  free_.SetOpen(host, state == HostState::kUp);
  room_.SetOpen(host, state == HostState::kUp);
}

std::map<std::string, uint32_t> Ledger::FreeGpuCounts(uint32_t host) const {
  std::map<std::string, uint32_t> counts;
  for (const Room::Device& device : room_.DevicesOf(host)) {
    counts[room_.TypeName(device.type)] += device.used == 0 ? 1 : 0;
  }
  return counts;
}

// ---- words for what never fits

std::optional<Misfit> Ledger::Refusal(const Request& request) const {
  if (std::optional<Misfit> misfit = CheckShare(request)) return misfit;
  if (whole_.Fits(request)) return std::nullopt;
  Request anywhere = request;
  anywhere.excluded_hosts.clear();
  if (whole_.Fits(anywhere)) {
    return Misfit{fmt::format("the hosts without {}, where earlier runs of the job failed "
                              "(retry.exclude_failed_nodes), are too few or too small for it",
                              fmt::join(request.excluded_hosts, ", ")),
                  contract::FailureCause::kFailedHosts};
  }
  uint32_t cores = 0;
  uint64_t memory = 0;
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    cores = std::max(cores, whole_.FreeCores(host));
    memory = std::max(memory, whole_.FreeMemory(host));
  }
  if (request.nodes > hosts_.size()) {
    const std::string has = hosts_.size() == 1
                                ? std::string("this cluster is one machine")
                                : fmt::format("this cluster has {} hosts", hosts_.size());
    return Misfit{fmt::format("{} nodes were asked for; {}", request.nodes, has)};
  }
  if (request.cores > cores) {
    return Misfit{
        fmt::format("{} cores were asked for; {} has {}", request.cores, Largest(), cores)};
  }
  if (request.memory_bytes > memory) {
    return Misfit{fmt::format("{} of memory were asked for; {} has {}",
                              contract::FormatBytes(request.memory_bytes), Largest(),
                              contract::FormatBytes(memory))};
  }
  const Request gpus = {.gpu_type = request.gpu_type, .gpu_millis = request.gpu_millis};
  if (!whole_.Fits(gpus)) {
    return Misfit{fmt::format("{} were asked for; {}", GpuText(request), GpuOffer(request))};
  }
  return Misfit{fmt::format("{} nodes were asked for; {} hosts have all that one needs",
                            request.nodes, whole_.CountHosts(request))};
}

std::string Ledger::GpuOffer(const Request& request) const {
  std::map<std::string, uint32_t> most;  // on one host
  for (const ClusterHost& host : hosts_) {
    for (const auto& [type, count] : host.capacity.GpuCounts()) {
      most[type] = std::max(most[type], count);
    }
  }
  std::string offer;
  for (const auto& [type, count] : most) {
    offer += fmt::format("{}{} {}", offer.empty() ? "" : ", ", count, type);
  }
  if (hosts_.size() == 1) return fmt::format("the machine has {}", offer.empty() ? "none" : offer);
  if (most.empty()) return "no host has any";
  const bool known = request.gpu_type.empty() || most.contains(request.gpu_type);
  return fmt::format("{} {}", known ? "one host has at most" : "hosts have", offer);
}

// ---- words for what does not fit now

std::string Ledger::Shortage(const Request& request) const {
  if (room_.Fits(request)) return "";
  if (!free_.Fits(request)) {
    const std::string names = HostsNotUp();
    if (!names.empty()) return fmt::format("hosts that take no runs now ({})", names);
  }
  return hosts_.size() == 1 ? ShortageOfOne(request) : ShortageOfMany(request);
}

std::string Ledger::ShortageOfOne(const Request& request) const {
  if (request.cores > room_.FreeCores(0)) {
    return fmt::format("{} of {} cores", request.cores, hosts_[0].capacity.cores);
  }
  if (request.memory_bytes > room_.FreeMemory(0)) {
    return fmt::format("{} of {} memory", contract::FormatBytes(request.memory_bytes),
                       contract::FormatBytes(hosts_[0].capacity.memory_bytes));
  }
  return GpuText(request);
}

std::string Ledger::ShortageOfMany(const Request& request) const {
  const std::string hosts = request.nodes == 1 ? "a host" : fmt::format("{} hosts", request.nodes);
  const uint32_t nodes = request.nodes;
  if (!room_.Fits({.nodes = nodes, .cores = request.cores})) {
    return fmt::format("{} with {} free cores", hosts, request.cores);
  }
  if (!room_.Fits({.nodes = nodes, .memory_bytes = request.memory_bytes})) {
    return fmt::format("{} with {} of free memory", hosts,
                       contract::FormatBytes(request.memory_bytes));
  }
  if (!room_.Fits(
          {.nodes = nodes, .gpu_type = request.gpu_type, .gpu_millis = request.gpu_millis})) {
    return fmt::format("{} with {}", hosts, GpuText(request));
  }
  return fmt::format("{} with all that it needs at once", hosts);
}

std::string Ledger::HostsNotUp() const {
  std::vector<std::string> names;
  for (const ClusterHost& host : hosts_) {
    if (host.state != HostState::kUp) names.push_back(host.name);
  }
  const bool is_cut = names.size() > kMaxNamedHosts;
  if (is_cut) names.resize(kMaxNamedHosts);
  return fmt::format("{}{}", fmt::join(names, ", "), is_cut ? ", ..." : "");
}

}  // namespace muster::machines
