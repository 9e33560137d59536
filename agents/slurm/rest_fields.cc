#include "agents/slurm/rest_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "agents/slurm/fields.h"
#include "contract/slurm_signal.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// The form in which an option's value becomes a field's.
enum class Kind {
  kText,       // as it is
  kNumber,     // a whole number; slurmrestd 22.05 misreads ranges
  kMebibytes,  // "100", "100M", "2G": in MiB, rounded up
  kFlag,       // no value: true
  kExclusive,  // no value, "user" or "mcs"
  kSignal,     // not "B:...", which slurmrestd 22.05 does not take
  kPresent,    // a value that says yes: true
  // The kinds from kFirstTypedApi on:
  kLimit,          // MiB, as a number that is set
  kMinutes,        // a time as sbatch reads it, likewise
  kSeconds,        // minutes, in seconds
  kDenied,         // no value: false
  kYesNo,          // "0" or "1"
  kList,           // one text
  kWords,          // words with commas, in capitals
  kMail,           // likewise, by other names
  kShared,         // one of the words for sharing; no value: the one for none
  kOversubscribe,  // no value: the one for all
  kGres,           // each one with "gres/" before it, beside those of other options
  kGpus,           // "2", "h100:2": likewise with "gres/gpu:"
  kGpuMebibytes,   // likewise an amount of memory
  kWarning,        // a signal: three fields
  kJobFlag,        // no value, or the value after the flag's "=": a word among the job's flags
};

struct Field {
  std::string_view option;
  Kind kind;
  std::string_view name;
  // The variable by which sbatch tells the job, for the steps of the job.
  std::string_view variable = {};
  // The APIs that have it so.
  int first = 0;
  int last = std::numeric_limits<int>::max();
};

// The last API with values as texts that is spoken.
constexpr int kOld = 38;
constexpr int kNew = kFirstTypedApi;
// v0.0.40 passes over `distribution` in silence.
constexpr int kFirstWithDistribution = 41;

