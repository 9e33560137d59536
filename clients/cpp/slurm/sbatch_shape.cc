#include "clients/cpp/slurm/sbatch_shape.h"

#include <algorithm>
#include <array>
#include <optional>

#include "clients/cpp/slurm/sbatch_values.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

constexpr uint32_t kMaxShapeCount = 1'000'000;
constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 50;  // as in a job spec

constexpr std::array<std::string_view, 12> kShapeOptions = {
    "nodes",         "ntasks", "ntasks-per-node", "cpus-per-task", "cpus-per-gpu", "gpus",
    "gpus-per-node", "gres",   "gpus-per-task",   "mem",           "mem-per-cpu",  "mem-per-gpu"};

class ShapeMapper {
 public:
  ShapeMapper(const Settings& given, v1::JobSpec* spec, contract::FieldErrors* errors)
      : given_(given), spec_(*spec), errors_(*errors) {}

  void Map() {
    MapNodes();
    MapGpus();
    MapCpus();
    MapMemory();
    PassAll();
  }

 private:
  // Returns a whole number from 1; `fallback` if the option was not given.
  uint64_t Count(std::string_view name, uint64_t fallback) {
    const Setting* setting = given_.Find(name);
    if (setting == nullptr) return fallback;
    const auto number = contract::ParseNumber<uint32_t>(setting->value);
    if (number.has_value() && *number >= 1 && *number <= kMaxShapeCount) return *number;
    AddUnreadable(*setting, fmt::format("use 1 to {}", kMaxShapeCount), &errors_);
    return fallback;
  }

  // Slurm gets all of them as they were written.
  void PassAll() {
    for (const Setting& setting : given_.settings) {
      const std::string_view name = setting.option->name;
      if (!IsOfShape(name) || setting.value.empty()) continue;
      // "-4" nodes are 1 to 4.
      const std::string value = (setting.value.starts_with('-') ? "1" : "") + setting.value;
      contract::CheckOptionValue(fmt::format("--{}", name), value, &errors_);
      AddExtra(name, value, &spec_);
    }
  }

  void MapNodes() {
    NodeRange range;
    if (const Setting* nodes = given_.Find("nodes"); nodes != nullptr) {
      const std::optional<NodeRange> read = ParseNodeRange(nodes->value);
      if (!read.has_value()) {
        return AddUnreadable(*nodes, "use a number such as 2, or a range such as 2-4", &errors_);
      }
      range = *read;
    }
    // The nodes that are named all belong to the job.
    const Setting* named = given_.Find("nodelist");
    if (named != nullptr && given_.Find("nodes") == nullptr)
      range.min = range.max = std::max<uint32_t>(1, CountHosts(named->value).value_or(1));
    nodes_ = range.min;
    const uint64_t tasks = Count("ntasks", 1);
    tasks_per_node_ = Count("ntasks-per-node", nodes_ == 1 ? tasks : 1);
    // A range that begins with one node is as good as one node to a script that starts no tasks.
    const bool is_range = range.max > range.min && (range.min > 1 || tasks > 1);
    const bool is_open = given_.Find("nodes") == nullptr && tasks > 1;
    const bool is_several = nodes_ > 1 && given_.Find("ntasks") != nullptr;
    const bool is_uneven = given_.Find("ntasks") != nullptr && tasks != nodes_ * tasks_per_node_;
    is_spread_ = is_range || is_open || is_several || is_uneven;
    spec_.set_nodes(nodes_);
    if (is_spread_) {
      tasks_per_node_ = 1;
    } else if (tasks_per_node_ > 1) {
      spec_.mutable_slurm()->set_tasks_per_node(static_cast<uint32_t>(tasks_per_node_));
    }
  }

  std::optional<v1::GpuRequest> Gpus(std::string_view name) {
    const Setting* setting = given_.Find(name);
    if (setting == nullptr || setting->value.empty()) return std::nullopt;
    const std::optional<v1::GpuRequest> gpus = ParseSbatchGpus(setting->value);
    if (!gpus.has_value())
      AddUnreadable(*setting, "use a number, or a type and a number such as h100:4", &errors_);
    return gpus;
  }

