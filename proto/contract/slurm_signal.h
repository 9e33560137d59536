// The signal that a job is sent before its time limit, as sbatch's --signal writes it.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_SIGNAL_H_
#define MUSTER_PROTO_CONTRACT_SLURM_SIGNAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::contract {

struct SlurmSignal {
  // True: it is also sent before a reservation that overlaps the job begins.
  bool in_reservation = false;
  // True: it is sent to the command alone, and not to the processes that it started.
  bool command_only = false;
  std::string name;       // "USR1"
  uint32_t seconds = 60;  // before the time limit, 0 to 65535; Slurm may be up to 60 s early

  friend bool operator==(const SlurmSignal&, const SlurmSignal&) = default;
};

// Nothing can catch it. It is for batch scripts, which Slurm itself kills then: for another command
// it would end the process that waits for it.
inline constexpr std::string_view kKill = "KILL";

// Reads "[R][B:]SIGNAL[@SECONDS]", with the signal by name, with or without SIG, or by number.
// Nothing if it is none of HUP, INT, QUIT, ABRT, KILL, USR1, USR2, ALRM and TERM: the others stop
// what waits for the command, or are ignored by it.
std::optional<SlurmSignal> ParseSlurmSignal(std::string_view text);

// Returns the text in the form that every sbatch takes.
std::string FormatSlurmSignal(const SlurmSignal& signal);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_SIGNAL_H_
