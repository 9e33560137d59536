#include "agents/machines/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agents/machines/amd_gpus.h"
#include "contract/issues.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
// nvidia-smi takes seconds when the driver has to be loaded first.
constexpr absl::Duration kGpuTimeout = absl::Seconds(30);

std::string FileText(hosts::Host& host, std::string_view path) {
  absl::StatusOr<std::string> text = host.ReadFile(path, kMaxFileBytes);
  return text.ok() ? *std::move(text) : std::string();
}

// Counts the cores that this process may use.
uint32_t OwnCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

// Returns the cores, but not more than the quota of a container.
uint32_t WithinQuota(uint32_t cores, hosts::Host& host) {
  if (cores == 0) return 0;
  std::istringstream quota(FileText(host, "/sys/fs/cgroup/cpu.max"));
  uint64_t microseconds = 0;
  uint64_t period = 0;
  if (quota >> microseconds >> period && period > 0) {
    cores = static_cast<uint32_t>(std::clamp<uint64_t>(microseconds / period, 1, cores));
  }
  return cores;
}

uint64_t CountMemory(hosts::Host& host) {
  const std::string text = FileText(host, "/proc/meminfo");
  const size_t at = text.find("MemTotal:");
  if (at == std::string::npos) return 0;
  uint64_t bytes = std::strtoull(text.c_str() + at + 9, nullptr, 10) * 1024;
  uint64_t limit = 0;
  if (std::istringstream(FileText(host, "/sys/fs/cgroup/memory.max")) >> limit)
    bytes = std::min(bytes, limit);
  return bytes;
}

std::string Hostname() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string Identity(hosts::Host& host, const std::string& hostname) {
  std::istringstream text(FileText(host, "/etc/machine-id"));
  std::string id;
  text >> id;
  // An image that was never booted says "uninitialized".
  return id.size() == 32 ? id : hostname;
}

std::vector<Gpu> ConfiguredGpus(const GpuCounts& counts) {
  std::vector<Gpu> gpus;
  for (const auto& [type, count] : counts) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t index = static_cast<uint32_t>(gpus.size());
      gpus.push_back(
          {.index = index, .type = absl::AsciiStrToLower(type), .name = std::to_string(index)});
    }
  }
  return gpus;
}

// Compares the operator's numbers with the machine's own; a machine that does not tell (0) is no
// reason.
void WarnOfTooMuch(const HostConfig& config, Machine* machine) {
  const Capacity& has = machine->capacity;
  if (has.cores > 0 && config.cpus.value_or(0) > has.cores)
    machine->issues.push_back(contract::LessThanConfigured(fmt::format("cpus: {}", *config.cpus),
                                                           std::to_string(has.cores)));
  if (has.memory_bytes > 0 && config.memory_bytes.value_or(0) > has.memory_bytes) {
    machine->issues.push_back(
        contract::LessThanConfigured("memory: " + contract::FormatBytes(*config.memory_bytes),
                                     contract::FormatBytes(has.memory_bytes)));
  }
}

// `cores` says that it tells. Returns false if neither machine nor operator tell cores and memory.
bool TellCapacity(const HostConfig& config, uint32_t cores, hosts::Host& host, Machine* machine) {
  machine->capacity.cores = WithinQuota(cores, host);
  machine->capacity.memory_bytes = CountMemory(host);
  WarnOfTooMuch(config, machine);
  TakeOperatorsWord(config, &machine->capacity);
  return machine->capacity.cores > 0 && machine->capacity.memory_bytes > 0;
}

// One maker's tool that lists its GPUs.
struct GpuTool {
  std::string name;
  std::vector<std::string> paths;  // the first that is there is asked
  std::vector<std::string> arguments;
  absl::StatusOr<std::vector<Gpu>> (*parse)(std::string_view answer);
};

