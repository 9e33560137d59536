#include <cstdio>

#include "agents/machines/host_report.h"
#include "agents/machines/run_signal.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {

int SignalCommand(const std::string& directory, const ProcessSignal& signal) {
  const std::string why = SignalRun(directory, signal);
  if (why.empty()) return kHostDone;
  fprintf(stderr, "%s\n", why.c_str());
  return kHostFailed;
}

}  // namespace muster::machines
