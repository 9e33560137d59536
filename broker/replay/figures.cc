#include "broker/replay/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace muster::replay {
namespace {

constexpr double kShortestRun = 10;
constexpr double kShortestWait = 60;
constexpr double kStarvedFactor = 10;
constexpr double kStarvedAtLeast = 600;

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

// Returns the value below which this part of the sorted values lies; 0 without values.
double Quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

size_t CountStarved(const Trace& trace, const std::vector<Outcome>& outcomes) {
  std::map<std::pair<uint32_t, uint64_t>, std::vector<double>> classes;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].start) continue;
    const TraceJob& job = trace.jobs[i];
    classes[{job.nodes, job.gpu_millis}].push_back(Seconds(*outcomes[i].start - job.arrival));
  }
  size_t starved = 0;
  for (auto& [name, waits] : classes) {
    std::sort(waits.begin(), waits.end());
    const double bound = std::max(kStarvedFactor * Quantile(waits, 0.5), kStarvedAtLeast);
    starved += std::count_if(waits.begin(), waits.end(), [&](double wait) { return wait > bound; });
  }
  return starved;
}

// Returns GPU seconds of the run within the time from 0 to `end`.
double UseWithin(const TraceJob& job, absl::Duration start, absl::Duration end) {
  const absl::Duration used = std::min(start + job.run_time, end) - std::min(start, end);
  return Seconds(used) * job.nodes * static_cast<double>(job.gpu_millis) / 1000;
}

}  // namespace

Figures FiguresOf(const Fleet& fleet, const Trace& trace, const Replayed& replayed,
                  std::string policy) {
  Figures figures{.policy = std::move(policy)};
  const absl::Duration end = trace.jobs.empty() ? absl::ZeroDuration() : trace.jobs.back().arrival;
  std::vector<double> slowdowns, errors;
  double used = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    const Outcome& outcome = replayed.outcomes[i];
    if (!outcome.start) {
      ++figures.refused;
      continue;
    }
    const double wait = Seconds(*outcome.start - job.arrival);
    const double run = std::max(Seconds(job.run_time), kShortestRun);
    figures.waits.push_back(wait);
    slowdowns.push_back((wait + run) / run);
    used += UseWithin(job, *outcome.start, end);
    if (!outcome.expected_start) continue;
    errors.push_back(std::abs(Seconds(*outcome.start - *outcome.expected_start)) /
                     std::max(wait, kShortestWait));
  }
  std::sort(figures.waits.begin(), figures.waits.end());
  std::sort(errors.begin(), errors.end());
  figures.jobs = figures.waits.size();
  figures.mean_wait = Mean(figures.waits);
  figures.median_wait = Quantile(figures.waits, 0.5);
  figures.p95_wait = Quantile(figures.waits, 0.95);
  figures.max_wait = figures.waits.empty() ? 0 : figures.waits.back();
  figures.slowdown = Mean(slowdowns);
  const double all = Seconds(end) * static_cast<double>(GpusOf(fleet));
  if (all > 0) {
    figures.use = used / all;
    figures.idle = replayed.idle_gpu_seconds / all;
  }
  figures.starved = CountStarved(trace, replayed.outcomes);
  if (!errors.empty()) {
    figures.median_error = Quantile(errors, 0.5);
    figures.p90_error = Quantile(errors, 0.9);
  }
  return figures;
}

std::string AsTable(const std::vector<Figures>& all) {
  std::string text = fmt::format(
      "{:14} {:>6} {:>8} {:>10} {:>10} {:>10} {:>10} {:>9} {:>6} {:>6} {:>7} {:>9} {:>9}\n",
      "POLICY", "JOBS", "REFUSED", "MEAN WAIT", "MEDIAN", "P95", "MAX", "SLOWDOWN", "USE", "IDLE",
      "STARVED", "ERROR P50", "ERROR P90");
  const auto part = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.1f} %", *value * 100) : std::string("-");
  };
  for (const Figures& one : all) {
    text += fmt::format(
        "{:14} {:>6} {:>8} {:>8.0f} s {:>8.0f} s {:>8.0f} s {:>8.0f} s {:>9.2f} {:>6} {:>6} {:>7} "
        "{:>9} {:>9}\n",
        one.policy, one.jobs, one.refused, one.mean_wait, one.median_wait, one.p95_wait,
        one.max_wait, one.slowdown, part(one.use), part(one.idle), one.starved,
        part(one.median_error), part(one.p90_error));
  }
  return text;
}

std::string AsJson(const std::vector<Figures>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const Figures& one : all) {
    nlohmann::json object = {{"policy", one.policy},
                             {"jobs", one.jobs},
                             {"refused", one.refused},
                             {"mean_wait_s", one.mean_wait},
                             {"median_wait_s", one.median_wait},
                             {"p95_wait_s", one.p95_wait},
                             {"max_wait_s", one.max_wait},
                             {"slowdown", one.slowdown},
                             {"use", one.use},
                             {"idle", one.idle},
                             {"starved", one.starved}};
    if (one.median_error) object["median_error"] = *one.median_error;
    if (one.p90_error) object["p90_error"] = *one.p90_error;
    list.push_back(std::move(object));
  }
  return list.dump(2) + "\n";
}

std::string AsPicture(const std::vector<Figures>& all) {
  constexpr double kWidth = 640, kHeight = 320, kLeft = 50, kTop = 20;
  constexpr std::string_view kColours[] = {"#0b6e4f", "#c2571a", "#3a5a9b",
                                           "#8b3a62", "#7a7a00", "#444444"};
  // The axis of waits is logarithmic, from a second to the longest.
  double longest = 10;
  for (const Figures& one : all) longest = std::max(longest, one.max_wait);
  const auto x = [&](double wait) {
    return kLeft + kWidth * std::log10(std::max(wait, 1.0)) / std::log10(longest);
  };
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<title>Part of the jobs that had started after a wait</title>\n",
      kLeft + kWidth + 130, kTop + kHeight + 40);
  for (double wait = 1; wait <= longest; wait *= 10) {
    text += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.0f} s</text>\n",
        x(wait), kTop, kTop + kHeight, kTop + kHeight + 18, wait);
  }
  for (int part = 0; part <= 100; part += 25) {
    const double y = kTop + kHeight * (1 - part / 100.0);
    text += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5} %</text>\n",
        kLeft, y, kLeft + kWidth, kLeft - 6, y + 4, part);
  }
  constexpr size_t kPoints = 200;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string_view colour = kColours[i % std::size(kColours)];
    text +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"", colour);
    for (size_t point = 0; point <= kPoints; ++point) {
      const double part = static_cast<double>(point) / kPoints;
      text += fmt::format("{:.1f},{:.1f} ", x(Quantile(all[i].waits, part)),
                          kTop + kHeight * (1 - part));
    }
    text += fmt::format("\"/>\n<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n",
                        kLeft + kWidth + 10, kTop + 16 * (i + 1), colour, all[i].policy);
  }
  return text + "</svg>\n";
}

}  // namespace muster::replay
