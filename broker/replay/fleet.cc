#include "broker/replay/fleet.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "broker/replay/table.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::replay {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

absl::Status Wrong(std::string_view place, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", place, why));
}

absl::StatusOr<uint32_t> Count(const YAML::Node& node, const std::string& key, uint32_t missing,
                               std::string_view place) {
  if (!node[key]) return missing;
  const auto number = node[key].as<int64_t>(-1);
  if (number < 0 || number > 1'000'000)
    return Wrong(fmt::format("{}.{}", place, key), "a whole number up to 1000000 works");
  return static_cast<uint32_t>(number);
}

absl::StatusOr<NodeShape> ReadShape(const YAML::Node& node, const std::string& place) {
  NodeShape shape;
  const auto count = Count(node, "count", 1, place);
  if (!count.ok()) return count.status();
  const auto cpus = Count(node, "cpus", 1, place);
  if (!cpus.ok()) return cpus.status();
  shape.count = *count;
  shape.cpus = *cpus;
  if (node["memory"]) {
    const auto memory = contract::ParseBytes(node["memory"].as<std::string>(""));
    if (!memory.ok()) return Wrong(place + ".memory", ToStd(memory.status().message()));
    shape.memory_bytes = *memory;
  }
  if (node["gpus"]) {
    const auto gpus = contract::ParseGpus(node["gpus"].as<std::string>(""));
    if (!gpus.ok()) return Wrong(place + ".gpus", ToStd(gpus.status().message()));
    shape.gpus = static_cast<uint32_t>(gpus->count_millis() / 1000);
    shape.gpu_type = gpus->type().empty() ? "gpu" : gpus->type();
  }
  return shape;
}

absl::StatusOr<v1::ClusterKind> ReadKind(const YAML::Node& node, const std::string& place) {
  const auto kind = node["kind"].as<std::string>("machines");
  if (kind == "machines") return v1::CLUSTER_KIND_MACHINES;
  if (kind == "slurm") return v1::CLUSTER_KIND_SLURM;
  if (kind == "kubernetes") return v1::CLUSTER_KIND_KUBERNETES;
  return Wrong(place + ".kind",
               fmt::format("\"{}\" is none; slurm, kubernetes and machines work", kind));
}

absl::StatusOr<FleetCluster> ReadCluster(const YAML::Node& node, const std::string& place) {
  FleetCluster cluster;
  cluster.name = node["name"].as<std::string>("");
  if (cluster.name.empty()) return Wrong(place + ".name", "each cluster needs a name");
  const auto kind = ReadKind(node, place);
  if (!kind.ok()) return kind.status();
  cluster.kind = *kind;
  const auto runs = Count(node, "max_active_runs", cluster.max_active_runs, place);
  if (!runs.ok()) return runs.status();
  if (*runs == 0) return Wrong(place + ".max_active_runs", "1 to 1000000 work");
  cluster.max_active_runs = *runs;
  const size_t shapes = node["nodes"] ? node["nodes"].size() : 0;
  for (size_t i = 0; i < shapes; ++i) {
    auto shape = ReadShape(node["nodes"][i], fmt::format("{}.nodes[{}]", place, i));
    if (!shape.ok()) return shape.status();
    cluster.nodes.push_back(*std::move(shape));
  }
  if (cluster.nodes.empty()) return Wrong(place + ".nodes", "each cluster needs nodes");
  return cluster;
}

absl::StatusOr<Fleet> FleetFrom(const YAML::Node& root) {
  Fleet fleet;
  const size_t clusters = root["clusters"] ? root["clusters"].size() : 0;
  for (size_t i = 0; i < clusters; ++i) {
    auto cluster = ReadCluster(root["clusters"][i], fmt::format("clusters[{}]", i));
    if (!cluster.ok()) return cluster.status();
    fleet.clusters.push_back(*std::move(cluster));
  }
  std::sort(fleet.clusters.begin(), fleet.clusters.end(),
            [](const FleetCluster& a, const FleetCluster& b) { return a.name < b.name; });
  if (fleet.clusters.empty()) return Wrong("clusters", "at least one is needed");
  const auto twice = std::adjacent_find(
      fleet.clusters.begin(), fleet.clusters.end(),
      [](const FleetCluster& a, const FleetCluster& b) { return a.name == b.name; });
  if (twice != fleet.clusters.end())
    return Wrong("clusters", fmt::format("two are called \"{}\"", twice->name));
  return fleet;
}

