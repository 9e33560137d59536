#include "agents/slurm/explain_image.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agents/slurm/fields.h"
#include "agents/slurm/slurm_output.h"

namespace muster::slurm {
namespace {

using Cause = contract::FailureCause;

// A message quotes at most this many lines, because each node of a run says the same.
constexpr size_t kQuotedLines = 3;

struct Rule {
  std::string_view sign;
  v1::FailureCode code;
  v1::FailureClass failure_class;
  std::string_view meaning;  // empty: the code says it
  Cause cause = Cause::kNone;
  bool retriable = false;
};

constexpr std::string_view kNoSquashfsMeaning = "its file is no squashfs file";
constexpr std::string_view kNotThereMeaning = "its file is not there";

constexpr v1::FailureClass kImage = v1::FAILURE_CLASS_IMAGE;
constexpr v1::FailureClass kClusters = v1::FAILURE_CLASS_INFRA;
constexpr v1::FailureClass kConfig = v1::FAILURE_CLASS_CONFIG;
constexpr v1::FailureCode kNoContainers = v1::FAILURE_CODE_NO_CONTAINERS;
constexpr v1::FailureCode kNotFound = v1::FAILURE_CODE_IMAGE_NOT_FOUND;
constexpr v1::FailureCode kDenied = v1::FAILURE_CODE_IMAGE_ACCESS_DENIED;
constexpr v1::FailureCode kBroken = v1::FAILURE_CODE_IMAGE_BROKEN;
constexpr v1::FailureCode kUnsuitable = v1::FAILURE_CODE_IMAGE_UNSUITABLE;
constexpr v1::FailureCode kNotConverted = v1::FAILURE_CODE_IMAGE_NOT_CONVERTED;
constexpr v1::FailureCode kRegistry = v1::FAILURE_CODE_REGISTRY_UNAVAILABLE;
constexpr v1::FailureCode kNoRoom = v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE;
constexpr v1::FailureCode kNotStarted = v1::FAILURE_CODE_CONTAINER_NOT_STARTED;

// These are words of Slurm, Pyxis and enroot, which have no codes for them. The first rule whose
// sign is in the words counts: what is more special comes first.
constexpr std::array kRules = {
    Rule{"unrecognized option '--container-", kNoContainers, kConfig,
         "its srun has no --container-image", Cause::kNoPyxis},
    Rule{"execve(): enroot", kNoContainers, kConfig,
         "it cannot convert images, because its node has no enroot", Cause::kNoEnroot},
    Rule{"--container-mounts: source path does not exist", v1::FAILURE_CODE_MOUNT_MISSING, kConfig,
         "", Cause::kMountSource},
    Rule{"execve(): /bin/bash", kUnsuitable, kImage, "it has no /bin/bash, which does",
         Cause::kNoBash},
    Rule{"returned error code: 401", kDenied, kImage, "", Cause::kSlurmCredentials},
    Rule{"returned error code: 403", kDenied, kImage, "", Cause::kSlurmCredentials},
    Rule{"Could not process JSON input", kDenied, kImage, "", Cause::kSlurmCredentials},
    Rule{"returned error code: 404", kNotFound, kImage, "its registry does not have it"},
    Rule{"Invalid image reference", v1::FAILURE_CODE_IMAGE_NAME_INVALID, kImage, ""},
    Rule{"returned error code: 429", kRegistry, kImage, "it has had too many requests",
         Cause::kRegistryFull, true},
    Rule{"returned error code: 5", kRegistry, kImage, "it failed", Cause::kRegistryFull, true},
    Rule{"Checksum mismatch", kBroken, kImage, "it came so from its registry", Cause::kNone, true},
    Rule{"Could not resolve host", kRegistry, kImage, "it could not be reached",
         Cause::kRegistryUnheard, true},
    Rule{"Failed to connect", kRegistry, kImage, "it could not be reached", Cause::kRegistryUnheard,
         true},
    Rule{"timed out", kRegistry, kImage, "it could not be reached", Cause::kRegistryUnheard, true},
    Rule{"No space left on device", kNoRoom, kImage, "", Cause::kSlurmDiskFull, true},
    Rule{"Invalid image format", kBroken, kImage, kNoSquashfsMeaning, Cause::kNoSquashfs},
    Rule{"No such file or directory", kNotFound, kImage, kNotThereMeaning,
         Cause::kImageFileMissing},
    Rule{"exited too soon", kUnsuitable, kImage, "its entrypoint ended before the command began",
         Cause::kEntrypointEnded},
    Rule{"Failed to mount", kNotStarted, kImage, "its file system could not be made",
         Cause::kEnrootBroken, true},
    Rule{"Command not found", kNotStarted, kImage, "the cluster's enroot is not whole",
         Cause::kEnrootBroken},
};

// Returns the rule for a conversion that Slurm, or its node, stopped.
const Rule& StoppedRule(JobPhase conversion) {
  static constexpr Rule kStopped = {
      "", kNotConverted, kImage, "its conversion was stopped", Cause::kConversionStopped, true};
  static constexpr Rule kTimeLimit = {"",
                                      kNotConverted,
                                      kImage,
                                      "its conversion reached its time limit",
                                      Cause::kConversionTimeLimit,
                                      true};
  static constexpr Rule kCanceled = {
      "", kNotConverted, kImage, "its conversion was canceled", Cause::kNone, true};
  static constexpr Rule kNodeLost = {
      "", kNotConverted, kClusters, "the node of its conversion failed", Cause::kNone, true};
  static constexpr Rule kPreempted = {
      "", kNotConverted, kClusters, "its conversion was preempted", Cause::kNone, true};
  static constexpr Rule kOutOfMemory = {"", kNotConverted, kClusters,
                                        "its conversion needed more memory than it had",
                                        Cause::kConversionMemory};
  static constexpr Rule kKilled = {
      "", kNotConverted, kClusters, "its conversion was killed", Cause::kConversionKilled, true};
  switch (conversion) {
    case JobPhase::kTimeout:
    case JobPhase::kDeadline:
      return kTimeLimit;
    case JobPhase::kCancelled:
      return kCanceled;
    case JobPhase::kNodeFail:
    case JobPhase::kBootFail:
      return kNodeLost;
    case JobPhase::kPreempted:
      return kPreempted;
    case JobPhase::kOutOfMemory:
      return kOutOfMemory;
    case JobPhase::kFailed:
      return kKilled;
    default:
      return kStopped;
  }
}

// The rule for a cause that batch.sh or convert.sh found itself; null: the others' words tell.
const Rule* FindRule(ExitRecord::Cause cause, JobPhase conversion) {
  static constexpr Rule kFull = {"", kNoRoom, kImage, "", Cause::kSlurmDiskFull, true};
  static constexpr Rule kNoSquashfs = {"", kBroken, kImage, kNoSquashfsMeaning, Cause::kNoSquashfs};
  static constexpr Rule kNotThere = {"", kNotFound, kImage, kNotThereMeaning,
                                     Cause::kImageFileMissing};
  static constexpr Rule kNotRefreshed = {"", kNotConverted, kImage,
                                         "it was to be converted anew, and was not", Cause::kNone};
  const bool is_of_conversion =
      cause == ExitRecord::Cause::kConversion || cause == ExitRecord::Cause::kKilled;
  if (is_of_conversion && conversion == JobPhase::kOutOfMemory) return &StoppedRule(conversion);
  switch (cause) {
    case ExitRecord::Cause::kStopped:
      return &StoppedRule(conversion);
    case ExitRecord::Cause::kOutOfMemory:
      return &StoppedRule(JobPhase::kOutOfMemory);
    case ExitRecord::Cause::kKilled:
      return &StoppedRule(JobPhase::kFailed);
    case ExitRecord::Cause::kNoRoom:
      return &kFull;
    case ExitRecord::Cause::kNoSquashfs:
      return &kNoSquashfs;
    case ExitRecord::Cause::kNotThere:
      return &kNotThere;
    case ExitRecord::Cause::kNotRefreshed:
      return &kNotRefreshed;
    default:
      return nullptr;
  }
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Returns the part of a line that Pyxis or batch.sh wrote about the container.
std::optional<std::string_view> AboutContainer(std::string_view line) {
  for (const std::string_view mark : {kImageMark, std::string_view("error: pyxis: ")}) {
    const size_t at = line.find(mark);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + mark.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line;
  }
  if (Has(line, "execve(): /bin/bash") || Has(line, "unrecognized option '--container-")) {
    return line;
  }
  return std::nullopt;
}

// Recognises the words that enroot and Pyxis print on the way, and with every failure alike. An
// older batch.sh passes on the code of a `.failed` as if it were words.
bool IsChatter(std::string_view words) {
  constexpr std::array<std::string_view, 7> kChatter = {
      "[INFO]",     "printing ", "child ", "couldn't start container",
      "importing ", "imported ", "cause="};
  return words.empty() || std::any_of(kChatter.begin(), kChatter.end(), [&](std::string_view part) {
           return words.starts_with(part);
         });
}

bool IsReason(std::string_view words) {
  constexpr std::array<std::string_view, 6> kReasons = {
      "oom_kill",      "OOM Killed",           "Out Of Memory",
      "Out of memory", "was killed by signal", ": Killed"};
  return words.starts_with("[ERROR]") || words.starts_with("curl:") ||
         std::any_of(kReasons.begin(), kReasons.end(),
                     [&](std::string_view part) { return Has(words, part); }) ||
         std::any_of(kRules.begin(), kRules.end(),
                     [&](const Rule& rule) { return Has(words, rule.sign); });
}

const Rule* FindRule(const std::vector<std::string>& words) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& rule) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& line) { return Has(line, rule.sign); });
  });
  return found == kRules.end() ? nullptr : &*found;
}

