#include "clients/cli/sky/exec_words.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "clients/cli/sky/env_file.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cpp/skypilot/accelerators.h"
#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "daemon/read_file.h"

namespace muster::cli::sky {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using client::slurm::Settings;
using enum Option::Argument;

// A job's variables together may have as many bytes.
constexpr size_t kMaxEnvFileBytes = 1 << 20;

constexpr std::array kExecOptions = {
    Option{"async", 0, kNone},
    Option{"cloud", 0},
    Option{"cluster", 'c'},
    Option{"config", 0},
    Option{"cpus", 0},
    Option{"detach-run", 'd', kNone},
    Option{"disk-size", 0},
    Option{"disk-tier", 0},
    Option{"dryrun", 0, kNone},
    Option{"env", 0},
    Option{"env-file", 0},
    Option{"git-ref", 0},
    Option{"git-url", 0},
    Option{"gpus", 0},
    Option{"image-id", 0},
    Option{"infra", 0},
    Option{"instance-type", 't'},
    Option{"memory", 0},
    Option{"name", 'n'},
    Option{"network-tier", 0},
    Option{"no-async", 0, kNone},
    Option{"no-use-spot", 0, kNone},
    Option{"num-nodes", 0},
    Option{"ports", 0},
    Option{"region", 0},
    Option{"secret", 0},
    Option{"secret-file", 0},
    Option{"use-spot", 0, kNone},
    Option{"workdir", 0},
    Option{"yes", 'y', kNone},
    Option{"zone", 0},
};
constexpr std::string_view kPlace = "the cluster is the one that you name; see muster sky status";
constexpr std::string_view kCloud = "there are no clouds here; leave it out";
constexpr std::string_view kClone =
    "clone it on the cluster, in the task's setup, and check out what you need";
constexpr std::pair<std::string_view, std::string_view> kExecRefused[] = {
    {"async", "use -d, which comes back as soon as the job is accepted"},
    {"cloud", kPlace},
    {"config", "muster's own settings are in ~/.config/muster/config.yaml"},
    {"disk-size", kCloud},
    {"disk-tier", kCloud},
    {"git-ref", kClone},
    {"git-url", kClone},
    {"infra", kPlace},
    {"instance-type", kCloud},
    {"network-tier", kCloud},
    {"ports", kCloud},
    {"region", kPlace},
    {"use-spot", kCloud},
    {"zone", kPlace},
};

absl::Status BadExecOption(std::string_view option, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("--{}: {}", option, problem));
}

// "K=V", or "K" for the caller's own value, of --env or --secret. A value is repeated nowhere.
absl::Status AddPair(std::string_view option, const std::string& pair,
                     std::map<std::string, std::string>* env) {
  const size_t equals = pair.find('=');
  const std::string name = pair.substr(0, equals);
  if (!contract::IsVariableName(name)) {
    return BadExecOption(option,
                         fmt::format("{} is not NAME=VALUE, or the NAME of one of your variables",
                                     contract::Quoted(option == "env" ? pair : name)));
  }
  const char* own = equals == pair.npos ? getenv(name.c_str()) : nullptr;
  if (equals == pair.npos && own == nullptr) {
    return BadExecOption(option, fmt::format("{} is not set here; write {}=VALUE", name, name));
  }
  (*env)[name] = equals == pair.npos ? std::string(own) : pair.substr(equals + 1);
  return absl::OkStatus();
}

