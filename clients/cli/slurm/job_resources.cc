#include "clients/cli/slurm/job_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "clients/cli/text.h"
#include "clients/cpp/slurm/sbatch_values.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

// "16G", "512M"; "0".
std::string SizeText(uint64_t mebibytes) {
  if (mebibytes == 0) return "0";
  return mebibytes % 1024 == 0 ? fmt::format("{}G", mebibytes / 1024)
                               : fmt::format("{}M", mebibytes);
}

// The whole number of an option; nothing: the job does not have it.
std::optional<uint32_t> NumberOf(const v1::JobSpec& spec, std::string_view name) {
  return contract::ParseNumber<uint32_t>(OptionOf(spec, name));
}

uint64_t MebibytesOf(const v1::JobSpec& spec, std::string_view name) {
  return client::slurm::ParseSbatchMemory(OptionOf(spec, name)).value_or(0) >> 20;
}

uint64_t GpusOf(const v1::JobSpec& spec, std::string_view name) {
  const auto gpus = client::slurm::ParseSbatchGpus(OptionOf(spec, name));
  return gpus.has_value() ? gpus->count_millis() / 1000 : 0;
}

// The one type that all its GPUs are of; empty: any, or several.
std::string GpuType(const v1::JobSpec& spec) {
  for (std::string_view name : {"gpus", "gpus-per-task"}) {
    const auto gpus = client::slurm::ParseSbatchGpus(OptionOf(spec, name));
    if (gpus.has_value()) return gpus->type();
  }
  return spec.resources().gpus_size() == 1 ? spec.resources().gpus(0).type() : "";
}

uint64_t TotalGpus(const JobRecord& record) {
  const v1::JobSpec& spec = record.job().spec();
  if (const uint64_t all = GpusOf(spec, "gpus"); all > 0) return all;
  if (const uint64_t each = GpusOf(spec, "gpus-per-task"); each > 0) return each * TaskCount(spec);
  uint64_t gpus = 0;
  for (const v1::GpuRequest& some : spec.resources().gpus()) gpus += some.count_millis() / 1000;
  return gpus * NodeCount(record);
}

uint64_t TotalMebibytes(const JobRecord& record) {
  const v1::JobSpec& spec = record.job().spec();
  if (const uint64_t each = MebibytesOf(spec, "mem-per-cpu"); each > 0)
    return each * TotalCpus(spec);
  if (const uint64_t each = MebibytesOf(spec, "mem-per-gpu"); each > 0)
    return each * TotalGpus(record);
  return NodeCount(record) * (spec.resources().memory_bytes() >> 20);
}

}  // namespace

std::string_view OptionOf(const v1::JobSpec& spec, std::string_view name) {
  std::string_view value;
  for (const std::string& option : spec.slurm().extra_options()) {
    const std::string_view text = option;
    const bool is_it = text.size() > name.size() + 3 && text.substr(2, name.size()) == name &&
                       text[name.size() + 2] == '=';
    if (is_it) value = text.substr(name.size() + 3);
  }
  return value;
}

uint64_t NodeCount(const JobRecord& record) {
  if (record.run() != nullptr && !record.run()->nodes().empty())
    return static_cast<uint64_t>(record.run()->nodes_size());
  const v1::JobSpec& spec = record.job().spec();
  const auto tasks = NumberOf(spec, "ntasks");
  const auto of_node = NumberOf(spec, "ntasks-per-node");
  const uint64_t needed = tasks.has_value() && of_node.value_or(0) > 0
                              ? (uint64_t{*tasks} + *of_node - 1) / *of_node
                              : 1;
  return std::max({needed, uint64_t{spec.nodes()}, uint64_t{1}});
}

uint64_t TaskCount(const v1::JobSpec& spec) {
  const uint64_t of_node = std::max<uint32_t>(1, spec.slurm().tasks_per_node());
  const auto tasks = NumberOf(spec, "ntasks");
  return tasks.has_value() ? *tasks : of_node * std::max<uint32_t>(1, spec.nodes());
}

uint64_t TotalCpus(const v1::JobSpec& spec) {
  const uint64_t each = (spec.resources().cpu_millis() + 999) / 1000;
  if (spec.slurm().tasks_per_node() > 1) return each * std::max<uint32_t>(1, spec.nodes());
  // The cores are those of one task if Slurm spreads the tasks.
  if (const auto tasks = NumberOf(spec, "ntasks"); tasks.has_value())
    return std::max<uint64_t>(1, each) * *tasks;
  return std::max<uint64_t>(1, each) * std::max<uint32_t>(1, spec.nodes());
}

std::string GresText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) {
    if (gpus.count_millis() == 0) continue;
    text = fmt::format("gres:gpu{}{}:{}", gpus.type().empty() ? "" : ":", Harmless(gpus.type()),
                       gpus.count_millis() / 1000);
  }
  if (!spec.slurm().gres().empty()) {
    text += (text.empty() ? "gres:" : ",gres:") + Harmless(spec.slurm().gres());
  }
  return text.empty() ? "N/A" : text;
}

std::string MemoryText(const v1::JobSpec& spec) {
  const uint64_t of_core = MebibytesOf(spec, "mem-per-cpu");
  return SizeText(of_core > 0 ? of_core : spec.resources().memory_bytes() >> 20);
}

std::string TotalMemoryText(const JobRecord& record) { return SizeText(TotalMebibytes(record)); }

std::string TresText(const JobRecord& record, TresOrder order) {
  const uint64_t gpus = TotalGpus(record);
  const uint64_t mebibytes = TotalMebibytes(record);
  std::string gpu_text = gpus == 0 ? "" : fmt::format(",gres/gpu={}", gpus);
  const std::string type = GpuType(record.job().spec());
  if (gpus > 0 && !type.empty()) {
    const std::string typed = fmt::format(",gres/gpu:{}={}", Harmless(type), gpus);
    gpu_text = order == TresOrder::kSacct ? typed + gpu_text : gpu_text + typed;
  }
  const bool is_sacct = order == TresOrder::kSacct;
  return fmt::format("cpu={}{}{},node={}{}", TotalCpus(record.job().spec()),
                     is_sacct ? gpu_text : "", mebibytes == 0 ? "" : ",mem=" + SizeText(mebibytes),
                     NodeCount(record), is_sacct ? "" : gpu_text);
}

}  // namespace muster::cli
