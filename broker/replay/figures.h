// The figures of a replay, as text, JSON and pictures.
#ifndef MUSTER_BROKER_REPLAY_FIGURES_H_
#define MUSTER_BROKER_REPLAY_FIGURES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "broker/replay/fleet.h"
#include "broker/replay/replay.h"
#include "broker/replay/trace.h"

namespace muster::replay {

// Times are in seconds. A wait lasts from the arrival to the start.
struct Figures {
  std::string policy;
  size_t jobs = 0;  // jobs that have started
  size_t refused = 0;
  double mean_wait = 0;
  double median_wait = 0;
  double p95_wait = 0;
  double max_wait = 0;
  // The mean of (wait + run time) / run time, where run times below 10 s count as 10 s.
  double slowdown = 0;
  // The part of the GPUs' time, from the first arrival to the last, in which jobs had them.
  double use = 0;
  // The part in which they were free although a job that waited could have used them.
  double idle = 0;
  // Counts jobs that waited more than ten times their class's median, and over ten minutes. A class
  // is all jobs with as many nodes and GPUs.
  size_t starved = 0;
  // Errors of the expected starts, as parts of the waits; waits below a minute count as one.
  // Nothing: no start was expected.
  std::optional<double> median_error = {};
  std::optional<double> p90_error = {};
  std::vector<double> waits = {};  // sorted
};

Figures FiguresOf(const Fleet& fleet, const Trace& trace, const Replayed& replayed,
                  std::string policy);

// Returns a table for people.
std::string AsTable(const std::vector<Figures>& all);
// Returns an array of objects, without the waits.
std::string AsJson(const std::vector<Figures>& all);
// Draws, as SVG, for each policy the part of the jobs that had started after a given wait.
std::string AsPicture(const std::vector<Figures>& all);

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_FIGURES_H_
