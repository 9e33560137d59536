// Reads the report of a host over SSH about the runs that the agent asks about.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_HOST_REPORT_H_
#define MUSTER_AGENTS_MACHINES_HOST_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/machines/run_records.h"

namespace muster::machines {

// A run's stage on the host. It only goes forward, unless someone removes its records.
enum class HostStage {
  kAbsent,    // nothing shows its start
  kClaimed,   // a supervisor has it
  kStarted,   // its command has started
  kEnded,     // there is an exit record
  kVanished,  // it has begun, all of its processes have gone, and nobody has recorded its end
};

// The letter of a stage, as it is sent; the stage of a letter, or nothing.
char LetterOf(HostStage stage);
std::optional<HostStage> StageOf(char letter);

struct RankReport {
  std::string run_key;
  HostStage stage = HostStage::kAbsent;
  std::optional<Started> started = {};
  std::optional<ExitRecord> exit = {};  // kEnded
  std::string detail = {};              // kVanished: how that was seen
};

struct HostReport {
  std::string boot_id;
  int64_t time_us = 0;  // of the look, since 1970 by the host's clock
  std::vector<RankReport> runs;

  std::string Encode() const;
  // Returns nothing if the text is not whole.
  static std::optional<HostReport> Decode(std::string_view bytes);
};

// These are exit codes of the host commands; standard error says what is wrong.
inline constexpr int kHostDone = 0;
inline constexpr int kHostFailed = 1;  // and nothing was started

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_HOST_REPORT_H_
