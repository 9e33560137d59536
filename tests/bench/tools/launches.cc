// Launches on a large Kubernetes cluster, to see what it costs to judge where they fit, without
// calls to a server.
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "agents/kubernetes/cluster/obstacle.h"
#include "agents/kubernetes/cluster/room_book.h"
#include "agents/kubernetes/start_queue.h"
#include "tests/bench/tools/processor_time.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

using kubernetes::Alike;
using kubernetes::KubernetesConfig;
using kubernetes::NodeObject;
using kubernetes::PodUse;
using kubernetes::RoomBook;
using kubernetes::RunNeed;
using kubernetes::Seen;
using kubernetes::StartQueue;

constexpr int kPods = 100'000;
constexpr int kPodsOfNode = 100;
constexpr int64_t kGibibyte = int64_t{1} << 30;
// Launches between that of a run and the news that its pod is on a node.
constexpr size_t kUntilPlaced = 50;

std::string NodeName(int number) { return fmt::format("node-{:04}", number); }

NodeObject MakeNode(int number) {
  NodeObject node;
  node.name = NodeName(number);
  node.ready = true;
  for (int i = 0; i < 20; ++i) node.labels[fmt::format("example.com/label-{}", i)] = "value";
  node.labels["nvidia.com/gpu.product"] = number % 2 == 0 ? "NVIDIA-H100" : "NVIDIA-A100";
  node.allocatable = {.cpu_millis = 256'000, .memory_bytes = 1024 * kGibibyte, .pods = 250};
  node.allocatable.gpus["nvidia.com/gpu"] = 8;
  node.gpu_capacity = node.allocatable.gpus;
  return node;
}

PodUse MakePod(int node) {
  PodUse pod;
  pod.node = NodeName(node);
  pod.requests = {.cpu_millis = 1000, .memory_bytes = kGibibyte, .pods = 1};
  return pod;
}

std::shared_ptr<agent::v1::Assignment> MakeRun(uint64_t number) {
  auto run = std::make_shared<agent::v1::Assignment>();
  run->set_run_key(fmt::format("bench-{}-1", number));
  run->mutable_spec()->set_nodes(1);
  run->mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(1000);
  return run;
}

// Puts the pod on one of the nodes that have the type of GPU.
PodUse PodOf(const agent::v1::Assignment& run, uint64_t number) {
  PodUse pod = MakePod(static_cast<int>(number) * 2 % (kPods / kPodsOfNode));
  pod.is_own = true;
  pod.run_key = run.run_key();
  pod.requests.gpus["nvidia.com/gpu"] = 1;
  return pod;
}

}  // namespace

absl::Status LaunchRuns(const Load& load) {
  KubernetesConfig config;
  config.name_space = "lab";
  RoomBook book(config);
  for (int i = 0; i < kPods / kPodsOfNode; ++i) {
    const NodeObject node = MakeNode(i);
    book.MoveNode(nullptr, &node);
  }
  for (int i = 0; i < kPods; ++i) {
    const PodUse pod = MakePod(i / kPodsOfNode);
    book.MovePod(nullptr, &pod);
  }
  const auto look = [&] {
    Seen seen;
    seen.knows_nodes = true;
    seen.gpu_types = book.GpuLabels();
    seen.rooms = book.Rooms();
    seen.namespaces.push_back({.name = "lab"});
    return seen;
  };
  StartQueue queue([&](const std::vector<Alike>& starting) {
    return RoomBehind(
        starting, [&](const std::string& run_key) { return book.PodsOf(run_key); }, config, look());
  });
  queue.Open();
  std::deque<StartQueue::AssignmentPtr> let_go;
  size_t ready = 0;
  const double ms = MillisecondsOf([&] {
    for (uint64_t number = 1; number <= load.jobs; ++number) {
      const auto run = MakeRun(number);
      queue.Expect(run, false);
      v1::Resources& resources = *run->mutable_spec()->mutable_resources();
      resources.mutable_gpus(0)->set_type(SpellGpuType("h100", book.GpuLabels(), config));
      const RunNeed share = NeedIn(*run, config, look());
      resources.set_cpu_millis(static_cast<uint64_t>(share.each.cpu_millis));
      resources.set_memory_bytes(static_cast<uint64_t>(share.each.memory_bytes));
      const Seen seen = look();
      if (FindObstacle(NeedIn(*run, config, seen), seen).has_value()) continue;
      queue.Add(run, false);
      ready += queue.TakeReady(run->run_key()).size();
      queue.SetLetGo(run->run_key());
      let_go.push_back(run);
      if (let_go.size() < kUntilPlaced) continue;
      const PodUse pod = PodOf(*let_go.front(), number);
      book.MovePod(nullptr, &pod);
      queue.SetPlaced(pod.run_key);
      let_go.pop_front();
    }
  });
  if (ready != load.jobs)
    return absl::InternalError(fmt::format("{} of {} runs found room", ready, load.jobs));
  fmt::print("{{\"all_ms\": {:.3f}}}\n", ms);
  return absl::OkStatus();
}

}  // namespace muster::bench
