#include "clients/cpp/slurm/sbatch_job.h"

#include <algorithm>
#include <array>
#include <optional>

#include "clients/cpp/slurm/sbatch_values.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::ParseNumber;
using contract::Quoted;
using contract::Split;

constexpr uint32_t kMaxCount = 1'000'000;
constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 50;  // as in a job spec

// How sbatch itself goes about it; nothing of the job.
constexpr std::array<std::string_view, 11> kOfTheCommand = {
    "help",    "ignore-pbs", "parsable", "quiet", "test-only", "usage",
    "verbose", "version",    "wait",     "wrap",  "open-mode"};

// Texts that the slurm section has as they are.
struct TextOption {
  std::string_view name;
  void (*set)(v1::SlurmOptions*, const std::string&);
};
constexpr std::array kTexts = {
    TextOption{"account", [](v1::SlurmOptions* s, const std::string& v) { s->set_account(v); }},
    TextOption{"comment", [](v1::SlurmOptions* s, const std::string& v) { s->set_comment(v); }},
    TextOption{"constraint",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_constraint(v); }},
    TextOption{"dependency",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_dependency(v); }},
    TextOption{"exclude", [](v1::SlurmOptions* s, const std::string& v) { s->set_exclude(v); }},
    TextOption{"licenses", [](v1::SlurmOptions* s, const std::string& v) { s->set_licenses(v); }},
    TextOption{"mail-type", [](v1::SlurmOptions* s, const std::string& v) { s->set_mail_type(v); }},
    TextOption{"mail-user", [](v1::SlurmOptions* s, const std::string& v) { s->set_mail_user(v); }},
    TextOption{"nodelist", [](v1::SlurmOptions* s, const std::string& v) { s->set_nodelist(v); }},
    TextOption{"partition", [](v1::SlurmOptions* s, const std::string& v) { s->set_partition(v); }},
    TextOption{"qos", [](v1::SlurmOptions* s, const std::string& v) { s->set_qos(v); }},
    TextOption{"reservation",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_reservation(v); }},
    TextOption{"signal", [](v1::SlurmOptions* s, const std::string& v) { s->set_signal(v); }},
};

// Maps the settings one after the other; remembers the first value that cannot be read.
class Mapper {
 public:
  explicit Mapper(const SbatchSubmission& submission) : given_(submission.options) {}

  absl::StatusOr<SbatchJob> Map(const SbatchSubmission& submission) {
    job_.spec.mutable_command()->set_script(submission.script);
    MapShape();
    MapGpus();
    MapMemory();
    for (const Setting& setting : given_.settings) MapOne(setting);
    for (const std::string& unknown : given_.not_understood) job_.slurm_only.push_back(unknown);
    if (!submission.arguments.empty()) job_.slurm_only.push_back("arguments of the script");
    if (!has_export_) {
      job_.notes.push_back("The variables of the shell that submits do not travel with the job.");
    }
    if (!status_.ok()) return status_;
    return std::move(job_);
  }

 private:
  void Bad(const Setting& setting, std::string_view remedy) {
    if (!status_.ok()) return;
    status_ = contract::BadField(
        fmt::format("--{}", setting.option->name),
        fmt::format("{} ({}) cannot be read; {}", Quoted(setting.value), setting.where, remedy));
  }

  void Tie(const Setting& setting) {
    const std::string value = setting.value.empty() ? "" : "=" + setting.value;
    job_.slurm_only.push_back(
        fmt::format("--{}{} ({})", setting.option->name, value, setting.where));
  }

  // A whole number from 1; `fallback` if the option was not given.
  uint64_t Count(std::string_view name, uint64_t fallback) {
    const Setting* setting = given_.Find(name);
    if (setting == nullptr) return fallback;
    const std::optional<uint32_t> number = ParseNumber<uint32_t>(setting->value);
    if (number.has_value() && *number >= 1 && *number <= kMaxCount) return *number;
    Bad(*setting, fmt::format("use 1 to {}", kMaxCount));
    return fallback;
  }

  // Nodes, tasks and CPUs.
  void MapShape() {
    const Setting* nodes = given_.Find("nodes");
    if (nodes != nullptr) {
      const std::optional<NodeRange> range = ParseNodeRange(nodes->value);
      if (!range.has_value()) return Bad(*nodes, "use a number such as 2, or a range such as 2-4");
      nodes_ = range->min;
      if (range->min > 1) Tie(*nodes);
    }
    const uint64_t tasks = Count("ntasks", 1);
    if (const Setting* given = given_.Find("ntasks");
        given != nullptr && tasks > 1 && nodes == nullptr) {
      Tie(*given);
    }
    tasks_per_node_ = Count("ntasks-per-node", (tasks + nodes_ - 1) / nodes_);
    cpus_ = tasks_per_node_ * Count("cpus-per-task", 1);
    job_.spec.set_nodes(static_cast<uint32_t>(nodes_));
    job_.spec.mutable_resources()->set_cpu_millis(cpus_ * 1000);
  }

  std::optional<v1::GpuRequest> Gpus(std::string_view name) {
    const Setting* setting = given_.Find(name);
    if (setting == nullptr) return std::nullopt;
    const std::optional<v1::GpuRequest> gpus = ParseSbatchGpus(setting->value);
    if (!gpus.has_value()) Bad(*setting, "use a number, or one type and a number such as h100:4");
    return gpus;
  }

