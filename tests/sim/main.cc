// muster-sim runs seeds of the simulation, and prints the history of one that fails.
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "tests/sim/simulation.h"

namespace muster::sim {
namespace {

constexpr std::string_view kHelp =
    R"(usage: muster-sim [--seeds N] [--first SEED] [--verbose] [--mutation NAME]

Runs the broker's core and the agents' cores against simulated clusters, networks and disks, with
faults, and checks what must always hold. Each seed is one history, the same on every machine.

  --seeds N        how many seeds (default 100)
  --first SEED     the first of them (default 1)
  --verbose        print the history of every seed, not only of one that fails
  --mutation NAME  put in a bug that the checks must find; --mutation list names them

Exit code 0: all held. 1: a seed failed; its history is on stdout. 2: usage.
)";

struct Arguments {
  uint64_t seeds = 100;
  uint64_t first = 1;
  bool verbose = false;
  Mutation mutation = Mutation::kNone;
};

bool ParseNumber(std::string_view text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--verbose") {
      arguments.verbose = true;
      continue;
    }
    ++i;
    if (name == "--seeds" && ParseNumber(value, &arguments.seeds)) continue;
    if (name == "--first" && ParseNumber(value, &arguments.first)) continue;
    bool is_known = false;
    for (const MutationName& known : kMutations) {
      if (name != "--mutation" || value != known.name) continue;
      arguments.mutation = known.mutation;
      is_known = true;
    }
    if (!is_known) return std::nullopt;
  }
  return arguments;
}

void Print(const Verdict& verdict) {
  for (const auto& line : verdict.history) fmt::print("{}\n", line);
  fmt::print("seed {}: {} jobs in {}: {}\n", verdict.seed, verdict.jobs,
             absl::FormatDuration(verdict.virtual_time), verdict.ok() ? "ok" : verdict.violation);
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[2]) == "list") {
    for (const MutationName& known : kMutations) fmt::print("{}\n", known.name);
    return 0;
  }
  const auto arguments = Parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "{}", kHelp);
    return 2;
  }
  size_t jobs = 0;
  for (uint64_t seed = arguments->first; seed < arguments->first + arguments->seeds; ++seed) {
    Verdict verdict = Simulate(seed, arguments->mutation, arguments->verbose);
    jobs += verdict.jobs;
    if (verdict.ok() && !arguments->verbose) continue;
    if (!verdict.ok() && !arguments->verbose) {
      verdict = Simulate(seed, arguments->mutation, /*wants_history=*/true);
    }
    Print(verdict);
    if (verdict.ok()) continue;
    fmt::print("again: muster-sim --first {} --seeds 1\n", seed);
    return 1;
  }
  fmt::print("{} seeds, {} jobs: all invariants held\n", arguments->seeds, jobs);
  return 0;
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) { return muster::sim::Main(argc, argv); }
