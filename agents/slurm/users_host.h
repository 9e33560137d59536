// Makes the login host when jobs run as their users: a file in the area of a user is handled as
// that user, all else as the agent. The areas are the user's directory below run_dir, and
// everything under a path that UserPath has made.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_SLURM_USERS_HOST_H_
#define MUSTER_AGENTS_SLURM_USERS_HOST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::slurm {

// Returns the path by which UsersHost reaches any path as this user.
std::string UserPath(std::string_view user, std::string_view path);

class UsersHost : public hosts::Host {
 public:
  // `areas` is the directory of the users' directories. `host_of` returns the host as a user sees
  // it, which outlives this object.
  UsersHost(std::unique_ptr<hosts::Host> own, std::string areas,
            std::function<hosts::Host*(const std::string& user)> host_of)
      : own_(std::move(own)), areas_(std::move(areas) + "/"), host_of_(std::move(host_of)) {}

  std::string Name() const override { return own_->Name(); }
  std::optional<hosts::LoginReport> TryLogins() override { return own_->TryLogins(); }
  // Runs as the user in whose area the first of the words is that is in one.
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override;
  absl::Status WriteFile(std::string_view path, std::string_view content,
                         const hosts::WriteOptions& options) override;
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override;
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override;
  absl::StatusOr<hosts::FileInfo> Stat(std::string_view path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) override;
  absl::Status RemoveTree(std::string_view path) override;
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override;
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override;
  absl::Status MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) override;
  absl::Status RemoveManyTrees(const std::vector<std::string>& paths) override;
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) override;
  absl::Status WriteMany(const std::vector<hosts::NewFile>& files) override;

 private:
  struct Place {
    std::string user;    // empty: the agent
    std::string path;    // there
    std::string prefix;  // what the path has lost
  };
  Place PlaceOf(std::string_view path) const;
  hosts::Host& HostOf(const Place& place) const {
    return place.user.empty() ? *own_ : *host_of_(place.user);
  }
  // Calls `act(host, items, numbers)` for the items of each user together; `path_of` is the item's
  // path, which becomes that of its place. The first error, if `act` returns any.
  template <typename Item, typename PathOf, typename Act>
  absl::Status ForEachUser(const std::vector<Item>& items, PathOf path_of, Act act) const;

  const std::unique_ptr<hosts::Host> own_;
  const std::string areas_;
  const std::function<hosts::Host*(const std::string& user)> host_of_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_USERS_HOST_H_