// Files first: flags win over them.
absl::Status ReadVariables(const Settings& given, ExecWords* out) {
  for (const Setting& setting : given.settings) {
    const bool is_secret = setting.option->name == "secret-file";
    if (!is_secret && setting.option->name != "env-file") continue;
    const auto text = ReadFile(setting.value, kMaxEnvFileBytes);
    if (!text.ok()) return text.status();
    const auto variables = ParseEnvFile(setting.value, *text);
    if (!variables.ok()) return variables.status();
    for (const auto& [name, value] : *variables)
      (is_secret ? out->secrets : out->env)[name] = value;
  }
  for (const Setting& setting : given.settings) {
    absl::Status status;
    if (setting.option->name == "env") status = AddPair("env", setting.value, &out->env);
    if (setting.option->name == "secret") {
      status = AddPair("secret", setting.value, &out->secrets);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT: the value is empty.
absl::Status Take(const Settings& given, std::string_view option, std::optional<std::string>* out) {
  const Setting* setting = given.Find(option);
  if (setting == nullptr) return absl::OkStatus();
  if (setting->value.empty())
    return BadExecOption(option, "is empty; give it a value or leave it out");
  *out = setting->value;
  return absl::OkStatus();
}

// The cluster is the first word, or that of -c.
absl::Status ReadEntry(const Settings& given, std::vector<std::string> operands, ExecWords* out) {
  const Setting* cluster = given.Find("cluster");
  if (cluster != nullptr) {
    out->cluster = cluster->value;
  } else if (!operands.empty()) {
    out->cluster = operands.front();
    operands.erase(operands.begin());
  }
  if (out->cluster.empty() || operands.empty()) {
    return absl::InvalidArgumentError(
        "name a cluster, and a task or a command: muster sky exec CLUSTER task.yaml, or muster sky "
        "exec CLUSTER -- python train.py");
  }
  out->entry = std::move(operands);
  return absl::OkStatus();
}

// Turns a parser's error into one about an option.
template <typename Value>
absl::Status BadValue(std::string_view option, const absl::StatusOr<Value>& parsed) {
  return BadExecOption(option, ToStd(parsed.status().message()));
}

absl::Status ApplyExecResources(const ExecWords& words, v1::Resources* resources) {
  if (words.gpus) {
    const auto gpus = client::skypilot::ParseAccelerator(*words.gpus);
    if (!gpus.ok()) return BadValue("gpus", gpus);
    resources->clear_gpus();
    *resources->add_gpus() = *gpus;
  }
  if (words.cpus) {
    const auto millis = client::skypilot::ParseTaskCpus(*words.cpus);
    if (!millis.ok()) return BadValue("cpus", millis);
    resources->set_cpu_millis(*millis);
  }
  if (words.memory) {
    const auto bytes = client::skypilot::ParseTaskMemory(*words.memory);
    if (!bytes.ok()) return BadValue("memory", bytes);
    resources->set_memory_bytes(*bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExecWords> ReadExecWords(const std::vector<std::string>& words) {
  const auto read = client::slurm::ReadCommandWords(kExecOptions, words);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}; options of a command go behind --, as in: muster sky exec CLUSTER -- "
                    "python train.py --lr 0.1",
                    ToStd(read.status().message())));
  }
  const Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kExecRefused); !status.ok()) return status;
  ExecWords out;
  if (absl::Status status = ReadEntry(given, read->operands, &out); !status.ok()) return status;
  if (absl::Status status = ReadVariables(given, &out); !status.ok()) return status;
  const std::pair<std::string_view, std::optional<std::string>*> texts[] = {
      {"name", &out.name},      {"gpus", &out.gpus},      {"cpus", &out.cpus},
      {"memory", &out.memory},  {"image-id", &out.image}, {"workdir", &out.workdir},
      {"num-nodes", &out.nodes}};
  for (const auto& [option, text] : texts) {
    if (absl::Status status = Take(given, option, text); !status.ok()) return status;
  }
  out.detach = given.Find("detach-run") != nullptr;
  out.dry_run = given.Find("dryrun") != nullptr;
  return out;
}

absl::Status ExecWords::ApplyTo(v1::JobSpec* spec) const {
  constexpr std::string_view kDocker = "docker:";
  for (const auto& [variable, value] : env) (*spec->mutable_env())[variable] = value;
  if (name) {
    if (!client::skypilot::IsTaskName(*name)) {
      return BadExecOption(
          "name", fmt::format("{} cannot name a task; use letters and digits, with '.', '_' "
                              "or '-' between them",
                              contract::Quoted(*name)));
    }
    spec->set_name(*name);
  }
  if (nodes) {
    const auto number = contract::ParseNumber<uint32_t>(*nodes);
    if (!number.has_value() || *number < 1 || *number > contract::kMaxNodes) {
      return BadExecOption("num-nodes", fmt::format("{} is not a whole number of 1 to {}",
                                                    contract::Quoted(*nodes), contract::kMaxNodes));
    }
    spec->set_nodes(*number);
  }
  if (image) spec->set_image(image->starts_with(kDocker) ? image->substr(kDocker.size()) : *image);
  return ApplyExecResources(*this, spec->mutable_resources());
}

}  // namespace muster::cli::sky
