// muster-replay shows what a trace of jobs would have met on clusters that Muster serves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/replay/figures.h"
#include "broker/replay/fleet.h"
#include "broker/replay/replay.h"
#include "broker/replay/trace.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::replay {
namespace {

struct Flags {
  std::string trace;
  std::string format = "muster";
  std::string fleet;
  std::string openb_nodes;
  size_t nodes = 0;
  double load = 0;
  std::string longest;
  bool whole_gpus = false;
  std::vector<std::string> policies;
  uint64_t seed = 1;
  PlacesToWait places;
  bool json = false;
  std::string picture;
};

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(fmt::format("{} cannot be read", path));
  return text.str();
}

// Returns the same status, with the place in front of its words.
absl::Status In(const std::string& place, const absl::Status& status) {
  return absl::Status(status.code(), fmt::format("{}: {}", place, ToStd(status.message())));
}

absl::StatusOr<Trace> LoadTrace(const Flags& flags) {
  const auto text = ReadWhole(flags.trace);
  if (!text.ok()) return text.status();
  const TraceFormat format = flags.format == "openb"   ? TraceFormat::kOpenb
                             : flags.format == "sacct" ? TraceFormat::kSacct
                                                       : TraceFormat::kMuster;
  auto trace = ReadTrace(format, *text);
  if (!trace.ok()) return In(flags.trace, trace.status());
  if (!flags.longest.empty()) {
    const auto longest = contract::ParseDuration(flags.longest);
    if (!longest.ok()) return In("--max-run-time", longest.status());
    LeaveOutLongerThan(*longest, &*trace);
  }
  if (flags.whole_gpus) AskForWholeGpus(&*trace);
  return trace;
}

absl::StatusOr<Fleet> LoadFleet(const Flags& flags) {
  const std::string& path = flags.fleet.empty() ? flags.openb_nodes : flags.fleet;
  const auto text = ReadWhole(path);
  if (!text.ok()) return text.status();
  auto fleet = flags.fleet.empty() ? FleetOfOpenb(*text, flags.nodes) : ReadFleet(*text);
  if (!fleet.ok()) return In(path, fleet.status());
  return fleet;
}

// Names the refusals that came most often.
void TellRefusals(const std::string& policy, const Replayed& replayed) {
  constexpr size_t kMostTold = 3;
  std::map<std::string, size_t> counts;
  for (const Outcome& outcome : replayed.outcomes) {
    if (!outcome.refusal.empty()) ++counts[outcome.refusal];
  }
  std::multimap<size_t, std::string, std::greater<>> ordered;
  for (const auto& [why, count] : counts) ordered.emplace(count, why);
  size_t told = 0;
  for (const auto& [count, why] : ordered) {
    if (++told > kMostTold) break;
    fmt::print(stderr, "{}: {} refused: {}\n", policy, count, why);
  }
}

absl::Status Run(const Flags& flags) {
  auto trace = LoadTrace(flags);
  if (!trace.ok()) return trace.status();
  const auto fleet = LoadFleet(flags);
  if (!fleet.ok()) return fleet.status();
  if (flags.load > 0) {
    if (absl::Status status = StretchToLoad(flags.load, *fleet, &*trace); !status.ok())
      return status;
  }
  std::vector<Figures> all;
  for (const std::string& name : flags.policies) {
    const auto policy = PolicyNamed(name);
    const auto replayed = ReplayTrace(*fleet, *trace, *policy, flags.seed, flags.places);
    if (!replayed.ok()) return replayed.status();
    TellRefusals(name, *replayed);
    all.push_back(FiguresOf(*fleet, *trace, *replayed, name));
  }
  if (trace->left_out > 0)
    fmt::print(stderr, "{} rows of the trace were left out\n", trace->left_out);
  fmt::print("{}", flags.json ? AsJson(all) : AsTable(all));
  if (flags.picture.empty()) return absl::OkStatus();
  std::ofstream picture(flags.picture);
  picture << AsPicture(all) << std::flush;
  if (!picture) return absl::UnavailableError(fmt::format("{} cannot be written", flags.picture));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  std::vector<std::string> names;
  for (const Policy policy : kPolicies) names.emplace_back(NameOf(policy));
  flags.policies = names;
  CLI::App app(
      "Replays a trace of jobs over clusters in memory, with the placement that the broker has, "
      "and prints what the jobs met, beside simpler policies. A policy other than muster chooses "
      "the cluster of a job when it arrives; one-cluster has all nodes in one, as a bound.",
      "muster-replay");
  app.set_version_flag("--version", MUSTER_VERSION);
  app.add_option("trace", flags.trace, "the trace")->required();
  app.add_option("--format", flags.format,
                 "muster: CSV with arrival_s and run_time_s, and nodes, cpus, memory, gpus, "
                 "time_limit_s, project, user, name; openb: tasks of cluster-trace-gpu-v2023; "
                 "sacct: sacct -a -X -P -o "
                 "JobID,JobName,User,Account,Submit,ElapsedRaw,TimelimitRaw,NNodes,ReqTRES")
      ->check(CLI::IsMember({"muster", "openb", "sacct"}))
      ->capture_default_str();
  auto* fleet = app.add_option_group("fleet");
  fleet->add_option("--fleet", flags.fleet, "YAML with the clusters and their nodes");
  fleet->add_option("--openb-nodes", flags.openb_nodes,
                    "nodes of cluster-trace-gpu-v2023, split over six clusters");
  fleet->require_option(1);
  app.add_option("--nodes", flags.nodes, "of --openb-nodes, keep about so many; 0: all")
      ->capture_default_str();
  app.add_option("--load", flags.load,
                 "move arrivals so that jobs ask for this part of what the GPUs can give; 0: as "
                 "they are")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--max-run-time", flags.longest, "leave out jobs that run longer: 1d");
  app.add_flag(
      "--whole-gpus", flags.whole_gpus,
      "jobs that ask for a part of a GPU ask for a whole one: only clusters of kind machines "
      "have parts");
  app.add_option("--policy", flags.policies, "replay these alone, a,b")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--seed", flags.seed, "of the policy random")->capture_default_str();
  app.add_option("--max-waiting-runs", flags.places.own_queue,
                 "runs that the policy muster lets wait on a cluster of kind slurm")
      ->capture_default_str();
  app.add_option("--sent-ahead", flags.places.others, "the same on the other clusters")
      ->capture_default_str();
  app.add_flag("--json", flags.json, "print JSON");
  app.add_option("--picture", flags.picture, "write an SVG of the waits there");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "muster-replay: {}\n", ToStd(status.message()));
  return 1;
}

}  // namespace
}  // namespace muster::replay

int main(int argc, char** argv) {
  try {
    return muster::replay::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("muster-replay: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