// slurmrestd 22.05 takes the old names, which are not always those that its description names.
// `requeue` set to false is taken for true there, so it is never sent so.
constexpr std::array kFields = {
    Field{"account", Kind::kText, "account"},
    Field{"acctg-freq", Kind::kText, "account_gather_frequency"},
    Field{"array", Kind::kText, "array"},
    Field{"batch", Kind::kText, "batch_features"},
    Field{"bb", Kind::kText, "burst_buffer"},
    Field{"begin", Kind::kText, "begin_time"},
    Field{"chdir", Kind::kText, "current_working_directory"},
    Field{"comment", Kind::kText, "comment"},
    Field{"constraint", Kind::kText, "constraints"},
    Field{"core-spec", Kind::kNumber, "core_specification"},
    Field{"cores-per-socket", Kind::kNumber, "cores_per_socket", {}, 0, kOld},
    Field{"cpu-freq", Kind::kText, "cpu_frequency"},
    Field{"cpus-per-gpu", Kind::kText, "cpus_per_gpu", "SLURM_CPUS_PER_GPU", 0, kOld},
    Field{"cpus-per-gpu", Kind::kGpus, "cpus_per_tres", "SLURM_CPUS_PER_GPU", kNew},
    Field{"cpus-per-task", Kind::kNumber, "cpus_per_task", "SLURM_CPUS_PER_TASK"},
    Field{"deadline", Kind::kText, "deadline"},
    Field{"delay-boot", Kind::kNumber, "delay_boot", {}, 0, kOld},
    Field{"delay-boot", Kind::kSeconds, "delay_boot", {}, kNew},
    Field{"dependency", Kind::kText, "dependency"},
    Field{"distribution", Kind::kText, "distribution", "SLURM_DISTRIBUTION", 0, kOld},
    Field{"distribution", Kind::kText, "distribution", "SLURM_DISTRIBUTION",
          kFirstWithDistribution},
    Field{"error", Kind::kText, "standard_error"},
    Field{"exclude", Kind::kText, "exclude_nodes", {}, 0, kOld},
    Field{"exclude", Kind::kList, "excluded_nodes", {}, kNew},
    Field{"exclusive", Kind::kExclusive, "exclusive", {}, 0, kOld},
    Field{"exclusive", Kind::kShared, "shared", {}, kNew},
    Field{"gpus", Kind::kText, "gpus", "SLURM_GPUS", 0, kOld},
    Field{"gpus", Kind::kGpus, "tres_per_job", "SLURM_GPUS", kNew},
    Field{"gpus-per-node", Kind::kText, "gpus_per_node", "SLURM_GPUS_PER_NODE", 0, kOld},
    Field{"gpus-per-node", Kind::kGpus, "tres_per_node", "SLURM_GPUS_PER_NODE", kNew},
    Field{"gpus-per-task", Kind::kText, "gpus_per_task", "SLURM_GPUS_PER_TASK", 0, kOld},
    Field{"gpus-per-task", Kind::kGpus, "tres_per_task", "SLURM_GPUS_PER_TASK", kNew},
    Field{"gres", Kind::kText, "gres", {}, 0, kOld},
    Field{"gres", Kind::kGres, "tres_per_node", {}, kNew},
    Field{"gres-flags", Kind::kText, "gres_flags", {}, 0, kOld},
    Field{"gres-flags", Kind::kJobFlag, "disable-binding=GRES_BINDING_DISABLED", {}, kNew},
    Field{"gres-flags", Kind::kJobFlag, "enforce-binding=GRES_BINDING_ENFORCED", {}, kNew},
    Field{"hold", Kind::kFlag, "hold"},
    Field{"input", Kind::kText, "standard_input"},
    Field{"job-name", Kind::kText, "name"},
    Field{"kill-on-invalid-dep", Kind::kPresent, "kill_on_invalid_dependency", {}, 0, kOld},
    Field{"kill-on-invalid-dep", Kind::kJobFlag, "yes=KILL_INVALID_DEPENDENCY", {}, kNew},
    Field{"kill-on-invalid-dep", Kind::kJobFlag, "no=NO_KILL_INVALID_DEPENDENCY", {}, kNew},
    Field{"licenses", Kind::kText, "licenses"},
    Field{"mail-type", Kind::kText, "mail_type", {}, 0, kOld},
    Field{"mail-type", Kind::kMail, "mail_type", {}, kNew},
    Field{"mail-user", Kind::kText, "mail_user"},
    Field{"mcs-label", Kind::kText, "mcs_label"},
    Field{"mem", Kind::kMebibytes, "memory_per_node", {}, 0, kOld},
    Field{"mem", Kind::kLimit, "memory_per_node", {}, kNew},
    Field{"mem-per-cpu", Kind::kMebibytes, "memory_per_cpu", {}, 0, kOld},
    Field{"mem-per-cpu", Kind::kLimit, "memory_per_cpu", {}, kNew},
    Field{"mem-per-gpu", Kind::kMebibytes, "memory_per_gpu", "SLURM_MEM_PER_GPU", 0, kOld},
    Field{"mem-per-gpu", Kind::kGpuMebibytes, "memory_per_tres", "SLURM_MEM_PER_GPU", kNew},
    Field{"mincpus", Kind::kNumber, "minimum_cpus_per_node"},
    Field{"nice", Kind::kNumber, "nice"},
    Field{"nodelist", Kind::kText, "nodelist", {}, 0, kOld},
    Field{"nodelist", Kind::kList, "required_nodes", {}, kNew},
    Field{"nodes", Kind::kNumber, "nodes", {}, 0, kOld},
    Field{"nodes", Kind::kText, "nodes", {}, kNew},
    Field{"no-requeue", Kind::kFlag, "no_requeue", {}, 0, kOld},
    Field{"no-requeue", Kind::kDenied, "requeue", {}, kNew},
    Field{"ntasks", Kind::kNumber, "tasks", "SLURM_NTASKS"},
    Field{"ntasks-per-core", Kind::kNumber, "tasks_per_core", "SLURM_NTASKS_PER_CORE"},
    Field{"ntasks-per-node", Kind::kNumber, "tasks_per_node", "SLURM_NTASKS_PER_NODE"},
    Field{"ntasks-per-socket", Kind::kNumber, "tasks_per_socket", "SLURM_NTASKS_PER_SOCKET"},
    Field{"open-mode", Kind::kText, "open_mode", {}, 0, kOld},
    Field{"open-mode", Kind::kWords, "open_mode", {}, kNew},
    Field{"output", Kind::kText, "standard_output"},
    Field{"oversubscribe", Kind::kFlag, "oversubscribe", {}, 0, kOld},
    Field{"oversubscribe", Kind::kOversubscribe, "shared", {}, kNew},
    Field{"partition", Kind::kText, "partition"},
    Field{"prefer", Kind::kText, "prefer"},
    Field{"profile", Kind::kText, "profile", "SLURM_PROFILE", 0, kOld},
    Field{"profile", Kind::kWords, "profile", "SLURM_PROFILE", kNew},
    Field{"qos", Kind::kText, "qos"},
    Field{"requeue", Kind::kFlag, "requeue"},
    Field{"reservation", Kind::kText, "reservation"},
    Field{"signal", Kind::kSignal, "signal", {}, 0, kOld},
    Field{"signal", Kind::kWarning, "kill_warning", {}, kNew},
    Field{"sockets-per-node", Kind::kNumber, "sockets_per_node"},
    Field{"spread-job", Kind::kFlag, "spread_job", {}, 0, kOld},
    Field{"spread-job", Kind::kJobFlag, "SPREAD_JOB", {}, kNew},
    Field{"thread-spec", Kind::kNumber, "thread_specification"},
    Field{"threads-per-core", Kind::kNumber, "threads_per_core", "SLURM_THREADS_PER_CORE"},
    Field{"time", Kind::kText, "time_limit", {}, 0, kOld},
    Field{"time", Kind::kMinutes, "time_limit", {}, kNew},
    Field{"time-min", Kind::kText, "time_minimum", {}, 0, kOld},
    Field{"time-min", Kind::kMinutes, "time_minimum", {}, kNew},
    Field{"use-min-nodes", Kind::kFlag, "minimum_nodes", {}, 0, kOld},
    Field{"use-min-nodes", Kind::kJobFlag, "PREFER_MINIMUM_NODE_COUNT", {}, kNew},
    Field{"wait-all-nodes", Kind::kNumber, "wait_all_nodes", {}, 0, kOld},
    Field{"wait-all-nodes", Kind::kYesNo, "wait_all_nodes", {}, kNew},
    Field{"wckey", Kind::kText, "wckey"},
};

