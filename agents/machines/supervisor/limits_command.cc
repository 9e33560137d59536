#include <cstdio>

#include "agents/machines/control_group.h"
#include "agents/machines/host_report.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {

int LimitsCommand() {
  const std::string found = ProbeLimits().Encode();
  fwrite(found.data(), 1, found.size(), stdout);
  return fflush(stdout) == 0 ? kHostDone : kHostFailed;
}

}  // namespace muster::machines
