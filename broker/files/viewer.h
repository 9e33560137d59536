// Says whose files a caller may know of. A value; any thread.
#ifndef MUSTER_BROKER_FILES_VIEWER_H_
#define MUSTER_BROKER_FILES_VIEWER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace muster::files {

// An owner of files, a user or a project: 16 bytes of a digest. A name would take more room in each
// row, and rows of names that own nothing any more would have to be removed.
std::string OwnerOfUser(std::string_view user);
std::string OwnerOfProject(std::string_view project);

class Viewer {
 public:
  // Sees every file: the broker itself, agents, and whoever may read the files of all jobs.
  // `user` owns what this viewer uploads.
  static Viewer All(std::string_view user) { return Viewer(/*sees_all=*/true, user, {}); }
  // Sees the files of the user and of these projects.
  static Viewer Of(std::string_view user, const std::vector<std::string>& projects) {
    return Viewer(/*sees_all=*/false, user, projects);
  }

  bool sees_all() const { return sees_all_; }
  // Returns the owner of what this viewer uploads.
  const std::string& self() const { return self_; }
  bool IsOneOf(std::string_view owner) const { return owners_.contains(std::string(owner)); }
  // Two viewers with the same key see the same files.
  const std::string& key() const { return key_; }

 private:
  Viewer(bool sees_all, std::string_view user, const std::vector<std::string>& projects);

  bool sees_all_;
  std::string self_;
  absl::flat_hash_set<std::string> owners_;
  std::string key_;
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_VIEWER_H_
