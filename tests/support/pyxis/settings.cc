#include "tests/support/pyxis/settings.h"

#include "tests/support/pyxis/spank.h"

namespace muster::pyxis {

std::optional<bool> ParseBool(std::string_view word) {
  if (word == "1" || word == "true" || word == "yes" || word == "y") return true;
  if (word == "0" || word == "false" || word == "no" || word == "n") return false;
  return std::nullopt;
}

std::optional<Settings> ParseSettings(int argc, char** argv) {
  Settings settings;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    const std::optional<bool> yes = ParseBool(value);
    bool known = true;
    if (key == "runtime_path") {
      settings.runtime_path = value;
    } else if (key == "enroot") {
      settings.enroot = value;
    } else if (key == "container_scope" && (value == "job" || value == "global")) {
      settings.job_scope = value == "job";
    } else if (key == "execute_entrypoint" && yes) {
      settings.execute_entrypoint = *yes;
    } else if (key == "sbatch_support" && yes) {
      settings.sbatch_support = *yes;
    } else if (key == "mount_home" && yes) {
      settings.mount_home = *yes;
    } else {
      known = false;
    }
    if (!known) {
      slurm_error("pyxis: unknown configuration option: %s", argv[i]);
      return std::nullopt;
    }
  }
  return settings;
}

}  // namespace muster::pyxis