  // On one node. The narrowest option counts, as it does for Slurm.
  void MapGpus() {
    std::optional<v1::GpuRequest> gpus = Gpus("gpus-per-node");
    if (const Setting* setting = given_.Find("gres"); setting != nullptr) {
      const std::optional<Gres> gres = ParseGres(setting->value);
      if (!gres.has_value()) return Bad(*setting, "use gpu[:TYPE][:COUNT], of one type");
      if (!gpus.has_value()) gpus = gres->gpus;
      if (!gres->others.empty()) {
        job_.spec.mutable_slurm()->set_gres(gres->others);
        Tie(*setting);
      }
    }
    if (auto of_task = Gpus("gpus-per-task"); of_task.has_value() && !gpus.has_value()) {
      of_task->set_count_millis(of_task->count_millis() * tasks_per_node_);
      gpus = of_task;
    }
    if (auto total = Gpus("gpus"); total.has_value() && !gpus.has_value()) {
      const uint64_t whole = total->count_millis() / 1000;
      if (whole % nodes_ != 0) Tie(*given_.Find("gpus"));
      total->set_count_millis((whole + nodes_ - 1) / nodes_ * 1000);
      gpus = total;
    }
    if (gpus.has_value() && gpus->count_millis() > 0) {
      *job_.spec.mutable_resources()->add_gpus() = *gpus;
    }
  }

  void MapMemory() {
    const Setting* only = nullptr;
    for (std::string_view name : {"mem", "mem-per-cpu", "mem-per-gpu"}) {
      const Setting* setting = given_.Find(name);
      if (setting == nullptr) continue;
      if (only != nullptr)
        return Bad(*setting, fmt::format("it and --{} exclude each other", only->option->name));
      only = setting;
    }
    if (only == nullptr) return;
    const std::optional<uint64_t> bytes = ParseSbatchMemory(only->value);
    if (!bytes.has_value()) return Bad(*only, "use a whole number of K, M, G or T, such as 16G");
    if (*bytes == 0) return Tie(*only);  // all that the node has
    uint64_t times = 1;
    if (only->option->name == "mem-per-cpu") times = cpus_;
    if (only->option->name == "mem-per-gpu") {
      const v1::Resources& resources = job_.spec.resources();
      times = resources.gpus().empty() ? 1 : resources.gpus(0).count_millis() / 1000;
    }
    if (times > kMaxMemoryBytes / *bytes) return Bad(*only, "it is more than any node has");
    job_.spec.mutable_resources()->set_memory_bytes(*bytes * times);
  }

  void MapTime(const Setting& setting) {
    const std::optional<uint64_t> seconds = ParseSbatchTime(setting.value);
    if (!seconds.has_value()) return Bad(setting, "use minutes, H:MM:SS or D-HH:MM:SS");
    if (*seconds > 0) {
      job_.spec.mutable_time_limit()->set_seconds(static_cast<int64_t>(*seconds));
    }
  }

  // "NONE", or a list of "NAME=value", of names and of "ALL", which are the shell's variables.
  void MapExport(const Setting& setting) {
    has_export_ = true;
    if (setting.value == "NONE" || setting.value == "NIL") return;
    for (std::string_view one : Split(setting.value, ',')) {
      const size_t equals = one.find('=');
      if (equals == one.npos || equals == 0) {
        has_export_ = false;  // it wants the shell's variables
        continue;
      }
      (*job_.spec.mutable_env())[std::string(one.substr(0, equals))] =
          std::string(one.substr(equals + 1));
    }
  }

  void MapNice(const Setting& setting) {
    const std::optional<uint32_t> nice =
        setting.value.empty() ? std::optional<uint32_t>(100) : ParseNumber<uint32_t>(setting.value);
    Tie(setting);
    if (nice.has_value()) job_.spec.mutable_slurm()->set_nice(*nice);
  }

  void MapOne(const Setting& setting) {
    const std::string_view name = setting.option->name;
    // These were read above, or are of no matter to the job.
    for (std::string_view read :
         {"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node",
          "gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu"}) {
      if (name == read) return;
    }
    if (std::find(kOfTheCommand.begin(), kOfTheCommand.end(), name) != kOfTheCommand.end()) return;
    if (name == "job-name") return job_.spec.set_name(setting.value);
    if (name == "time") return MapTime(setting);
    if (name == "export") return MapExport(setting);
    if (name == "output") return void(job_.output = setting.value);
    if (name == "error") return void(job_.error = setting.value);
    if (name == "input" && setting.value == "/dev/null") return;
    if (name == "chdir" && setting.value.starts_with('/')) {
      return job_.spec.set_working_directory(setting.value);
    }
    if (name == "nice") return MapNice(setting);
    Tie(setting);
    v1::SlurmOptions* slurm = job_.spec.mutable_slurm();
    if (name == "exclusive" && setting.value.empty()) slurm->set_exclusive(true);
    if (name == "requeue") slurm->set_requeue(true);
    if (name == "no-requeue") slurm->set_requeue(false);
    const auto text = std::find_if(kTexts.begin(), kTexts.end(),
                                   [&](const TextOption& one) { return one.name == name; });
    if (text != kTexts.end()) text->set(slurm, setting.value);
  }

  const Settings& given_;
  SbatchJob job_;
  absl::Status status_;
  uint64_t nodes_ = 1;
  uint64_t tasks_per_node_ = 1;
  uint64_t cpus_ = 1;  // on each node
  bool has_export_ = false;
};

}  // namespace

absl::StatusOr<SbatchJob> MapSbatch(const SbatchSubmission& submission) {
  return Mapper(submission).Map(submission);
}

}  // namespace muster::client::slurm
