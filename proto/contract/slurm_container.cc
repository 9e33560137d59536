#include "contract/slurm_container.h"

#include <algorithm>
#include <string>

#include "contract/characters.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// Pyxis takes what is behind a ':' for a flag, and enroot makes a directory of the name.
bool IsContainerName(std::string_view name) {
  return name.size() <= kMaxContainerNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.';
         });
}

void CheckEnv(const v1::SlurmContainer& container, FieldErrors* errors) {
  if (container.env_size() > kMaxContainerEnv) {
    errors->Add("slurm.container.env", fmt::format("{} variables; use at most {}",
                                                   container.env_size(), kMaxContainerEnv));
    return;
  }
  for (int i = 0; i < container.env_size(); ++i) {
    if (IsVariableName(container.env(i)) && container.env(i).size() <= kMaxVariableNameBytes)
      continue;
    errors->Add(fmt::format("slurm.container.env[{}]", i),
                fmt::format("{} is not a variable's name; use [A-Za-z_][A-Za-z0-9_]*, without a "
                            "value: those of the job are in env",
                            Quoted(container.env(i))));
  }
}

}  // namespace

void CheckSlurmContainer(const v1::JobSpec& spec, FieldErrors* errors) {
  const auto& options = spec.slurm().extra_options();
  for (int i = 0; i < options.size() && spec.image().empty(); ++i) {
    if (IsOfContainer(options[i]))
      errors->Add(fmt::format("slurm.extra_options[{}]", i),
                  fmt::format("{}: a job without an image has no container; add an image, or "
                              "leave it out",
                              Quoted(options[i])));
  }
  if (!spec.slurm().has_container()) return;
  const v1::SlurmContainer& container = spec.slurm().container();
  if (spec.image().empty()) {
    errors->Add("slurm.container",
                "a job without an image has no container; add an image, or leave it out");
    return;
  }
  if (!IsContainerName(container.name())) {
    errors->Add("slurm.container.name",
                fmt::format("{} is not a container's name; use up to {} letters, digits, '-', '_' "
                            "and '.'",
                            Quoted(container.name()), kMaxContainerNameBytes));
  }
  CheckEnv(container, errors);
  if (container.refresh_image() && spec.image().front() == '/') {
    errors->Add("slurm.container.refresh_image",
                "the image is a file already, which nothing is converted to; leave it out, or name "
                "the registry's image");
  }
}

}  // namespace muster::contract
