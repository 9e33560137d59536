#include "agents/machines/remote/host_record.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/machines/file_status.h"
#include "agents/machines/record.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// A thousand GPUs take less than a tenth of it.
constexpr size_t kMaxHostRecordBytes = 1 << 20;
constexpr mode_t kMode = 0600;

// The operator's values, which stand in place of the host's own.
constexpr char kCpus[] = "cpus";
constexpr char kMemory[] = "memory";
constexpr char kGpus[] = "gpus";

std::string GpuText(const Gpu& gpu) {
  return fmt::format("{} {} {} {}", gpu.index, gpu.is_amd ? "amd" : "nvidia", gpu.type, gpu.name);
}

std::optional<Gpu> ParseGpu(const std::string& text) {
  // Only the name may have spaces, and comes last.
  const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 3));
  Gpu gpu;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &gpu.index)) return std::nullopt;
  gpu.is_amd = words[1] == "amd";
  gpu.type = words[2];
  gpu.name = words[3];
  return gpu;
}

std::string Encode(const HostConfig& config, const Machine& machine) {
  Record record;
  record.Add("ssh", config.ssh.hosts[0].ToString());
  record.Add("cores", machine.capacity.cores);
  record.Add("memory", static_cast<int64_t>(machine.capacity.memory_bytes));
  for (const Gpu& gpu : machine.capacity.gpus) record.Add("gpu", GpuText(gpu));
  if (config.cpus.has_value()) record.Add("operators", kCpus);
  if (config.memory_bytes.has_value()) record.Add("operators", kMemory);
  if (config.gpus.has_value()) record.Add("operators", kGpus);
  record.Add("limits", machine.limits);
  record.Add("container_tool", machine.containers.tool);
  record.Add("no_containers", machine.containers.why);
  return record.Encode();
}

// Returns nothing if it is damaged.
std::optional<Machine> Decode(const Record& record) {
  Machine machine;
  machine.capacity.cores = static_cast<uint32_t>(record.Number("cores"));
  machine.capacity.memory_bytes = static_cast<uint64_t>(record.Number("memory"));
  for (const std::string& text : record.All("gpu")) {
    std::optional<Gpu> gpu = ParseGpu(text);
    if (!gpu.has_value()) return std::nullopt;
    machine.capacity.gpus.push_back(*std::move(gpu));
  }
  machine.limits = record.Text("limits");
  machine.containers = {.tool = record.Text("container_tool"), .why = record.Text("no_containers")};
  if (machine.capacity.cores == 0 || machine.capacity.memory_bytes == 0) return std::nullopt;
  return machine;
}

// Returns whether all of it is said by the host itself, or by its operator now.
bool IsKnown(const HostConfig& config, const Record& record) {
  const std::vector<std::string> was_operators = record.All("operators");
  const auto is_known = [&](const char* what, bool is_operators) {
    return is_operators ||
           std::find(was_operators.begin(), was_operators.end(), what) == was_operators.end();
  };
  return is_known(kCpus, config.cpus.has_value()) &&
         is_known(kMemory, config.memory_bytes.has_value()) &&
         is_known(kGpus, config.gpus.has_value());
}

bool SaysAll(const HostConfig& config) {
  return config.cpus.has_value() && config.memory_bytes.has_value() && config.gpus.has_value();
}

}  // namespace

absl::StatusOr<std::optional<Machine>> HostRecord::Recall(const HostConfig& config) const {
  const absl::StatusOr<std::optional<std::string>> content = LoadFile(path_, kMaxHostRecordBytes);
  std::optional<Machine> machine;
  absl::Status trouble = content.status();
  if (content.ok() && content->has_value()) {
    const std::optional<Record> record = Record::Decode(**content);
    if (record.has_value()) machine = Decode(*record);
    if (!machine.has_value()) {
      trouble = absl::DataLossError(fmt::format("\"{}\" is damaged", path_));
    } else if (record->Text("ssh") != config.ssh.hosts[0].ToString() || !IsKnown(config, *record)) {
      machine.reset();
    }
  }
  if (!machine.has_value() && SaysAll(config)) machine.emplace();
  if (!machine.has_value()) {
    if (!trouble.ok()) return trouble;
    return std::nullopt;
  }
  machine->hostname = name_;
  machine->identity = name_;
  TakeOperatorsWord(config, &machine->capacity);
  return machine;
}

absl::Status HostRecord::Write(const HostConfig& config, const Machine& machine) const {
  const std::string content = Encode(config, machine);
  const absl::StatusOr<std::optional<std::string>> before = LoadFile(path_, kMaxHostRecordBytes);
  if (before.ok() && *before == content) return absl::OkStatus();
  return StoreFile(path_, content, kMode);
}

void RemoveOtherHostRecords(const std::string& directory, const std::vector<std::string>& names) {
  std::error_code error;
  std::vector<std::filesystem::path> others;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (std::find(names.begin(), names.end(), entry->path().filename()) == names.end())
      others.push_back(entry->path());
  }
  // One that stays is of no use to anybody, and does no harm.
  for (const std::filesystem::path& other : others) std::filesystem::remove(other, error);
}

}  // namespace muster::machines
