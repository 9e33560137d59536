// Reads from several hosts as from one: each path is asked of the host that it belongs to. This
// works because every host has its own name in the directory that it keeps runs in.
//
// Any thread may call.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "agents/hosts/host.h"
#include "agents/machines/remote/host_lane.h"
#include "sync/mutex.h"

namespace muster::machines {

// The time for one host's answer. The same two threads read all ends and logs of the cluster, and a
// host that hangs must not hold them up; a host that answers at all does so within a second.
inline constexpr absl::Duration kReadPatience = absl::Seconds(5);

// Paths that belong to nobody, and all those of a host that is down or too slow, are UNAVAILABLE,
// so that one host does not keep the others waiting; those of a host that the cluster does not have
// any more are NOT_FOUND. The hosts of one call are asked at the same time.
class HostRouter : public hosts::Host {
 public:
  explicit HostRouter(absl::Duration patience = kReadPatience) : patience_(patience) {}

  // Null: it is down.
  void SetHost(const std::string& name, std::shared_ptr<HostLane> host);
  // Gives the host all paths in this directory, except those in a deeper directory that has an
  // owner.
  void SetOwner(const std::string& directory, const std::string& name);
  void RemoveOwner(const std::string& directory);

  std::string Name() const override { return "the cluster's hosts"; }
  // The first word that is a path of some host tells which.
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override;
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override;
  absl::StatusOr<hosts::FileInfo> Stat(std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) override;
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override;
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override;

  // Returns UNIMPLEMENTED: nobody writes through it.
  absl::Status WriteFile(std::string_view path, std::string_view content,
                         const hosts::WriteOptions& options) override;
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override;
  absl::Status RemoveTree(std::string_view path) override;
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override;
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) override;
  absl::Status WriteMany(const std::vector<hosts::NewFile>& files) override;

 private:
  struct Way {
    std::string name;
    std::shared_ptr<HostLane> lane;
  };
  absl::StatusOr<Way> Find(std::string_view path) const;
  std::chrono::steady_clock::time_point Deadline() const;
  // Asks one host. `question`: see HostLane.
  template <typename Answer, typename Ask>
  absl::StatusOr<Answer> AskOne(std::string_view path, std::string question, Ask ask);
  // Asks each host for its own, and puts the answers where the questions were. `name` gives the
  // path of one of them, and words that tell it from all others.
  template <typename Answer, typename Question, typename Naming, typename Ask>
  std::vector<absl::StatusOr<Answer>> AskMany(const std::vector<Question>& questions,
                                              const Naming& name, const Ask& ask);

  const absl::Duration patience_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<HostLane>> hosts_ ABSL_GUARDED_BY(mutex_);  // by name
  // Names, by directory.
  std::map<std::string, std::string> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_