// sbatch's words for mail, and slurmrestd's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kMailTypes = {
    {{"BEGIN", "BEGIN"},
     {"END", "END"},
     {"FAIL", "FAIL"},
     {"REQUEUE", "REQUEUE"},
     {"ALL", "BEGIN,END,FAIL,INVALID_DEPENDENCY,REQUEUE,STAGE_OUT"},
     {"INVALID_DEPEND", "INVALID_DEPENDENCY"},
     {"STAGE_OUT", "STAGE_OUT"},
     {"TIME_LIMIT", "TIME=100%"},
     {"TIME_LIMIT_90", "TIME=90%"},
     {"TIME_LIMIT_80", "TIME=80%"},
     {"TIME_LIMIT_50", "TIME=50%"},
     {"ARRAY_TASKS", "ARRAY_TASKS"}}};

// "--name=value", "--name".
struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

std::optional<Option> ReadOption(std::string_view word) {
  if (!word.starts_with("--")) return std::nullopt;
  word.remove_prefix(2);
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return Option{word, std::nullopt};
  return Option{word.substr(0, equals), word.substr(equals + 1)};
}

// Reads amounts as sbatch does.
std::optional<uint64_t> Mebibytes(std::string_view text) {
  constexpr uint64_t kMost = uint64_t{1} << 40;  // no node has so many
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber<uint64_t>(text.substr(0, end));
  if (!number.has_value() || *number > kMost) return std::nullopt;
  if (end == text.size()) return number;
  switch (text[end]) {
    case 'K':
    case 'k':
      return (*number + 1023) / 1024;
    case 'M':
    case 'm':
      return number;
    case 'G':
    case 'g':
      return *number << 10;
    case 'T':
    case 't':
      return *number << 20;
    default:
      return std::nullopt;
  }
}

