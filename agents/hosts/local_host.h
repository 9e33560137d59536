// The machine that the agent runs on.
#ifndef MUSTER_AGENTS_HOSTS_LOCAL_HOST_H_
#define MUSTER_AGENTS_HOSTS_LOCAL_HOST_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/host.h"
#include "sync/mutex.h"

namespace muster::hosts {

// Needs no SIGCHLD handler and sets none; the process must not ignore SIGCHLD.
class LocalHost : public Host {
 public:
  std::string Name() const override;
  absl::StatusOr<CommandResult> Run(const Command& command) override;
  absl::Status WriteFile(std::string_view path, std::string_view content,
                         const WriteOptions& options) override;
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override;
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override;
  absl::StatusOr<FileInfo> Stat(std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) override;
  absl::Status RemoveTree(std::string_view path) override;
  std::vector<absl::StatusOr<FileInfo>> StatMany(const std::vector<std::string>& paths) override;
  std::vector<absl::StatusOr<std::string>> ReadMany(const std::vector<FilePart>& parts) override;
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override;
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) override;
  absl::Status WriteMany(const std::vector<NewFile>& files) override;

 private:
  // Reaps what an earlier Run had to leave behind: a killed program that hung in the kernel, say on
  // a dead file server.
  void ReapLeftovers();

  Mutex mutex_;
  std::vector<pid_t> leftovers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_LOCAL_HOST_H_
