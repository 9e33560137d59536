// The words that the administrator writes in plugstack.conf behind the plugin's name.
#ifndef MUSTER_TESTS_SUPPORT_PYXIS_SETTINGS_H_
#define MUSTER_TESTS_SUPPORT_PYXIS_SETTINGS_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster::pyxis {

struct Settings {
  // Pyxis' own, with its defaults.
  std::string runtime_path = "/run/pyxis";
  bool execute_entrypoint = false;
  bool job_scope = false;  // container_scope=job: names are a job's own; else the node's
  bool sbatch_support = true;
  // The stand-in's. Real ones are enroot.conf's ENROOT_MOUNT_HOME and whatever PATH the node has.
  bool mount_home = true;
  std::string enroot = "enroot";  // with a directory: put at the end of every task's PATH as well
};

// Reads yes, no, or neither.
std::optional<bool> ParseBool(std::string_view word);

// Returns nothing if a word is not understood; Slurm's log says why.
std::optional<Settings> ParseSettings(int argc, char** argv);

}  // namespace muster::pyxis

#endif  // MUSTER_TESTS_SUPPORT_PYXIS_SETTINGS_H_
