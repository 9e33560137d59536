// --iterate of squeue and sinfo: the same again and again, each with its time.
#ifndef MUSTER_CLIENTS_CLI_SLURM_REPEAT_H_
#define MUSTER_CLIENTS_CLI_SLURM_REPEAT_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/slurm/options.h"

namespace muster::cli {

// The seconds of --iterate; zero if it was not given. INVALID_ARGUMENT: no whole number from 1.
absl::StatusOr<absl::Duration> ReadPause(const client::slurm::Settings& given);

// Shows it once, or with a pause until the process is ended or showing fails. Returns the exit
// code.
int Repeat(Session& session, absl::Duration pause, const std::function<int()>& show);

// "Fri Nov 27 15:38:06 2026", with its line end.
std::string DateLine(absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_REPEAT_H_
