// Starts a container: namespaces of its own, mounts, the image's environment and its /etc/rc.
#ifndef MUSTER_TESTS_SUPPORT_PYXIS_CONTAINER_H_
#define MUSTER_TESTS_SUPPORT_PYXIS_CONTAINER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/pyxis/enroot_command.h"
#include "tests/support/pyxis/options.h"

namespace muster::pyxis {

struct ContainerPlan {
  User user;
  std::string rootfs;  // a directory that the user owns
  std::string home;    // to be mounted; empty: not
  bool remap_root = false;
  bool writable = false;
  bool entrypoint = false;
  std::vector<Mount> mounts;  // relative sources count from the working directory
  Environment environment;    // with which enroot would have been called
  Environment overrides;      // the variables of --container-env that the job has
};

// Returns the first mount whose source is a path that is not there; empty if none.
std::string MissingSource(const ContainerPlan& plan);

// Starts the container's first process, which stops itself when /etc/rc has run: then its
// namespaces, environment and directory are the container's. It ends when it is continued. Returns
// -1, and errors are printed, if it does not get that far.
pid_t StartContainer(const ContainerPlan& plan, const ChildLog& log);

// Returns the variables of a stopped container's first process.
Environment VariablesOf(pid_t pid);

// Moves the calling process into the container: ids, files, and its working directory. False, and
// an error is printed, if that fails.
bool JoinContainer(pid_t pid, const std::string& workdir);

}  // namespace muster::pyxis

#endif  // MUSTER_TESTS_SUPPORT_PYXIS_CONTAINER_H_