// Describes the clusters of FleetOfOpenb: of a hundred nodes, in the order of the file, each takes
// as many as its part says.
struct Part {
  std::string_view name;
  v1::ClusterKind kind;
  size_t percent;
};
constexpr Part kParts[] = {
    {"atlas", v1::CLUSTER_KIND_SLURM, 34},   {"breeze", v1::CLUSTER_KIND_KUBERNETES, 25},
    {"cedar", v1::CLUSTER_KIND_SLURM, 17},   {"delta", v1::CLUSTER_KIND_KUBERNETES, 12},
    {"ember", v1::CLUSTER_KIND_MACHINES, 8}, {"fjord", v1::CLUSTER_KIND_MACHINES, 4},
};

// Returns the part whose cluster gets the next node, which is the one that lacks most of its share.
size_t NextPart(const std::vector<size_t>& taken) {
  size_t best = 0;
  for (size_t i = 1; i < std::size(kParts); ++i) {
    if (taken[i] * kParts[best].percent < taken[best] * kParts[i].percent) best = i;
  }
  return best;
}

}  // namespace

uint64_t GpusOf(const Fleet& fleet) {
  uint64_t gpus = 0;
  for (const FleetCluster& cluster : fleet.clusters) {
    for (const NodeShape& shape : cluster.nodes) gpus += uint64_t{shape.count} * shape.gpus;
  }
  return gpus;
}

absl::StatusOr<Fleet> ReadFleet(std::string_view yaml) {
  try {
    return FleetFrom(YAML::Load(std::string(yaml)));
  } catch (const std::exception& error) {  // yaml-cpp throws what it cannot read
    return absl::InvalidArgumentError(fmt::format("no YAML of a fleet: {}", error.what()));
  }
}

absl::StatusOr<Fleet> FleetOfOpenb(std::string_view csv, size_t nodes) {
  const auto table = Table::Read(csv, ',', {"sn", "cpu_milli", "memory_mib", "gpu", "model"});
  if (!table.ok()) return table.status();
  if (table->rows() == 0) return absl::InvalidArgumentError("the file has no nodes");
  const size_t kept = nodes == 0 ? table->rows() : std::min(nodes, table->rows());
  std::vector<size_t> taken(std::size(kParts));
  using Shape = std::tuple<uint32_t, uint64_t, uint32_t, std::string>;
  std::vector<std::map<Shape, uint32_t>> shapes(std::size(kParts));
  for (size_t i = 0; i < kept; ++i) {
    const size_t row = i * table->rows() / kept;
    double values[3];
    constexpr std::string_view kColumns[] = {"cpu_milli", "memory_mib", "gpu"};
    for (size_t column = 0; column < std::size(kColumns); ++column) {
      const auto value = table->Number(row, kColumns[column], 0);
      if (!value.ok()) return value.status();
      values[column] = *value;
    }
    const size_t part = NextPart(taken);
    ++taken[part];
    ++shapes[part][{static_cast<uint32_t>(values[0] / 1000),
                    static_cast<uint64_t>(values[1]) * kMebibyte, static_cast<uint32_t>(values[2]),
                    absl::AsciiStrToLower(ToAbsl(table->At(row, "model")))}];
  }
  Fleet fleet;
  for (size_t part = 0; part < std::size(kParts); ++part) {
    if (taken[part] == 0) continue;
    FleetCluster cluster{.name = std::string(kParts[part].name), .kind = kParts[part].kind};
    for (const auto& [shape, count] : shapes[part]) {
      const auto& [cpus, memory, gpus, type] = shape;
      cluster.nodes.push_back({count, cpus, memory, gpus, type});
    }
    fleet.clusters.push_back(std::move(cluster));
  }
  return fleet;
}

absl::Status StretchToLoad(double load, const Fleet& fleet, Trace* trace) {
  const auto gpus = static_cast<double>(GpusOf(fleet));
  double asked = 0;  // GPU seconds
  for (const TraceJob& job : trace->jobs) {
    asked += absl::ToDoubleSeconds(job.run_time) * job.nodes * static_cast<double>(job.gpu_millis) /
             1000;
  }
  const absl::Duration span =
      trace->jobs.empty() ? absl::ZeroDuration() : trace->jobs.back().arrival;
  if (gpus == 0 || asked == 0 || span <= absl::ZeroDuration()) {
    return absl::FailedPreconditionError(
        "a load needs clusters with GPUs, jobs that ask for some, and arrivals at different times; "
        "leave it out to replay the trace as it is");
  }
  const double factor = asked / (gpus * load * absl::ToDoubleSeconds(span));
  for (TraceJob& job : trace->jobs) job.arrival *= factor;
  return absl::OkStatus();
}

}  // namespace muster::replay
