// A host whose files are in memory. It runs nothing, and nobody writes to it but its owner.
#ifndef MUSTER_TESTS_FAKE_MEMORY_HOST_H_
#define MUSTER_TESTS_FAKE_MEMORY_HOST_H_

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/host.h"
#include "fmt/format.h"

namespace muster::fake {

class MemoryHost final : public hosts::Host {
 public:
  void Append(const std::string& path, std::string_view text) {
    if (!text.empty()) files_[path] += text;
  }
  // Returns whether there is any file in the directory.
  bool HasAnyIn(const std::string& directory) const {
    const auto next = files_.lower_bound(directory + "/");
    return next != files_.end() && next->first.starts_with(directory + "/");
  }

  std::string Name() const override { return "memory"; }
  absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                            size_t max_bytes) override {
    const auto file = files_.find(std::string(path));
    if (file == files_.end()) return absl::NotFoundError(fmt::format("\"{}\" is not there", path));
    return file->second.substr(std::min<uint64_t>(offset, file->second.size()), max_bytes);
  }
  absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) override {
    return ReadFileRange(path, 0, max_bytes);
  }
  absl::StatusOr<hosts::FileInfo> Stat(std::string_view path) override {
    const absl::StatusOr<std::string> content = ReadFile(path, hosts::kMaxReadBytes);
    if (!content.ok()) return content.status();
    return hosts::FileInfo{.type = hosts::FileType::kRegular, .size = content->size()};
  }
  absl::Status RemoveTree(std::string_view path) override {
    std::erase_if(files_, [&](const auto& file) {
      return file.first == path || file.first.starts_with(fmt::format("{}/", path));
    });
    return absl::OkStatus();
  }
  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override {
    std::vector<absl::StatusOr<hosts::FileInfo>> infos;
    for (const std::string& path : paths) infos.push_back(Stat(path));
    return infos;
  }
  std::vector<absl::StatusOr<std::string>> ReadMany(
      const std::vector<hosts::FilePart>& parts) override {
    std::vector<absl::StatusOr<std::string>> contents;
    for (const hosts::FilePart& part : parts)
      contents.push_back(ReadFileRange(part.path, part.offset, part.max_bytes));
    return contents;
  }

  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command&) override { return Refusal(); }
  absl::Status WriteFile(std::string_view, std::string_view, const hosts::WriteOptions&) override {
    return Refusal();
  }
  absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view) override {
    return Refusal();
  }
  absl::Status MakeManyDirectories(const std::vector<std::string>&, uint32_t) override {
    return Refusal();
  }
  absl::Status RemoveManyTrees(const std::vector<std::string>&) override { return Refusal(); }
  absl::Status RemoveEmptyDirectories(const std::vector<std::string>&) override {
    return Refusal();
  }
  absl::Status WriteMany(const std::vector<hosts::NewFile>&) override { return Refusal(); }

 private:
  static absl::Status Refusal() {
    return absl::UnimplementedError("a host in memory runs nothing and takes no files");
  }

  std::map<std::string, std::string> files_;  // by path
};

}  // namespace muster::fake

#endif  // MUSTER_TESTS_FAKE_MEMORY_HOST_H_
