#include "agents/slurm/explain_image.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agents/slurm/fields.h"
#include "agents/slurm/slurm_output.h"

namespace muster::slurm {
namespace {

// Lines that a message quotes; each node of a run says the same.
constexpr size_t kQuotedLines = 3;

struct Rule {
  std::string_view sign;
  v1::FailureClass failure_class;
  std::string_view message;
  std::string_view suggestion;
  bool retriable = false;
};

constexpr std::string_view kCredentials =
    "Check the image's name. If it is private, have the cluster's operator install credentials, or "
    "renew them: muster-agent --config FILE install-credentials REGISTRY USER, with the secret on "
    "standard input. It puts them into ~/.config/enroot/.credentials of the agent's user.";
constexpr std::string_view kReach =
    "Check the registry's name; if it is right, the cluster's nodes cannot reach it: tell the "
    "cluster's operator.";
constexpr std::string_view kOperator = "Tell the cluster's operator.";
constexpr std::string_view kNoRoomMessage = "There was no room for the image";
constexpr std::string_view kNoRoomRemedy =
    "Tell the cluster's operator: the directory of the images, or the node's disk, is full.";
constexpr std::string_view kNoSquashfsMessage = "The image's file is no squashfs file";
constexpr std::string_view kNoSquashfsRemedy = "Convert the image again.";
constexpr std::string_view kNotThereMessage = "The image's file is not there";
constexpr std::string_view kNotThereRemedy = "Check its path, and that the compute nodes see it.";

// The words of Slurm, Pyxis and enroot, which have no codes for them. The first rule whose sign is
// in the words counts: what is more special comes first.
constexpr v1::FailureClass kImage = v1::FAILURE_CLASS_IMAGE;
constexpr v1::FailureClass kConfig = v1::FAILURE_CLASS_CONFIG;
constexpr std::array kRules = {
    Rule{"unrecognized option '--container-", kConfig,
         "The cluster cannot run containers: its srun has no --container-image",
         "Use another cluster, or have its operator install Pyxis and enroot."},
    Rule{"execve(): enroot", kConfig, "The cluster cannot convert images: its node has no enroot",
         "Use another cluster, or have its operator install enroot and Pyxis."},
    Rule{"--container-mounts: source path does not exist", kConfig,
         "A directory that the container is to show is not on the compute nodes",
         "Correct mounts, or have the cluster's operator look at the agent's container_mounts."},
    Rule{"execve(): /bin/bash", kImage, "The image has no /bin/bash, which starts the command",
         "Use an image that has bash."},
    Rule{"returned error code: 401", kImage, "The registry did not let the cluster have the image",
         kCredentials},
    Rule{"returned error code: 403", kImage, "The registry did not let the cluster have the image",
         kCredentials},
    Rule{"Could not process JSON input", kImage,
         "The registry did not let the cluster have the image", kCredentials},
    Rule{"returned error code: 404", kImage, "The registry has no such image",
         "Check the image's name and tag."},
    Rule{"Invalid image reference", kImage, "enroot cannot read the image's name",
         "Check the image's name: registry/name:tag, in lower case."},
    Rule{"returned error code: 429", kImage, "The registry has had too many requests",
         "Submit the job again later.", true},
    Rule{"returned error code: 5", kImage, "The registry failed", "Submit the job again later.",
         true},
    Rule{"Checksum mismatch", kImage, "The image came damaged from its registry",
         "Submit the job again.", true},
    Rule{"Could not resolve host", kImage, "The image's registry could not be reached", kReach,
         true},
    Rule{"Failed to connect", kImage, "The image's registry could not be reached", kReach, true},
    Rule{"timed out", kImage, "The image's registry could not be reached", kReach, true},
    Rule{"No space left on device", kImage, kNoRoomMessage, kNoRoomRemedy, true},
    Rule{"Invalid image format", kImage, kNoSquashfsMessage, kNoSquashfsRemedy},
    Rule{"No such file or directory", kImage, kNotThereMessage, kNotThereRemedy},
    Rule{"exited too soon", kImage, "The image's entrypoint ended before the command began",
         "Use an image whose entrypoint runs what it is given, or leave slurm.container.entrypoint "
         "out."},
    Rule{"Failed to mount", kImage, "The container's file system could not be made", kOperator,
         true},
    Rule{"Command not found", kImage, "The cluster's enroot is not whole", kOperator},
};

// Returns the cause that scripts from before the exit record had one told by a sentence alone. Such
// a sentence stays in an image's `.failed` until the image is converted again, and a run that was
// launched then has its own batch.sh. This can go with OldMark in explain_end.cc.
ExitRecord::Cause CauseInOldWords(const std::vector<std::string>& words) {
  static constexpr std::array<std::pair<std::string_view, ExitRecord::Cause>, 5> kSentences = {{
      {" was stopped before it ended (by a cancel, its time limit or its node)",
       ExitRecord::Cause::kStopped},
      {", has no room in ", ExitRecord::Cause::kNoRoom},
      {" was not converted anew by Slurm job ", ExitRecord::Cause::kNotRefreshed},
      {" is no squashfs file", ExitRecord::Cause::kNoSquashfs},
      {" is not there", ExitRecord::Cause::kNotThere},
  }};
  for (const std::string& line : words) {
    for (const auto& [sentence, cause] : kSentences) {
      if (line.find(sentence) != line.npos) return cause;
    }
  }
  return ExitRecord::Cause::kNone;
}

// What batch.sh and convert.sh found themselves; null: the others' words tell.
const Rule* FindRule(ExitRecord::Cause cause) {
  static constexpr Rule kStopped = {
      "", kImage, "The conversion of the image was stopped",
      "Submit the job again; if it comes to its time limit, have the cluster's operator raise the "
      "agent's conversion_time_limit.",
      true};
  static constexpr Rule kNoRoom = {"", kImage, kNoRoomMessage, kNoRoomRemedy, true};
  static constexpr Rule kNoSquashfs = {"", kImage, kNoSquashfsMessage, kNoSquashfsRemedy};
  static constexpr Rule kNotThere = {"", kImage, kNotThereMessage, kNotThereRemedy};
  static constexpr Rule kNotRefreshed = {"", kImage, "The image was not converted anew",
                                         "Submit the job again."};
  switch (cause) {
    case ExitRecord::Cause::kStopped:
      return &kStopped;
    case ExitRecord::Cause::kNoRoom:
      return &kNoRoom;
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

// A line's part that Pyxis or batch.sh wrote about the container.
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
  return words.starts_with("[ERROR]") || words.starts_with("curl:") ||
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

ImageTrouble ExplainImage(std::string_view output, ExitRecord::Cause cause) {
  ImageTrouble trouble;
  trouble.words = ImageWords(output);
  const Rule* rule = FindRule(cause);
  if (rule == nullptr) rule = FindRule(trouble.words);
  // A record with a cause needs no old words, and one that Pyxis or enroot explains has no cause.
  if (rule == nullptr && cause == ExitRecord::Cause::kNone)
    rule = FindRule(CauseInOldWords(trouble.words));
  if (rule == nullptr) {
    trouble.message = "The container could not be started";
    trouble.suggestion = "Check the image; muster logs has the node's own words.";
    return trouble;
  }
  trouble.failure_class = rule->failure_class;
  trouble.message = rule->message;
  trouble.suggestion = rule->suggestion;
  trouble.retriable = rule->retriable;
  return trouble;
}

}  // namespace muster::slurm
