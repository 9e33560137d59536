// The options that srun, sbatch and salloc take, as Pyxis has them.
#ifndef MUSTER_TESTS_SUPPORT_PYXIS_OPTIONS_H_
#define MUSTER_TESTS_SUPPORT_PYXIS_OPTIONS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/pyxis/spank.h"

namespace muster::pyxis {

struct Mount {
  std::string source;  // a path, "tmpfs" or "umount"
  std::string target;
  std::vector<std::string> flags;

  bool operator==(const Mount&) const = default;
};

struct Options {
  std::optional<std::string> image;
  std::vector<Mount> mounts;
  std::optional<std::string> workdir;
  std::optional<std::string> name;
  std::string name_flag = "auto";  // or create, exec, no_exec
  std::optional<std::string> save;
  std::optional<bool> mount_home;
  std::optional<bool> remap_root;
  std::optional<bool> entrypoint;
  bool entrypoint_log = false;
  std::optional<bool> writable;
  std::vector<std::string> env;

  bool WantsContainer() const { return image.has_value() || name.has_value(); }
};

// Makes the options known to Slurm, which then calls back for each one that is given. They are kept
// for the process, because the callbacks carry no state. Returns false if Slurm refuses.
bool RegisterOptions(spank_t spank);

// Returns the options given so far.
const Options& GivenOptions();

// Adds one more mount, for the batch script's own file.
void AddMount(Mount mount);

// Takes PYXIS_CONTAINER_* for the options that were not given; `get` looks a variable up. Returns
// false, having said why, if a value is wrong.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;
bool TakeDefaults(const Lookup& get);

// Says which options do nothing because no container was asked for.
void ComplainOfIgnored();

}  // namespace muster::pyxis

#endif  // MUSTER_TESTS_SUPPORT_PYXIS_OPTIONS_H_