// Reads times as sbatch does: "M", "M:S", "H:M:S", "D-H", "D-H:M", "D-H:M:S"; rounded up.
std::optional<uint64_t> Minutes(std::string_view text) {
  constexpr uint64_t kMost = 1'000'000'000;  // each; Slurm has 32 bits for the minutes
  const size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::vector<uint64_t> numbers;
  for (std::string_view part : Split(has_days ? text.substr(dash + 1) : text, ':')) {
    const auto number = ParseNumber<uint64_t>(part);
    if (!number.has_value() || *number > kMost) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.empty() || numbers.size() > 3) return std::nullopt;
  uint64_t days = 0;
  if (has_days) {
    const auto number = ParseNumber<uint64_t>(text.substr(0, dash));
    if (!number.has_value() || *number > kMost) return std::nullopt;
    days = *number;
  } else if (numbers.size() < 3) {
    numbers.insert(numbers.begin(), 0);  // hours
  }
  numbers.resize(3);
  return days * 24 * 60 + numbers[0] * 60 + numbers[1] + (numbers[2] > 0 ? 1 : 0);
}

json NumberThatIsSet(std::optional<uint64_t> number) {
  if (!number.has_value()) return {};
  return json{{"set", true}, {"number", *number}};
}

// Null for a word of mail that slurmrestd does not know.
json MailWords(std::string_view text) {
  json words = json::array();
  for (std::string_view part : Split(text, ',')) {
    const std::string upper = UpperCase(part);
    if (upper == "NONE") continue;
    const auto* known = std::find_if(kMailTypes.begin(), kMailTypes.end(),
                                     [&](const auto& one) { return one.first == upper; });
    if (known == kMailTypes.end()) return {};
    for (std::string_view word : Split(known->second, ',')) words.push_back(std::string(word));
  }
  return words;
}

// Writes each resource of the list with `prefix` before it.
json Tres(std::string_view list, std::string_view prefix) {
  std::string tres;
  for (std::string_view one : Split(list, ',')) {
    if (one.empty() || one == "none") return {};
    tres +=
        fmt::format("{}{}{}", tres.empty() ? "" : ",", one.starts_with(prefix) ? "" : prefix, one);
  }
  return tres.empty() ? json() : json(tres);
}

json SharedWord(const std::optional<std::string_view>& value) {
  if (!value.has_value()) return json::array({"none"});
  return *value == "user" || *value == "mcs" ? json::array({std::string(*value)}) : json();
}

json CapitalWords(std::string_view text) {
  json words = json::array();
  for (std::string_view part : Split(text, ',')) words.push_back(UpperCase(part));
  return words;
}

