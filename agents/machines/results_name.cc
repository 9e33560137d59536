#include "agents/machines/results_name.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "agents/files/fetch_tree.h"
#include "agents/machines/run_directory.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The list of the files alone may take this time, because people wait for the answer.
constexpr absl::Duration kAnswerPatience = absl::Seconds(2);
constexpr char kField[] = "results_directory";

std::string Name() { return std::filesystem::path(kResultsDirectory).filename(); }

}  // namespace

absl::Status ResultsNameIsTaken() {
  return contract::BadField(
      kField, fmt::format("the job brings along a file \"{}\", where the directory of its results "
                          "would be; name another directory, or the file otherwise",
                          Name()));
}

bool IsResultsNameTaken(const absl::Status& status) {
  const auto bad = contract::GetBadRequest(status);
  return bad.has_value() && bad->field_violations_size() == 1 &&
         bad->field_violations(0).field() == kField;
}

absl::Status CheckResultsName(const v1::JobSpec& spec, uploads::JobFiles* files) {
  if (spec.uploads_size() == 0 || !spec.results_directory().empty() || files == nullptr)
    return absl::OkStatus();
  const absl::StatusOr<v1::FileTree> tree =
      uploads::FetchTree(spec, files->cache(), kAnswerPatience);
  if (!tree.ok()) return absl::OkStatus();
  const bool is_taken = std::any_of(
      tree->entries().begin(), tree->entries().end(), [](const v1::FileTreeEntry& entry) {
        return entry.path() == Name() && entry.kind() != v1::FILE_KIND_DIRECTORY;
      });
  return is_taken ? ResultsNameIsTaken() : absl::OkStatus();
}

}  // namespace muster::machines
