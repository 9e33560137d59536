#include "clients/cli/slurm/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxPadding = 10;  // as Slurm's

std::string Absolute(const v1::Job& job, const std::string& pattern) {
  const std::string& directory = job.spec().working_directory();
  if (pattern.starts_with('/') || directory.empty()) return pattern;
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", pattern);
}

bool IsBatch(const v1::Job& job) { return job.spec().slurm().has_batch_script(); }

// The text that a letter of a pattern stands for; nothing: only the node's own Slurm knows.
std::optional<std::string> MeaningOf(char letter, const v1::Job& job, const v1::Run& run) {
  const std::optional<contract::ArrayTask> task = contract::FindArrayTask(job.spec());
  switch (letter) {
    case '%':
      return "%";
    case 'j':
    case 'J':
      return run.external_id();
    case 'A':
      return task ? fmt::format("{}", contract::ArrayNumber(job.id(), *task)) : run.external_id();
    case 'a':
      return task ? std::optional(fmt::format("{}", task->id)) : std::nullopt;
    case 'x':
      return job.name();
    case 'N':
      return run.nodes().empty() ? std::nullopt : std::optional(run.nodes(0));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string OutputPattern(const v1::Job& job) {
  if (!IsBatch(job)) return "";
  const std::string& own = job.spec().slurm().batch_script().output();
  return own.empty() ? "" : Absolute(job, own);
}

std::string ErrorPattern(const v1::Job& job) {
  const std::string& own = job.spec().slurm().batch_script().error();
  return own.empty() ? OutputPattern(job) : Absolute(job, own);
}

std::string InputPattern(const v1::Job& job) {
  if (!IsBatch(job)) return "";
  const std::string& own = job.spec().slurm().batch_script().input();
  return own.empty() ? "/dev/null" : Absolute(job, own);
}

std::string OutputPath(const v1::Job& job, const v1::Run& run) {
  const std::string pattern = OutputPattern(job);
  if (job.cluster_kind() != v1::CLUSTER_KIND_SLURM || run.external_id().empty()) return "";
  // A backslash turns all of them off.
  if (pattern.find('\\') != pattern.npos) return "";
  std::string path;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      path += pattern[at];
      continue;
    }
    size_t width = 0;
    while (++at < pattern.size() && contract::IsDigit(pattern[at]))
      width = std::min(kMaxPadding, width * 10 + static_cast<size_t>(pattern[at] - '0'));
    const auto meaning = at < pattern.size() ? MeaningOf(pattern[at], job, run) : std::nullopt;
    if (!meaning.has_value()) return "";
    const bool is_number = contract::ParseNumber<uint64_t>(*meaning).has_value();
    if (is_number) path.append(width - std::min(width, meaning->size()), '0');
    path += *meaning;
  }
  return path;
}

}  // namespace muster::cli