std::vector<GpuTool> GpuTools() {
  return {{.name = "nvidia-smi",
           .paths = {"nvidia-smi"},
           .arguments = {"--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader"},
           .parse = ParseGpuList},
          {.name = "rocm-smi",
           // Its packages leave PATH alone.
           .paths = {"rocm-smi", "/opt/rocm/bin/rocm-smi"},
           .arguments = RocmSmiArguments(),
           .parse = ParseRocmSmi}};
}

// NOT_FOUND: there is no such tool.
absl::StatusOr<hosts::CommandResult> Ask(const GpuTool& tool, hosts::Host& host) {
  absl::StatusOr<hosts::CommandResult> answer = absl::NotFoundError(tool.name);
  for (size_t i = 0; i < tool.paths.size() && absl::IsNotFound(answer.status()); ++i) {
    std::vector<std::string> argv = {tool.paths[i]};
    argv.insert(argv.end(), tool.arguments.begin(), tool.arguments.end());
    answer = host.Run({.argv = std::move(argv), .timeout = kGpuTimeout});
  }
  return answer;
}

// Adds the GPUs after those of other makers.
void AddGpus(std::vector<Gpu> gpus, Capacity* capacity) {
  const uint32_t first =
      capacity->gpus.empty() ? 0 : capacity->gpus.back().index + 1;  // theirs are in order
  for (Gpu& gpu : gpus) {
    gpu.index += first;
    capacity->gpus.push_back(std::move(gpu));
  }
}

// A tool that did not answer has not said that there are none: UNAVAILABLE.
absl::Status FindGpusBy(const GpuTool& tool, hosts::Host& host, Machine* machine) {
  const absl::StatusOr<hosts::CommandResult> answer = Ask(tool, host);
  if (absl::IsNotFound(answer.status())) return absl::OkStatus();
  if (!answer.ok() && !hosts::NotStarted(answer.status())) {
    return absl::UnavailableError(
        fmt::format("{} did not tell the GPUs: {}; repair the driver, or name the GPUs in "
                    "the configuration",
                    tool.name, ToStd(answer.status().message())));
  }
  std::string trouble;
  if (!answer.ok()) {
    trouble = MessageOf(answer.status());
  } else if (!answer->ok()) {
    trouble =
        fmt::format("{} ended with exit code {}, signal {}: {}", tool.name, answer->exit_code,
                    answer->signal, (answer->stderr_data + answer->stdout_data).substr(0, 500));
  } else {
    absl::StatusOr<std::vector<Gpu>> gpus = tool.parse(answer->stdout_data);
    if (gpus.ok()) {
      AddGpus(*std::move(gpus), &machine->capacity);
      return absl::OkStatus();
    }
    trouble = MessageOf(gpus.status());
  }
  machine->issues.push_back(contract::NoGpus(tool.name, trouble));
  return absl::OkStatus();
}

