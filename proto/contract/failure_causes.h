// Lists the causes of failures whose remedy the code, the phase and the fields do not tell, and the
// remedy for each. failures.h makes remedies from all of these; an agent names a cause, and writes
// no remedy. Pure.
#ifndef MUSTER_PROTO_CONTRACT_FAILURE_CAUSES_H_
#define MUSTER_PROTO_CONTRACT_FAILURE_CAUSES_H_

#include <string_view>

namespace muster::contract {

enum class FailureCause {
  kNone,  // the failure itself tells its remedy
  // The program, on a machine.
  kProgramNotFound,
  kProgramNotExecutable,
  kProgramNotOfMachine,  // of another processor, or a script without a first line
  kArgumentsTooLong,
  kSupervisorStopped,  // by a signal that was not Muster's
  kNothingRan,
  kStateDirectoryChanged,
  // The program, in an image of Kubernetes.
  kProgramNotInImage,
  kShellNotInImage,
  kDirectoryNotInImage,
  kTarNotInImage,
  kOutputSaysWhy,  // that of our own scripts
  kContainerLost,
  // The user as whom the job would run.
  kUserNotMapped,
  kUserNotAllowed,
  kUserNotTaken,  // one of the two
  kUserNotAsked,  // nobody could tell
  kUserWithoutAccount,
  kSecretMissing,
  // The job, and what the cluster has.
  kShareOfGpus,
  kFailedHosts,  // retry.exclude_failed_nodes leaves too few
  kPoolUnknown,
  kNodesTooSmall,  // for Slurm
  kRolesLead,      // needs a newer Kubernetes
  kSlurmOption,
  kScriptOnNodes,  // a batch script that several nodes would have to stop
  // Disks and files.
  kMachineFull,
  kAgentFull,  // the agent's machine
  kUploadGone,
  kUploadInvalid,
  kTooManyUploads,  // for Kubernetes
  kResultsNameTaken,
  kMountPath,
  kMountSource,
  kMissingInNamespace,
  kClaimUnbound,
  // Hosts over SSH.
  kHostLacksData,
  kHostRefused,
  kHostUnfit,
  kHostGone,
  // Images and what runs them.
  kNoContainerTool,
  kNoPyxis,
  kNoEnroot,
  kImageInvalid,
  kImageIsFile,
  kNoBash,
  kSlurmCredentials,
  kRegistryFull,     // of requests
  kRegistryUnheard,  // by nodes of Slurm
  kRegistryFails,    // for nodes of Kubernetes
  kPullSecret,
  kSlurmDiskFull,
  kNodeDiskFull,  // of Kubernetes
  kNoSquashfs,
  kImageFileMissing,
  kEntrypointEnded,
  kEnrootBroken,
  kNodeSaysWhy,
  kCrashLoop,
  // The conversion of an image on Slurm.
  kConversionStopped,
  kConversionTimeLimit,
  kConversionMemory,
  kConversionKilled,
  kConversionRefused,
};
// It is for tests and tables.
inline constexpr auto kLastFailureCause = FailureCause::kConversionRefused;

// Returns whole sentences, in which "{0}" stands for the subject of the failure. Empty: kNone.
std::string_view RemedyFor(FailureCause cause);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FAILURE_CAUSES_H_
