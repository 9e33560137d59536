#include "contract/slurm_options.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "contract/characters.h"
#include "contract/slurm_signal.h"
#include "contract/spank_options.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// Options that shape the allocation or when it comes. Others have a field of their own, or would
// take away what Muster relies on: the job's name, its files, its environment, its script.
//
// Options that shape the allocation take the place of fields for jobs whose tasks Slurm is to
// spread over nodes, where the cores are those of one task, and for batch scripts, whose options
// Slurm gets as they were written.
struct ExtraOption {
  std::string_view name;
  bool has_value;
  std::string_view only = {};  // the one value that it may have; empty: any
  // A batch script may have any value; a job without one may have `only`.
  bool is_of_script = false;
};
constexpr std::array kExtraOptions = {
    ExtraOption{"acctg-freq", true},
    ExtraOption{"batch", true},
    ExtraOption{"bb", true},
    ExtraOption{"begin", true},
    ExtraOption{"chdir", true, "."},  // kHereOption
    ExtraOption{"cluster-constraint", true},
    ExtraOption{"container-readonly", false, "", true},
    ExtraOption{"container-save", true, "", true},
    ExtraOption{"container-workdir", true, "", true},
    ExtraOption{"contiguous", false},
    ExtraOption{"core-spec", true},
    ExtraOption{"cores-per-socket", true},
    ExtraOption{"cpu-freq", true},
    ExtraOption{"cpus-per-gpu", true, "", true},
    ExtraOption{"cpus-per-task", true, "", true},
    ExtraOption{"deadline", true},
    ExtraOption{"delay-boot", true},
    ExtraOption{"distribution", true},
    ExtraOption{"exclusive", true},
    ExtraOption{"extra-node-info", true},
    ExtraOption{"gpu-bind", true},
    ExtraOption{"gpu-freq", true},
    ExtraOption{"gpus", true},
    ExtraOption{"gpus-per-node", true, "", true},
    ExtraOption{"gpus-per-task", true},
    ExtraOption{"gres", true, "", true},
    ExtraOption{"gres-flags", true},
    ExtraOption{"hint", true},
    ExtraOption{kHoldOption.substr(2), false},
    ExtraOption{"kill-on-invalid-dep", true},
    ExtraOption{"mcs-label", true},
    ExtraOption{"mem", true, "0", true},
    ExtraOption{"mem-bind", true},
    ExtraOption{"mem-per-cpu", true},
    ExtraOption{"mem-per-gpu", true},
    ExtraOption{"mincpus", true},
    ExtraOption{"network", true},
    ExtraOption{"no-kill", false},
    ExtraOption{"nodes", true},
    ExtraOption{"ntasks", true},
    ExtraOption{"ntasks-per-core", true},
    ExtraOption{"ntasks-per-gpu", true},
    ExtraOption{"ntasks-per-node", true},
    ExtraOption{"ntasks-per-socket", true},
    ExtraOption{"overcommit", false},
    ExtraOption{"oversubscribe", false},
    ExtraOption{"power", true},
    ExtraOption{"prefer", true},
    ExtraOption{"profile", true},
    ExtraOption{"reboot", false},
    ExtraOption{"segment", true},
    ExtraOption{"sockets-per-node", true},
    ExtraOption{"spread-job", false},
    ExtraOption{"switches", true},
    ExtraOption{"thread-spec", true},
    ExtraOption{"threads-per-core", true},
    ExtraOption{"time", true, "0"},
    ExtraOption{"time-min", true},
    ExtraOption{"tmp", true},
    ExtraOption{"use-min-nodes", false},
    ExtraOption{"wait-all-nodes", true},
    ExtraOption{"wckey", true},
};

constexpr std::pair<std::string_view, AllocationPart> kParts[] = {
    {"cpus-per-gpu", AllocationPart::kCores}, {"cpus-per-task", AllocationPart::kCores},
    {"gpus", AllocationPart::kGres},          {"gpus-per-node", AllocationPart::kGres},
    {"gpus-per-task", AllocationPart::kGres}, {"gres", AllocationPart::kGres},
    {"mem", AllocationPart::kMemory},         {"mem-per-cpu", AllocationPart::kMemory},
    {"mem-per-gpu", AllocationPart::kMemory}, {"nodes", AllocationPart::kTasks},
    {"ntasks", AllocationPart::kTasks},       {"ntasks-per-node", AllocationPart::kTasks},
};

// Null: it is not taken.
const ExtraOption* FindExtraOption(std::string_view name) {
  const auto* found = std::find_if(kExtraOptions.begin(), kExtraOptions.end(),
                                   [&](const ExtraOption& one) { return one.name == name; });
  return found == kExtraOptions.end() ? nullptr : found;
}

bool HasExtraOption(const v1::JobSpec& spec, std::string_view option) {
  const auto& options = spec.slurm().extra_options();
  return std::find(options.begin(), options.end(), option) != options.end();
}

constexpr std::array<std::string_view, 6> kDependencyTypes = {
    "after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok"};

