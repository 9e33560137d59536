#include <cstdio>

#include "agents/machines/clock_now.h"
#include "agents/machines/host_report.h"
#include "agents/machines/old_work.h"
#include "agents/machines/supervisor/host_commands.h"

namespace muster::machines {

int OldWorkCommand(const std::string& runs_directory, int64_t keep_s, int budget_ms,
                   const std::string& after) {
  const int64_t before_us = NowMicroseconds() - keep_s * 1'000'000;
  const std::string found =
      RemoveOldWork(runs_directory, after, before_us, SteadyMilliseconds() + budget_ms).Encode();
  fwrite(found.data(), 1, found.size(), stdout);
  return fflush(stdout) == 0 ? kHostDone : kHostFailed;
}

}  // namespace muster::machines
