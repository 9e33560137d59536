// Kubeconfig files.
#include "agents/kubernetes/api/kubeconfig.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
  muster::fuzz::Require(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size),
                        "a file can be made");
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  static_cast<void>(muster::kubernetes::ReadKubeconfig({path}, ""));
  static_cast<void>(muster::kubernetes::ReadKubeconfig({path, path}, "lab"));
  close(fd);
  return 0;
}