constexpr std::array<std::string_view, 13> kMailTypes = {
    "NONE",          "BEGIN",          "END",        "FAIL",       "REQUEUE",
    "ALL",           "INVALID_DEPEND", "STAGE_OUT",  "TIME_LIMIT", "TIME_LIMIT_90",
    "TIME_LIMIT_80", "TIME_LIMIT_50",  "ARRAY_TASKS"};

// Tells whether every part of the list, split at `separator`, is good.
template <typename Good>
bool AllParts(std::string_view list, char separator, Good is_good) {
  while (true) {
    const size_t end = list.find(separator);
    if (!is_good(list.substr(0, end))) return false;
    if (end == list.npos) return true;
    list.remove_prefix(end + 1);
  }
}

bool IsWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
  });
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// Recognises "123", "123_4", "123+60".
bool IsJobOfSlurm(std::string_view text) {
  const size_t end = text.find_first_of("_+");
  return IsNumber(text.substr(0, end)) && (end == text.npos || IsNumber(text.substr(end + 1)));
}

// Recognises "afterok:123:124".
bool IsDependency(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return false;
  const std::string_view type = text.substr(0, colon);
  return std::find(kDependencyTypes.begin(), kDependencyTypes.end(), type) !=
             kDependencyTypes.end() &&
         AllParts(text.substr(colon + 1), ':', IsJobOfSlurm);
}

// Recognises "nvme:1" and "fpga:xilinx:2", but no GPUs.
bool IsOtherGres(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  return name != "gpu" && AllParts(text, ':', IsWord);
}

void CheckList(std::string_view field, std::string_view value, bool (*is_good)(std::string_view),
               std::string_view remedy, FieldErrors* errors, char separator = ',') {
  if (value.empty()) return;
  if (value.size() <= kMaxListBytes && AllParts(value, separator, is_good)) return;
  errors->Add(field, fmt::format("{} is not usable; {}", Quoted(value), remedy));
}

void CheckComment(const std::string& comment, FieldErrors* errors) {
  if (comment.size() <= kMaxOptionBytes && !HasControlCharacter(comment) && IsUtf8(comment)) return;
  errors->Add("slurm.comment", fmt::format("{} is not a usable comment; use up to {} bytes of "
                                           "UTF-8 on one line without control characters",
                                           Quoted(comment), kMaxOptionBytes));
}

void CheckNumber(std::string_view field, uint32_t value, uint32_t max, FieldErrors* errors) {
  if (value > max) errors->Add(field, fmt::format("{} is too large; use at most {}", value, max));
}

void CheckExtraOption(const std::string& field, std::string_view text, bool is_script,
                      FieldErrors* errors) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const ExtraOption* option = name.starts_with("--") ? FindExtraOption(name.substr(2)) : nullptr;
  if (!SpankNameOf(text).empty())
    return CheckOptionValue(field, text.substr(std::min(equals, text.size() - 1) + 1), errors);
  if (option == nullptr) {
    errors->Add(field,
                fmt::format("{} is not taken; use the field that the option has in the spec, "
                            "or one that shapes the allocation, such as --switches=1 or "
                            "--hint=nomultithread, in its long form",
                            Quoted(text)));
    return;
  }
  const bool has_value = equals != text.npos && equals + 1 < text.size();
  if (has_value != option->has_value || (equals != text.npos && !option->has_value)) {
    errors->Add(field, fmt::format("{}: write --{}{}", Quoted(text), option->name,
                                   option->has_value ? "=VALUE" : " without a value"));
    return;
  }
  if (option->is_of_script && !is_script && option->only.empty()) {
    errors->Add(field, fmt::format("{}: --{} is for batch scripts (batch_script) only; use the "
                                   "field that says the same (resources, slurm.container)",
                                   Quoted(text), option->name));
    return;
  }
  const bool is_free = option->only.empty() || (option->is_of_script && is_script);
  if (!is_free && text.substr(equals + 1) != option->only) {
    errors->Add(field,
                fmt::format("{}: only --{}={} is taken; the spec has a field for other values",
                            Quoted(text), option->name, option->only));
    return;
  }
  if (has_value) CheckOptionValue(field, text.substr(equals + 1), errors);
}

void CheckSignal(const v1::SlurmOptions& slurm, FieldErrors* errors) {
  if (slurm.signal().empty()) return;
  const std::optional<SlurmSignal> signal = ParseSlurmSignal(slurm.signal());
  if (signal.has_value() && (signal->name != kKill || slurm.has_batch_script())) return;
  errors->Add("slurm.signal",
              fmt::format("{} is no signal for a job; write [R][B:]SIGNAL[@SECONDS] with HUP, INT, "
                          "QUIT, ABRT, USR1, USR2, ALRM or TERM, for example B:USR1@120",
                          Quoted(slurm.signal())));
}

}  // namespace

void CheckOptionValue(std::string_view field, std::string_view value, FieldErrors* errors) {
  const auto is_good = [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '\'' && c != '\\' && c != '`' && c != '#';
  };
  if (value.empty()) return;
  if (value.size() > kMaxOptionBytes || value.front() == '-' ||
      !std::all_of(value.begin(), value.end(), is_good)) {
    errors->Add(field, fmt::format("{} is not a usable value; use up to {} printable ASCII "
                                   "characters, no blank, quote, backslash or '#', not starting "
                                   "with '-'",
                                   Quoted(value), kMaxOptionBytes));
  }
}

