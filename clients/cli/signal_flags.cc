#include "clients/cli/signal_flags.h"

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"

namespace muster::cli {

void AddSignalVerb(CLI::App* app, Invocation* out) {
  CLI::App* sub =
      AddVerb(app, out, "signal", Verb::kSignal, "Send a signal to the programs of running jobs",
              "signal 42 --signal USR1");
  AddJobs(sub, false, &out->jobs);
  sub->get_option("ID")->required();
  AddText(sub, "--signal", "SIGNAL", "The signal, by name (USR1, SIGTERM) or by number",
          [out](const std::string& signal) { out->signal.name = signal; })
      ->required();
  auto* batch = sub->add_flag_callback(
      "--batch", [out] { out->signal.target = v1::SIGNAL_TARGET_BATCH; },
      "Only to the first process: of a batch script its shell");
  sub->add_flag_callback(
         "--all", [out] { out->signal.target = v1::SIGNAL_TARGET_ALL; },
         "To all processes: of a batch script on Slurm its shell and its steps; default: its steps")
      ->excludes(batch);
}

}  // namespace muster::cli
