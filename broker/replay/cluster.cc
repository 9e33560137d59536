#include "broker/replay/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "contract/text.h"

namespace muster::replay {
namespace {

constexpr uint32_t kWholeGpu = 1000;

}  // namespace

Nodes::Nodes(const FleetCluster& cluster) : shapes_(cluster.nodes) {
  for (const NodeShape& shape : cluster.nodes) {
    for (uint32_t i = 0; i < shape.count; ++i) {
      nodes_.push_back({.cpu_millis = uint64_t{shape.cpus} * 1000,
                        .memory_bytes = shape.memory_bytes,
                        .gpu_type = shape.gpu_type,
                        .gpu_millis = std::vector<uint32_t>(shape.gpus, kWholeGpu)});
    }
    gpus_ += uint64_t{shape.count} * shape.gpus;
    cpus_ += uint64_t{shape.count} * shape.cpus;
  }
}

std::optional<Nodes::Piece> Nodes::TakeOn(size_t index, const TraceJob& job) {
  Node& node = nodes_[index];
  if (node.cpu_millis < job.cpu_millis || node.memory_bytes < job.memory_bytes) return std::nullopt;
  Piece piece{.node = index};
  if (job.gpu_millis > 0) {
    if (!job.gpu_type.empty() &&
        !absl::EqualsIgnoreCase(ToAbsl(job.gpu_type), ToAbsl(node.gpu_type)))
      return std::nullopt;
    const bool is_part = job.gpu_millis < kWholeGpu;
    const size_t wanted = is_part ? 1 : job.gpu_millis / kWholeGpu;
    const uint32_t millis = is_part ? static_cast<uint32_t>(job.gpu_millis) : kWholeGpu;
    // A part goes to the device that has the least left for it.
    std::vector<std::pair<uint32_t, size_t>> devices;
    for (size_t i = 0; i < node.gpu_millis.size(); ++i) {
      if (node.gpu_millis[i] >= millis) devices.emplace_back(node.gpu_millis[i], i);
    }
    if (devices.size() < wanted) return std::nullopt;
    std::sort(devices.begin(), devices.end());
    for (size_t i = 0; i < wanted; ++i) piece.gpus.emplace_back(devices[i].second, millis);
  }
  node.cpu_millis -= job.cpu_millis;
  node.memory_bytes -= job.memory_bytes;
  taken_cpu_millis_ += job.cpu_millis;
  for (const auto& [device, millis] : piece.gpus) {
    node.gpu_millis[device] -= millis;
    taken_gpu_millis_ += millis;
  }
  return piece;
}

void Nodes::GiveBack(const TraceJob& job, const Piece& piece) {
  Node& node = nodes_[piece.node];
  node.cpu_millis += job.cpu_millis;
  node.memory_bytes += job.memory_bytes;
  taken_cpu_millis_ -= job.cpu_millis;
  for (const auto& [device, millis] : piece.gpus) {
    node.gpu_millis[device] += millis;
    taken_gpu_millis_ -= millis;
  }
}

std::optional<Nodes::Allocation> Nodes::Take(const TraceJob& job) {
  Allocation allocation;
  for (size_t i = 0; i < nodes_.size() && allocation.size() < job.nodes; ++i) {
    if (auto piece = TakeOn(i, job)) allocation.push_back(*std::move(piece));
  }
  if (allocation.size() == job.nodes) return allocation;
  Give(job, allocation);
  return std::nullopt;
}

void Nodes::Give(const TraceJob& job, const Allocation& allocation) {
  for (const Piece& piece : allocation) GiveBack(job, piece);
}

double Nodes::load() const {
  if (gpus_ > 0) return static_cast<double>(taken_gpu_millis_) / static_cast<double>(gpus_ * 1000);
  return cpus_ == 0 ? 1
                    : static_cast<double>(taken_cpu_millis_) / static_cast<double>(cpus_ * 1000);
}

void Nodes::Describe(v1::Pool* pool) const {
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  for (const NodeShape& shape : shapes_) {
    v1::NodeGroup* group = pool->add_node_groups();
    group->set_count(shape.count);
    group->set_usable_count(shape.count);
    group->set_cpus(shape.cpus);
    group->set_memory_bytes(shape.memory_bytes);
    if (shape.gpus > 0) (*group->mutable_gpus())[shape.gpu_type] = shape.gpus;
  }
  for (const Node& node : nodes_) {
    if (node.gpu_millis.empty()) continue;
    v1::FreeGpus& free = (*pool->mutable_free_gpus())[node.gpu_type];
    for (const uint32_t millis : node.gpu_millis) {
      if (millis == kWholeGpu) free.set_whole(free.whole() + 1);
    }
  }
}

ReplayCluster::ReplayCluster(const FleetCluster& cluster)
    : name_(cluster.name), empty_(cluster), nodes_(cluster) {}

double ReplayCluster::WeightOf(const TraceJob& job) const {
  const auto asked = static_cast<double>(nodes_.gpus() > 0 ? job.gpu_millis : job.cpu_millis);
  const auto all = static_cast<double>(nodes_.gpus() > 0 ? nodes_.gpus() : nodes_.cpus());
  return all == 0 ? 0 : asked * job.nodes / (1000 * all);
}

double ReplayCluster::demand() const { return demand_; }

void ReplayCluster::Submit(size_t job, const TraceJob& ask, absl::Duration now) {
  demand_ += WeightOf(ask);
  queue_.push_back({job, &ask, now});
}

std::vector<size_t> ReplayCluster::StartWhatFits(absl::Duration now) {
  std::vector<size_t> started;
  absl::flat_hash_set<Shape> without_room;
  for (auto waiting = queue_.begin(); waiting != queue_.end();) {
    const bool is_known = !without_room.empty() && without_room.contains(ShapeOf(*waiting->ask));
    auto allocation = is_known ? std::nullopt : nodes_.Take(*waiting->ask);
    if (allocation) {
      running_.emplace(waiting->job, Running{waiting->ask, *std::move(allocation)});
      started.push_back(waiting->job);
      waiting = queue_.erase(waiting);
      continue;
    }
    if (waiting == queue_.begin() && now - waiting->since >= kMaxOvertaking) break;
    without_room.insert(ShapeOf(*waiting->ask));
    ++waiting;
  }
  return started;
}

void ReplayCluster::End(size_t job) {
  const auto found = running_.find(job);
  if (found == running_.end()) return;
  nodes_.Give(*found->second.ask, found->second.allocation);
  demand_ -= WeightOf(*found->second.ask);
  running_.erase(found);
}

bool ReplayCluster::TakeBack(size_t job) {
  const auto waiting = std::find_if(queue_.begin(), queue_.end(),
                                    [job](const Waiting& one) { return one.job == job; });
  if (waiting == queue_.end()) return false;
  demand_ -= WeightOf(*waiting->ask);
  queue_.erase(waiting);
  return true;
}

bool ReplayCluster::CouldRun(const TraceJob& job) const {
  Nodes nodes = empty_;
  return nodes.Take(job).has_value();
}

v1::Inventory ReplayCluster::Inventory() const {
  v1::Inventory inventory;
  inventory.set_identity("replayed " + name_);
  inventory.set_images(v1::IMAGE_SUPPORT_OPTIONAL);
  nodes_.Describe(inventory.add_pools());
  return inventory;
}

}  // namespace muster::replay