// Returns the field's value, if the option has one; null if slurmrestd has none for this one.
json ValueOf(Kind kind, std::string_view value) {
  switch (kind) {
    case Kind::kText:
      return value;
    case Kind::kPresent:
      return value == "yes" ? json(true) : json();
    case Kind::kSignal:
      return value.starts_with("B:") ? json() : json(value);
    case Kind::kMebibytes:
    case Kind::kNumber: {
      const std::optional<uint64_t> number =
          kind == Kind::kMebibytes ? Mebibytes(value) : ParseNumber<uint64_t>(value);
      return number.has_value() ? json(*number) : json();
    }
    case Kind::kLimit:
      return NumberThatIsSet(Mebibytes(value));
    case Kind::kMinutes:
      return NumberThatIsSet(Minutes(value));
    case Kind::kSeconds: {
      const std::optional<uint64_t> minutes = Minutes(value);
      return minutes.has_value() ? json(*minutes * 60) : json();
    }
    case Kind::kYesNo:
      return value == "0" || value == "1" ? json(value == "1") : json();
    case Kind::kList:
      return json::array({std::string(value)});
    case Kind::kWords:
      return CapitalWords(value);
    case Kind::kMail:
      return MailWords(value);
    case Kind::kGres:
      return Tres(value, "gres/");
    case Kind::kGpus:
      return Tres(value, "gres/gpu:");
    case Kind::kGpuMebibytes: {
      const std::optional<uint64_t> mebibytes = Mebibytes(value);
      return mebibytes.has_value() ? json(fmt::format("gres/gpu:{}", *mebibytes)) : json();
    }
    default:
      return {};
  }
}

json ValueFor(Kind kind, const std::optional<std::string_view>& value) {
  if (kind == Kind::kFlag) return value.has_value() ? json() : json(true);
  if (kind == Kind::kDenied) return value.has_value() ? json() : json(false);
  if (kind == Kind::kOversubscribe)
    return value.has_value() ? json() : json::array({"oversubscribe"});
  if (kind == Kind::kShared) return SharedWord(value);
  if (kind == Kind::kExclusive) {
    if (!value.has_value()) return "exclusive";
    return *value == "user" || *value == "mcs" ? json(*value) : json();
  }
  return value.has_value() ? ValueOf(kind, *value) : json();
}

// Adds a signal before the time limit.
bool AddWarning(std::string_view value, json* job) {
  const auto signal = contract::ParseSlurmSignal(value);
  if (!signal.has_value() || signal->in_reservation) return false;
  (*job)["kill_warning_signal"] = signal->name;
  (*job)["kill_warning_delay"] = NumberThatIsSet(signal->seconds);
  if (signal->command_only) (*job)["kill_warning_flags"] = json::array({"BATCH_JOB"});
  return true;
}

bool AddField(const Field& field, const std::optional<std::string_view>& value, json* job) {
  if (field.kind == Kind::kWarning) return value.has_value() && AddWarning(*value, job);
  if (field.kind == Kind::kJobFlag) {
    const size_t equals = field.name.find('=');
    (*job)["flags"].push_back(
        std::string(equals == std::string_view::npos ? field.name : field.name.substr(equals + 1)));
    return true;
  }
  json made = ValueFor(field.kind, value);
  if (made.is_null()) return false;
  const auto before = job->find(field.name);
  const bool is_tres = field.kind == Kind::kGres || field.kind == Kind::kGpus;
  if (is_tres && before != job->end())
    made = before->get<std::string>() + "," + made.get<std::string>();
  (*job)[std::string(field.name)] = std::move(made);
  return true;
}

// A flag is of one value of the option, or of the option without one.
bool IsFor(const Field& field, const Option& option, int api) {
  if (field.option != option.name || api < field.first || api > field.last) return false;
  if (field.kind != Kind::kJobFlag) return true;
  const size_t equals = field.name.find('=');
  if (equals == std::string_view::npos) return !option.value.has_value();
  return option.value == field.name.substr(0, equals);
}

}  // namespace

bool AddRestOption(std::string_view word, int api, json* job,
                   std::map<std::string, std::string>* environment) {
  const std::optional<Option> option = ReadOption(word);
  if (!option.has_value()) return false;
  const auto* field = std::find_if(kFields.begin(), kFields.end(),
                                   [&](const Field& one) { return IsFor(one, *option, api); });
  if (field == kFields.end() || !AddField(*field, option->value, job)) return false;
  if (!field->variable.empty())
    (*environment)[std::string(field->variable)] = option->value.value_or("");
  return true;
}

}  // namespace muster::slurm
