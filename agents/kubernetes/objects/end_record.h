// Reads the record that our scripts in a container leave as its last message, if it was not the
// command that ended: why there was no command (manifest/start/*.sh). Pure.
//
// A record is two lines: "muster-end/1 seal=SEAL phase=setup problem=start", then the name of what
// it is about, which goes on to the next record. The user's programs may write the message as well.
// So a record counts with its seal alone: the uid of the pod's Job, which nobody knows before the
// Job is made, and which the start script hides from the programs that it starts. A program that
// reads /proc/1/environ for it deceives its own job, about the kind of its failure.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_END_RECORD_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_END_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster::kubernetes {

// The variable of a container that has the seal.
inline constexpr char kSealVariable[] = "MUSTER_END_SEAL";

struct EndRecord {
  enum class Phase { kSetup, kCommand, kFiles };
  enum class Problem {
    kFailed,            // the setup ended with another code than 0
    kStart,             // the program could not be started; the subject is its name
    kWorkingDirectory,  // the subject, a directory, could not be entered
    kMissing,           // the subject, data of the job's, is not there
    kNotMade,           // the subject, a directory for results, could not be made
    kNoTar,             // the image has nothing to unpack files with
    kNotUnpacked,       // the files could not be unpacked into the subject
    kLeaseEnded,        // the program was stopped, because the lease of the run had ended
    kNoLease,           // the program was not started, because the lease had ended before
  };
  Phase phase = Phase::kCommand;
  Problem problem = Problem::kStart;
  std::string field;  // of the job spec; kFiles alone
  std::string subject;
};

// Takes the records with that seal out of a container's last message. One with a word that is not
// known here is left out.
std::vector<EndRecord> TakeEndRecords(std::string_view seal, std::string* message);

// Returns the record in words, without a full stop.
std::string WordsOf(const EndRecord& record);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_END_RECORD_H_
