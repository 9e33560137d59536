// Reads the places of data in the forms that people write, and finds their paths on a cluster.
//
// Texts are taken byte for byte: nothing is decoded ('%20' stays), and no path is looked at. A part
// ".." is refused rather than worked out, because with a symbolic link in the way it would not lead
// to where the text says.
#ifndef MUSTER_PROTO_CONTRACT_STORAGE_URI_H_
#define MUSTER_PROTO_CONTRACT_STORAGE_URI_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::contract {

struct StorageUri {
  enum class Kind {
    kLustre,    // "lustre:///abs": a path of the cluster
    kSlurm,     // "slurm://NAME/rest" below a root of the cluster, "slurm:///abs" a path of it
    kFile,      // "file:///abs" (also local:///abs): a path of the machine that the user sits at
    kAbsolute,  // "/abs": a path of whichever machine reads it; of a remote cluster where its roots
                // say so
    kRelative,  // "data/train": below some directory
  };
  Kind kind = Kind::kRelative;
  // It is absolute except for kRelative and a kSlurm that begins with a name, and has no "//", no
  // "." and no '/' at the end.
  std::string path;

  friend bool operator==(const StorageUri&, const StorageUri&) = default;
};

// Tells whether a text means a place of a cluster whoever reads it: "s3://..." is the program's
// business.
bool IsClusterUri(std::string_view text);

// INVALID_ARGUMENT for `field` says what is wrong with the text and shows a form that works.
absl::StatusOr<StorageUri> ParseStorageUri(std::string_view field, std::string_view text);

// The settings that an operator makes about the file systems of a cluster.
struct ClusterStorage {
  // Its name, for messages.
  std::string cluster;
  // It is true if its nodes see other files than the machines of its users.
  bool is_remote = true;
  // The directories that hold data, by name, as {"lustre": "/lustre", "home": "/home/ann"}. Nothing
  // outside them is used. Empty: the operator does not say, and every path may be used.
  std::map<std::string, std::string> roots;
  // The directory from which relative paths go, absolute. Empty: relative paths are refused.
  std::string relative_to;
};

// INVALID_ARGUMENT names the root: names are 1 to 63 of a-z, A-Z, 0-9, '-', '_' and '.', paths are
// absolute and hold no "..".
absl::Status ValidateClusterStorage(const ClusterStorage& storage);

// Returns the absolute path on the cluster. INVALID_ARGUMENT for `field`: the text is no URI of
// storage, it names what is on the user's machine and not on the cluster, or what is outside the
// cluster's roots; the message has the remedy.
absl::StatusOr<std::string> ResolveStorageUri(std::string_view field, std::string_view text,
                                              const ClusterStorage& storage);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_STORAGE_URI_H_