// Asks for none if the operator has named them.
absl::Status FindGpus(const HostConfig& config, hosts::Host& host, Machine* machine) {
  if (config.gpus.has_value()) return absl::OkStatus();
  for (const GpuTool& tool : GpuTools()) {
    if (absl::Status s = FindGpusBy(tool, host, machine); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> ReadMachine(const MachinesConfig& config, hosts::Host& host) {
  Machine machine;
  machine.hostname = Hostname();
  machine.identity = Identity(host, machine.hostname);
  HostConfig operators;
  operators.cpus = config.cpus;
  operators.memory_bytes = config.memory_bytes;
  operators.gpus = config.gpus;
  if (!TellCapacity(operators, OwnCores(), host, &machine)) {
    return absl::InternalError(
        "the machine does not tell its cores or memory; set cpus and memory in the agent's "
        "configuration");
  }
  if (absl::Status s = FindGpus(operators, host, &machine); !s.ok())
    machine.issues.push_back(contract::NoGpus("", MessageOf(s)));
  // The machine does not have a resource about which it cannot be asked.
  if (absl::Status s = TellContainers(config.container_runtime, host, &machine); !s.ok())
    machine.containers.why = MessageOf(s);
  TellLimits(config.limits, config.limits ? ProbeLimits() : LimitsFound{}, &machine);
  return machine;
}

absl::Status TellContainers(const std::string& wanted, hosts::Host& host, Machine* machine) {
  absl::StatusOr<ContainerRuntime> found = FindContainerRuntime(wanted, host);
  if (!found.ok()) return found.status();
  machine->containers = *std::move(found);
  const bool is_missing =
      machine->containers.tool.empty() && wanted != kFirstFound && wanted != kNoContainers;
  if (is_missing) {
    machine->issues.push_back(contract::NoContainers(machine->containers.why));
  }
  return absl::OkStatus();
}

void TellLimits(bool wanted, const LimitsFound& found, Machine* machine) {
  if (found.memory && found.cores) {
    machine->limits = "memory and cores, by " + found.kind;
    return;
  }
  if (found.memory || found.cores)
    machine->limits = fmt::format("{}, by {}", found.memory ? "memory" : "cores", found.kind);
  machine->issues.push_back(contract::LimitsNotEnforced(
      {.memory = !found.memory, .cores = !found.cores}, wanted ? found.why : ""));
}

void TakeOperatorsWord(const HostConfig& config, Capacity* capacity) {
  if (config.cpus.has_value()) capacity->cores = *config.cpus;
  if (config.memory_bytes.has_value()) capacity->memory_bytes = *config.memory_bytes;
  if (config.gpus.has_value()) capacity->gpus = ConfiguredGpus(*config.gpus);
}

absl::StatusOr<Machine> ReadRemoteMachine(const HostConfig& config, hosts::Host& host) {
  // These two would make it tell another number.
  const absl::StatusOr<hosts::CommandResult> nproc =
      host.Run({.argv = {"nproc"}, .unset_env = {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT"}});
  if (!nproc.ok() && !hosts::NotStarted(nproc.status()))
    return absl::UnavailableError(nproc.status().message());
  uint32_t cores = 0;
  if (nproc.ok() && !absl::SimpleAtoi(nproc->stdout_data, &cores)) cores = 0;
  Machine machine;
  machine.hostname = config.name;
  machine.identity = config.name;
  if (!TellCapacity(config, cores, host, &machine)) {
    return absl::FailedPreconditionError(fmt::format(
        "{} does not tell its cores or memory; set cpus and memory of {} in the file of hosts",
        host.Name(), config.name));
  }
  if (absl::Status s = FindGpus(config, host, &machine); !s.ok()) return s;
  return machine;
}

absl::StatusOr<std::vector<Gpu>> ParseGpuList(std::string_view csv) {
  std::vector<Gpu> gpus;
  std::set<uint32_t> indexes;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(csv), '\n', absl::SkipWhitespace())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    uint32_t index = 0;
    if (fields.size() != 4 || !absl::SimpleAtoi(fields[0], &index) ||
        !indexes.insert(index).second) {
      return absl::InvalidArgumentError(fmt::format(
          "nvidia-smi gave a line that is not \"index, uuid, name, memory\": \"{}\"", ToStd(line)));
    }
    gpus.push_back({.index = index,
                    .type = GpuTypeOf(fields[2]),
                    .name = std::string(absl::StripAsciiWhitespace(fields[1]))});
  }
  return gpus;
}

std::string GpuTypeOf(std::string_view product) {
  static constexpr std::string_view kMakers[] = {"nvidia", "tesla",    "geforce", "quadro",
                                                 "amd",    "instinct", "radeon"};
  static constexpr std::string_view kFamilies[] = {"rtx", "gtx", "titan", "rx", "pro"};
  std::string text(product);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::isalnum(c) ? std::tolower(c) : ' ');
  });
  std::istringstream words(text);
  std::string type;
  std::string word;
  while (words >> word) {
    if (type.empty() &&
        std::find(std::begin(kMakers), std::end(kMakers), word) != std::end(kMakers))
      continue;
    type += word;
    if (std::find(std::begin(kFamilies), std::end(kFamilies), word) == std::end(kFamilies)) break;
  }
  return type.empty() ? "gpu" : type;
}

}  // namespace muster::machines
