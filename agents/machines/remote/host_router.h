// Several hosts as one, for reading: each path is asked of the host that it belongs to. That works
// because every host has its own name in the directory that it keeps runs in.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/host.h"

namespace muster::machines {

// Paths that belong to nobody, and all those of a host that is down, are UNAVAILABLE at once, so
// that one host does not keep the others waiting; those of a host that the cluster does not have
// any more are NOT_FOUND. The hosts of one call are asked one after the other.
class HostRouter : public hosts::Host {
 public:
  // Any thread. `host` outlives the router; null: it is down.
  void SetHost(const std::string& name, hosts::Host* host);
  // What is in this directory, unless it is in a deeper one, belongs to that host.
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

  // Nobody writes through it: UNIMPLEMENTED.
  absl::Status WriteFile(std::string_view path, std::string_view content,
                         const hosts::WriteOptions& options) override;
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override;
  absl::Status RemoveTree(std::string_view path) override;
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override;
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) override;
  absl::Status WriteMany(const std::vector<hosts::NewFile>& files) override;

 private:
  absl::StatusOr<hosts::Host*> Find(std::string_view path) const;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, hosts::Host*> hosts_;  // by name
  std::map<std::string, std::string> owners_;  // names, by directory
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_HOST_ROUTER_H_
