// Checks a FileTree by the rules in the comments of its fields (proto/muster/v1/file_tree.proto),
// which make it safe to lay out. Client, broker and agent all rely on this one check, and each
// makes it for itself: a tree comes from anybody who can reach the broker.
//
// Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_FILE_TREE_H_
#define MUSTER_PROTO_CONTRACT_FILE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/file_tree.pb.h"

namespace muster::contract {

// The results directory's name in a run's working directory, and for those who ask for files.
inline constexpr std::string_view kResultsName = "results";
// Each entry costs a system call or two on both sides, and about 200 bytes in a tree; a directory
// with more is a data set or a forgotten build folder.
inline constexpr size_t kMaxTreeEntries = 50'000;
// A serialised tree has room for every entry with a path of ordinary length, in a message that gRPC
// and its receivers hold in memory.
inline constexpr size_t kMaxTreeBytes = 16 << 20;
// Leaves room in PATH_MAX for the run's directory above it.
inline constexpr size_t kMaxTreePathBytes = 1024;
// NAME_MAX of Linux.
inline constexpr size_t kMaxTreeNameBytes = 255;
// A chunk of a file on its way has at most this many bytes, which gRPC sends without a pause.
inline constexpr size_t kMaxFileChunkBytes = 256 << 10;
// Digests in one FindMissingFiles: about 660 kB.
inline constexpr size_t kMaxDigestsPerRequest = 10'000;

// Returns the length of a tar archive of the tree, in the form in which agents send it.
uint64_t ArchiveBytes(const v1::FileTree& tree);

// Tells whether it is 64 of 0-9 and a-f.
bool IsSha256(std::string_view text);

// Returns the reason that the path may not be an entry's; empty if it may. The words are for
// people: "has the part \"..\"".
std::string_view WhatIsWrongWithTreePath(std::string_view path);

// INVALID_ARGUMENT, HOSTILE_TREE names the entry, what is wrong and what would do.
absl::Status CheckFileTree(const v1::FileTree& tree);

// Reads a tree from its bytes, and checks it. INVALID_ARGUMENT, HOSTILE_TREE also for what is no
// tree or is longer than kMaxTreeBytes.
absl::StatusOr<v1::FileTree> ParseFileTree(std::string_view bytes);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FILE_TREE_H_
