#include "contract/spank_options.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "contract/characters.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// slurm.extra_options does not take these options of sbatch: they have fields of their own, or
// would take away what Muster relies on.
constexpr std::string_view kOtherOptions[] = {"account",
                                              "array",
                                              "bbf",
                                              "clusters",
                                              "comment",
                                              "constraint",
                                              "container",
                                              "container-entrypoint",
                                              "container-env",
                                              "container-id",
                                              "container-image",
                                              "container-mount-home",
                                              "container-mounts",
                                              "container-name",
                                              "container-remap-root",
                                              "container-writable",
                                              "dependency",
                                              "error",
                                              "exclude",
                                              "export",
                                              "export-file",
                                              "extra",
                                              "get-user-env",
                                              "gid",
                                              "gpus-per-socket",
                                              "help",
                                              "ignore-pbs",
                                              "input",
                                              "job-name",
                                              "licenses",
                                              "mail-type",
                                              "mail-user",
                                              "nice",
                                              "no-container-entrypoint",
                                              "no-container-mount-home",
                                              "no-container-remap-root",
                                              "no-requeue",
                                              "nodefile",
                                              "nodelist",
                                              "oom-kill-step",
                                              "open-mode",
                                              "output",
                                              "parsable",
                                              "partition",
                                              "priority",
                                              "propagate",
                                              "qos",
                                              "quiet",
                                              "requeue",
                                              "reservation",
                                              "resv-ports",
                                              "signal",
                                              "stepmgr",
                                              "tasks-per-node",
                                              "test-only",
                                              "tres-bind",
                                              "tres-per-task",
                                              "uid",
                                              "usage",
                                              "verbose",
                                              "version",
                                              "wait",
                                              "wrap"};

bool IsBeginningOfAny(std::string_view name, const auto& options) {
  return std::any_of(std::begin(options), std::end(options),
                     [name](std::string_view option) { return option.starts_with(name); });
}

}  // namespace

bool IsSpankName(std::string_view name) {
  const auto is_alphanumeric = [](char c) { return IsLetter(c) || IsDigit(c); };
  return !name.empty() && name.size() <= kMaxSpankNameBytes && is_alphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alphanumeric(c) || c == '-' || c == '_'; }) &&
         !IsBeginningOfAny(name, kOtherOptions) && !IsBeginningOfAny(name, ExtraOptionNames());
}

std::string_view SpankNameOf(std::string_view option) {
  if (!option.starts_with("--")) return "";
  const std::string_view name = option.substr(2, option.find('=') - 2);
  return IsSpankName(name) ? name : "";
}

std::vector<SpankOption> SpankOptionsOf(const v1::SlurmOptions& slurm) {
  std::vector<SpankOption> options;
  for (int i = 0; i < slurm.extra_options_size(); ++i) {
    const std::string_view name = SpankNameOf(slurm.extra_options(i));
    if (!name.empty())
      options.push_back({fmt::format("slurm.extra_options[{}]", i), std::string(name)});
  }
  return options;
}

std::string WhyNoSpankOption(std::string_view name, const v1::SlurmFacts& facts,
                             std::string_view cluster) {
  const auto& allowed = facts.spank_options();
  if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return "";
  return fmt::format(
      "is no option of sbatch's own, and the operator of cluster {} {} (slurm.spank_options); "
      "leave it out, or name a cluster that takes it",
      cluster,
      allowed.empty() ? std::string("allows none of its plug-ins")
                      : fmt::format("allows only --{}", fmt::join(allowed, ", --")));
}

}  // namespace muster::contract
