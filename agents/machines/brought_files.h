// What a run was given of its job's files, and has not touched: it goes when the run's logs go.
//
// Whoever lays the files out gives all of them one time of modification, an hour before that
// moment, and the mark in the run's directory as well; what the run writes has another one.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_BROUGHT_FILES_H_
#define MUSTER_AGENTS_MACHINES_BROUGHT_FILES_H_

#include <string>

namespace muster::machines {

// The mark, in the run's directory.
inline constexpr char kBroughtFile[] = "brought";

// Removes the files and links below the run's work/ that bear the mark's time, the directories that
// are empty then, and the mark. What cannot be removed stays.
void RemoveUntouched(const std::string& run_directory);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_BROUGHT_FILES_H_