// Reasons if there are any, else whatever was said, each once.
std::vector<std::string> ImageWords(std::string_view output) {
  std::vector<std::string> reasons;
  std::vector<std::string> others;
  for (std::string_view line : Lines(output)) {
    const std::optional<std::string_view> words = AboutContainer(line);
    if (!words.has_value() || IsChatter(*words)) continue;
    std::vector<std::string>& kept = IsReason(*words) ? reasons : others;
    if (std::find(kept.begin(), kept.end(), *words) == kept.end()) kept.emplace_back(*words);
  }
  std::vector<std::string>& said = reasons.empty() ? others : reasons;
  if (said.size() > kQuotedLines) said.resize(kQuotedLines);
  return std::move(said);
}

}  // namespace

ImageTrouble ExplainImage(std::string_view output, ExitRecord::Cause cause, JobPhase conversion) {
  static constexpr Rule kUnknown = {"", kNotStarted, kImage, "", Cause::kNodeSaysWhy};
  static constexpr Rule kUnknownOfEnroot = {"", kNotConverted, kImage, "enroot could not do it",
                                            Cause::kNodeSaysWhy};
  ImageTrouble trouble;
  trouble.words = ImageWords(output);
  const Rule* rule = FindRule(cause, conversion);
  if (rule == nullptr) rule = FindRule(trouble.words);
  if (rule == nullptr)
    rule = cause == ExitRecord::Cause::kConversion ? &kUnknownOfEnroot : &kUnknown;
  trouble.code = rule->code;
  trouble.failure_class = rule->failure_class;
  trouble.meaning = rule->meaning;
  trouble.cause = rule->cause;
  trouble.retriable = rule->retriable;
  return trouble;
}

}  // namespace muster::slurm