  // Maps the GPUs on one node. The narrowest option counts, as it does for Slurm.
  void MapGpus() {
    std::optional<v1::GpuRequest> gpus = Gpus("gpus-per-node");
    if (const Setting* setting = given_.Find("gres"); setting != nullptr) {
      const std::optional<Gres> gres = ParseGres(setting->value);
      if (!gres.has_value() || setting->value.empty()) {
        return AddUnreadable(*setting, "use gpu[:TYPE][:COUNT], all with a type or none", &errors_);
      }
      if (!gpus.has_value()) gpus = gres->gpus;
      if (!gres->others.empty()) spec_.mutable_slurm()->set_gres(gres->others);
    }
    auto of_task = Gpus("gpus-per-task");
    if (of_task.has_value() && !is_spread_ && !gpus.has_value()) {
      of_task->set_count_millis(of_task->count_millis() * tasks_per_node_);
      gpus = of_task;
    }
    const auto total = Gpus("gpus");
    const bool on_one_node = nodes_ == 1 && !is_spread_;
    if (total.has_value() && on_one_node && !gpus.has_value()) gpus = total;
    if (gpus.has_value() && gpus->count_millis() > 0)
      *spec_.mutable_resources()->add_gpus() = *gpus;
  }

  uint64_t GpusOfANode() const {
    return spec_.resources().gpus().empty() ? 0 : spec_.resources().gpus(0).count_millis() / 1000;
  }

  void MapCpus() {
    cpus_ = tasks_per_node_ * Count("cpus-per-task", 1);
    if (const Setting* of_gpu = given_.Find("cpus-per-gpu"); of_gpu != nullptr) {
      const uint64_t each = Count("cpus-per-gpu", 1);
      if (given_.Find("cpus-per-task") != nullptr) {
        AddUnreadable(*of_gpu, "it and --cpus-per-task exclude each other", &errors_);
      }
      cpus_ = std::max(tasks_per_node_, each * GpusOfANode());
    }
    // One core for all tasks of a node.
    if (given_.Find("overcommit") != nullptr) cpus_ = 1;
    spec_.mutable_resources()->set_cpu_millis(cpus_ * 1000);
  }

  void MapMemory() {
    const Setting* only = nullptr;
    for (std::string_view name : {"mem", "mem-per-cpu", "mem-per-gpu"}) {
      const Setting* setting = given_.Find(name);
      if (setting == nullptr) continue;
      if (only != nullptr) {
        return AddUnreadable(
            *setting, fmt::format("it and --{} exclude each other", only->option->name), &errors_);
      }
      only = setting;
    }
    if (only == nullptr) return;
    const std::optional<uint64_t> bytes = ParseSbatchMemory(only->value);
    if (!bytes.has_value()) {
      return AddUnreadable(*only, "use a whole number of K, M, G or T, such as 16G", &errors_);
    }
    const bool is_per_gpu = only->option->name == "mem-per-gpu";
    const bool is_per_cpu = only->option->name == "mem-per-cpu";
    if (*bytes == 0 || (is_per_cpu && is_spread_) || (is_per_gpu && GpusOfANode() == 0)) return;
    const uint64_t times = is_per_cpu ? cpus_ : is_per_gpu ? GpusOfANode() : 1;
    if (times > kMaxMemoryBytes / *bytes) {
      return AddUnreadable(*only, "it is more than any node has", &errors_);
    }
    spec_.mutable_resources()->set_memory_bytes(*bytes * times);
  }

  const Settings& given_;
  v1::JobSpec& spec_;
  contract::FieldErrors& errors_;
  uint32_t nodes_ = 1;
  uint64_t tasks_per_node_ = 1;
  uint64_t cpus_ = 1;       // on each node, or of each task if Slurm spreads them
  bool is_spread_ = false;  // Slurm decides how many tasks a node gets
};

}  // namespace

bool IsOfShape(std::string_view option) {
  return std::find(kShapeOptions.begin(), kShapeOptions.end(), option) != kShapeOptions.end();
}

void MapShape(const Settings& given, v1::JobSpec* spec, contract::FieldErrors* errors) {
  ShapeMapper(given, spec, errors).Map();
}

void AddUnreadable(const Setting& setting, std::string_view remedy, contract::FieldErrors* errors) {
  errors->Add(fmt::format("--{}", setting.option->name),
              fmt::format("{} ({}) cannot be used; {}", contract::Quoted(setting.value),
                          setting.where, remedy));
}

void AddExtra(std::string_view name, std::string_view value, v1::JobSpec* spec) {
  spec->mutable_slurm()->add_extra_options(value.empty() ? fmt::format("--{}", name)
                                                         : fmt::format("--{}={}", name, value));
}

}  // namespace muster::client::slurm
