// Runs commands as root for a test that has given root up itself: agents are ordinary users of a
// cluster.
#ifndef MUSTER_TESTS_INTEGRATION_SLURM_ROOT_HELPER_H_
#define MUSTER_TESTS_INTEGRATION_SLURM_ROOT_HELPER_H_

#include <string>

namespace muster::slurm {

class RootHelper {
 public:
  struct Result {
    int status = -1;  // as the shell tells it
    std::string output;
  };

  // Forks, so make it before any thread, as root. Dies with this process.
  RootHelper();
  ~RootHelper();
  RootHelper(const RootHelper&) = delete;
  RootHelper& operator=(const RootHelper&) = delete;

  // Runs a shell command; its stdout and stderr come back together.
  Result Run(const std::string& command);

 private:
  int request_ = -1;
  int reply_ = -1;
  int pid_ = -1;
};

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_INTEGRATION_SLURM_ROOT_HELPER_H_
