// Checks the slurm section of a job spec by the rules in the comments of SlurmOptions
// (proto/muster/v1/job_spec.proto). The agent gives every value to sbatch as one argument, so
// nothing here is about shells; it is about what sbatch would misread, and about options that would
// break what Muster relies on.
#ifndef MUSTER_PROTO_CONTRACT_SLURM_OPTIONS_H_
#define MUSTER_PROTO_CONTRACT_SLURM_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// One line of a batch script, far from any limit of sbatch's.
inline constexpr size_t kMaxOptionBytes = 1024;
// A list, such as a dependency on all jobs that are the tasks of an array.
inline constexpr size_t kMaxListBytes = 16 << 10;
inline constexpr uint32_t kMaxTasksPerNode = 10000;
// This is more than any priority that sites compute; Slurm itself takes up to 2147483645.
inline constexpr uint32_t kMaxNice = 1'000'000;
// A list that a person still writes.
inline constexpr int kMaxExtraOptions = 32;

// Returns whether slurm.extra_options takes the option, named without "--".
bool IsExtraOption(std::string_view name);
// Returns the names of all that it takes, which the comment of the field lists.
std::vector<std::string_view> ExtraOptionNames();

// The parts of an allocation. Options that shape the same part take the place of its fields.
enum class AllocationPart { kNone, kTasks, kCores, kMemory, kGres };
// Returns the part that an option "--name=value" shapes; kNone if it shapes none.
AllocationPart PartOf(std::string_view option);
// Returns whether an extra option shapes the part.
bool ShapesPart(const v1::SlurmOptions& slurm, AllocationPart part);
// Returns whether the fields of a batch script for one node say the same as the extra option, so
// that other kinds of clusters can do without it.
bool IsInFields(std::string_view option);

// Returns whether the GPUs of a batch script (--gpus) may come from several nodes, so that what its
// fields say of one node is the total.
bool IsTotalOfGpus(const v1::SlurmOptions& slurm);

// Returns whether slurm.mail_type takes the word.
bool IsMailType(std::string_view word);

// With this extra option the broker holds the job from the moment when it accepts it. Slurm itself
// is never told: a held job is given to no cluster.
inline constexpr std::string_view kHoldOption = "--hold";
bool IsHeldFromTheStart(const v1::JobSpec& spec);

// With this extra option, working_directory is only where the user was, as with sbatch without
// --chdir: a container that lacks it starts elsewhere. Slurm itself is never told.
inline constexpr std::string_view kHereOption = "--chdir=.";
bool IsDirectoryImplied(const v1::JobSpec& spec);

// Returns whether the option is one of these two, which are Muster's and not for sbatch.
bool IsForMuster(std::string_view option);
// Returns whether the option is Pyxis', for the container in which a batch script runs; sbatch
// itself does not get it.
bool IsOfContainer(std::string_view option);

// Separates the conditions of a dependency if one of them is enough; with ',' all must be
// fulfilled.
inline constexpr char kAnyOf = '?';

// Adds what is wrong with the section, each with its field's path.
void CheckSlurmOptions(const v1::SlurmOptions& slurm, FieldErrors* errors);

// Checks a value of one of sbatch's options; empty is good. A leading '-' could be taken for
// another option; blanks, quotes and backslashes would change meaning where sbatch splits a line
// into words.
void CheckOptionValue(std::string_view field, std::string_view value, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SLURM_OPTIONS_H_
