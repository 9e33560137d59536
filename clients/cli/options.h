// Options that name themselves, the value and what would work when a value is wrong.
#ifndef MUSTER_CLIENTS_CLI_OPTIONS_H_
#define MUSTER_CLIENTS_CLI_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/invocation.h"

namespace muster::cli {

// The upper end of a range without one.
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Refuses a value that is empty, by CLI11's exception.
void CheckNotEmpty(const std::string& flag, const std::string& value);

// A text that is not empty. Given several times, the last one counts.
CLI::Option* AddText(CLI::App* verb, const std::string& flag, const std::string& type,
                     const std::string& description, std::function<void(const std::string&)> set);

// The same into a value that may be absent.
CLI::Option* AddOptional(CLI::App* verb, const std::string& flag, const std::string& type,
                         const std::string& description, std::optional<std::string>* out);

// The same as AddText, each of several counts.
void AddRepeated(CLI::App* verb, const std::string& flag, const std::string& type,
                 const std::string& description, std::vector<std::string>* values);

// A whole number from min to max.
CLI::Option* AddNumber(CLI::App* verb, const std::string& flag, int64_t min, int64_t max,
                       const std::string& description, std::function<void(int64_t)> set);

// The word that AddStates takes besides states: jobs that are held, queued or pending.
inline constexpr std::string_view kHeldState = "HELD";
// The states' names and kHeldState.
std::vector<std::string_view> StateWords();

// States of jobs by their names, in any case, and kHeldState; several with commas between them.
void AddStates(CLI::App* verb, const std::string& flag, const std::string& description,
               std::vector<std::string>* states);

// A job, or one run of it, and a path of its: "42:results/model.bin", "42.1:".
void AddJobPath(CLI::App* verb, std::vector<JobRef>* jobs, std::string* path);

// Jobs by their numbers; runs of theirs (42.1) too if `runs`.
void AddJobs(CLI::App* verb, bool runs, std::vector<JobRef>* jobs);

// Jobs that have to end before this one starts, by their numbers, the rule for the loss of its
// cluster, and whether others may take its room.
void AddDependenciesAndLoss(CLI::App* verb, SpecFlags* spec);

// Adds the option that says what to count by: state, cluster, user, project, label=KEY; several
// with commas between them.
void AddCountBy(CLI::App* verb, std::vector<CountBy>* by);

// Jobs by their numbers, or those of a filter, or what would be done to either.
// `state`: one of jobs that the verb takes, for the example. `dry_run`: what that does.
void AddChoice(CLI::App* verb, std::string_view state, const std::string& dry_run,
               Invocation* call);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_OPTIONS_H_