bool IsExtraOption(std::string_view name) { return FindExtraOption(name) != nullptr; }

std::vector<std::string_view> ExtraOptionNames() {
  std::vector<std::string_view> names;
  for (const ExtraOption& option : kExtraOptions) names.push_back(option.name);
  return names;
}

AllocationPart PartOf(std::string_view option) {
  if (!option.starts_with("--")) return AllocationPart::kNone;
  const std::string_view name = option.substr(2, option.find('=') - 2);
  const auto* found = std::find_if(std::begin(kParts), std::end(kParts),
                                   [&](const auto& one) { return one.first == name; });
  return found == std::end(kParts) ? AllocationPart::kNone : found->second;
}

bool ShapesPart(const v1::SlurmOptions& slurm, AllocationPart part) {
  return std::any_of(slurm.extra_options().begin(), slurm.extra_options().end(),
                     [part](const std::string& option) { return PartOf(option) == part; });
}

bool IsInFields(std::string_view option) {
  const AllocationPart part = PartOf(option);
  const std::string_view value = option.substr(std::min(option.find('=') + 1, option.size()));
  const bool is_count = option.starts_with("--ntasks");
  // 0 is all that a node has.
  const bool is_all = part == AllocationPart::kMemory && value.find_first_of("123456789") != 0;
  return part != AllocationPart::kNone && !(is_count && value != "1") && !is_all;
}

bool IsTotalOfGpus(const v1::SlurmOptions& slurm) {
  const auto& options = slurm.extra_options();
  const auto has = [&](auto is_it) { return std::any_of(options.begin(), options.end(), is_it); };
  return slurm.has_batch_script() &&
         has([](const std::string& option) { return option.starts_with("--gpus="); }) &&
         !has([](const std::string& option) {
           return option == "--nodes=1" || option == "--nodes=1-1";
         });
}

bool IsMailType(std::string_view word) {
  return std::find(kMailTypes.begin(), kMailTypes.end(), word) != kMailTypes.end();
}

bool IsHeldFromTheStart(const v1::JobSpec& spec) { return HasExtraOption(spec, kHoldOption); }

bool IsDirectoryImplied(const v1::JobSpec& spec) {
  return !spec.working_directory().empty() && HasExtraOption(spec, kHereOption);
}

bool IsForMuster(std::string_view option) { return option == kHoldOption || option == kHereOption; }

bool IsOfContainer(std::string_view option) { return option.starts_with("--container-"); }

void CheckSlurmOptions(const v1::SlurmOptions& slurm, FieldErrors* errors) {
  CheckOptionValue("slurm.partition", slurm.partition(), errors);
  CheckOptionValue("slurm.account", slurm.account(), errors);
  CheckOptionValue("slurm.qos", slurm.qos(), errors);
  CheckOptionValue("slurm.reservation", slurm.reservation(), errors);
  CheckOptionValue("slurm.constraint", slurm.constraint(), errors);
  CheckOptionValue("slurm.nodelist", slurm.nodelist(), errors);
  CheckOptionValue("slurm.exclude", slurm.exclude(), errors);
  CheckOptionValue("slurm.licenses", slurm.licenses(), errors);
  CheckOptionValue("slurm.mail_user", slurm.mail_user(), errors);
  CheckComment(slurm.comment(), errors);
  CheckSignal(slurm, errors);
  CheckNumber("slurm.tasks_per_node", slurm.tasks_per_node(), kMaxTasksPerNode, errors);
  CheckNumber("slurm.nice", slurm.nice(), kMaxNice, errors);
  CheckList(
      "slurm.dependency", slurm.dependency(), IsDependency,
      "use TYPE:JOB[:JOB...] and ',' between several, or '?' if one of them is enough; TYPE is "
      "after, afterany, afterok, afternotok, aftercorr or afterburstbuffer",
      errors, slurm.dependency().find(kAnyOf) == std::string::npos ? ',' : kAnyOf);
  CheckList("slurm.mail_type", slurm.mail_type(), IsMailType,
            "use words such as BEGIN, END, FAIL, REQUEUE, TIME_LIMIT or ALL with ',' between them",
            errors);
  CheckList("slurm.gres", slurm.gres(), IsOtherGres,
            "use NAME[:TYPE][:COUNT] and ',' between several; GPUs are in resources.gpus", errors);
  if (slurm.extra_options_size() > kMaxExtraOptions) {
    errors->Add("slurm.extra_options", fmt::format("{} options; use at most {}",
                                                   slurm.extra_options_size(), kMaxExtraOptions));
    return;
  }
  for (int i = 0; i < slurm.extra_options_size(); ++i) {
    CheckExtraOption(fmt::format("slurm.extra_options[{}]", i), slurm.extra_options(i),
                     slurm.has_batch_script(), errors);
  }
}

}  // namespace muster::contract
