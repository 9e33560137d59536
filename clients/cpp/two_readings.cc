#include "clients/cpp/two_readings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <utility>

#include "clients/cpp/unquoted.h"
#include "contract/units.h"

namespace muster::client {
namespace {

std::string_view Title(Dialect dialect) {
  return dialect == Dialect::kMuster ? "a Muster job file" : "a SkyPilot task";
}

std::string_view FlagFor(Dialect dialect) {
  return dialect == Dialect::kMuster ? "--as muster" : "--as sky";
}

Dialect Other(Dialect dialect) {
  return dialect == Dialect::kMuster ? Dialect::kSkyPilot : Dialect::kMuster;
}

std::vector<std::string> DifferencesOfJob(const v1::JobSpec& muster, const v1::JobSpec& skypilot) {
  std::vector<std::string> differences;
  const uint64_t ours = muster.resources().memory_bytes();
  const uint64_t theirs = skypilot.resources().memory_bytes();
  if (ours != theirs) {
    differences.push_back(fmt::format("memory is {} in a job file and {} in a task",
                                      contract::FormatBytes(ours), contract::FormatBytes(theirs)));
  }
  if (!muster.working_directory().empty()) {
    differences.push_back(
        fmt::format("workdir {} is a directory of the cluster in a job file, and one of this "
                    "machine, which is uploaded, in a task",
                    muster.working_directory()));
  }
  // A script with a #! line of its own is for neither.
  const std::string& script = muster.command().script();
  const bool is_for_sh = !script.starts_with("#!") && NeedsBash(script);
  const bool is_setup_for_sh = !muster.setup().starts_with("#!") && NeedsBash(muster.setup());
  if (is_for_sh || is_setup_for_sh) {
    differences.push_back(
        fmt::format("{} needs bash, which runs it in a task; sh does in a job file",
                    is_for_sh ? "run" : "setup"));
  }
  return differences;
}

}  // namespace

bool NeedsBash(std::string_view script) {
  static const RE2* const words = new RE2(
      // A place at which a command may begin.
      R"((?m)(?:^|[;&|({]|\b(?:then|do|else|elif|if|while|until)\b|!)[ \t]*)"
      R"((?:echo[ \t]+-[neE]*[eE][neE]*(?:\s|$))"
      R"(|(?:source|declare|typeset|shopt|pushd|popd|mapfile|readarray|function|let|coproc)[ \t])"
      R"(|\[\[[ \t]|(?:for[ \t]*)?\(\(|select[ \t]+\w+[ \t]+in\b|read[ \t](?:[^\n;|&]*[ \t])?-\w*a|export[ \t]+-f|set[ \t]+-\w*E)"
      R"(|trap[ \t][^\n;]*[ \t](?:ERR|DEBUG|RETURN)\b|\[[ \t][^\n\]]*[ \t]==[ \t]))"
      // These may stand anywhere.
      R"(|\bpipefail\b|<<<|[<>]\(|&>|\|&|\w=\(|\$\{\w+(?:\[|\^|,|/|:[0-9]))"
      R"(|\w\+=\(|[\s=(]\$'|\$\{!|\$\{?(?:BASH_SOURCE|BASH_REMATCH|RANDOM|PIPESTATUS)\b)");
  // Quotes keep bash from making several words of {a,b}, x{,.bak}, {1..8} and {a..e..2}.
  static const RE2* const lists =
      new RE2(R"((?:^|[^$])\{(?:(?:[^\s{};&|<>()]|\$\{\w*\})*,(?:[^\s{};&|<>()]|\$\{\w*\})*)"
              R"(|(?:-?[0-9]+\.\.-?[0-9]+|[a-zA-Z]\.\.[a-zA-Z])(?:\.\.-?[0-9]+)?)\})");
  return RE2::PartialMatch(re2::StringPiece(script.data(), script.size()), *words) ||
         RE2::PartialMatch(Unquoted(script), *lists);
}

std::vector<std::string> Differences(std::span<const v1::JobSpec> muster,
                                     std::span<const v1::JobSpec> skypilot) {
  std::vector<std::string> differences;
  std::set<std::string> told;
  size_t left_out = 0;
  for (size_t i = 0; i < std::min(muster.size(), skypilot.size()); ++i) {
    for (std::string& difference : DifferencesOfJob(muster[i], skypilot[i])) {
      if (!told.insert(difference).second) continue;
      if (differences.size() == kMaxDifferences) {
        ++left_out;
        continue;
      }
      if (i > 0) difference = fmt::format("in document {}, {}", i + 1, difference);
      differences.push_back(std::move(difference));
    }
  }
  if (left_out > 0) differences.push_back(fmt::format("and {} more", left_out));
  if (muster.size() > 1) {
    differences.push_back(fmt::format(
        "its {} documents are jobs that do not wait for each other in a job file, and a chain in "
        "which each task waits for the one before in SkyPilot",
        muster.size()));
  }
  return differences;
}

std::string ReadingRemark(std::string_view file, Dialect read_as,
                          const std::vector<std::string>& differences) {
  return fmt::format(
      "{}: read as {}, because none of its fields tells; as {} it would mean something else: {}. "
      "Say {} or {}",
      file, Title(read_as), Title(Other(read_as)), fmt::join(differences, "; "), FlagFor(read_as),
      FlagFor(Other(read_as)));
}

std::string OtherReadingHint(std::string_view file, Dialect read_as) {
  return fmt::format(
      "{}: it was read as {}, because none of its fields tells; as {} it has no error, and {} "
      "reads it so",
      file, Title(read_as), Title(Other(read_as)), FlagFor(Other(read_as)));
}

}  // namespace muster::client
