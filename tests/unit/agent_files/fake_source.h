// A broker's files in memory, which come as the test says.
#ifndef MUSTER_TESTS_UNIT_AGENT_FILES_FAKE_SOURCE_H_
#define MUSTER_TESTS_UNIT_AGENT_FILES_FAKE_SOURCE_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "agents/files/file_source.h"
#include "digest/sha256.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::uploads {

class FakeSource : public FileSource {
 public:
  struct Asked {
    std::string sha256;
    uint64_t offset = 0;
  };

  absl::Status Read(const std::string& sha256, uint64_t offset, absl::Duration,
                    const ByteSink& sink) override {
    std::string content;
    bool is_cut = false;
    {
      std::unique_lock lock(mutex_);
      asked_.push_back({sha256, offset});
      changed_.notify_all();
      changed_.wait(lock, [this] { return !hangs_; });
      if (is_away_) return absl::UnavailableError("the broker is away");
      const auto file = files_.find(sha256);
      if (file == files_.end()) return absl::NotFoundError("this broker does not have " + sha256);
      content = file->second.substr(offset);
      is_cut = cuts_ > 0 && content.size() > 1;
      if (is_cut) --cuts_;
    }
    if (is_cut) content.resize(content.size() / 2);
    if (absl::Status status = sink(content); !status.ok()) return status;
    return is_cut ? absl::UnavailableError("the connection broke") : absl::OkStatus();
  }

  void Stop() override {
    SetAway(true);
    SetHanging(false);
  }

  std::string Add(const std::string& content) {
    std::string sha256 = Sha256Of(content);
    Claim(sha256, content);
    return sha256;
  }
  // Plays a broker that lies.
  void Claim(const std::string& sha256, const std::string& content) {
    const std::lock_guard lock(mutex_);
    files_[sha256] = content;
  }
  void Remove(const std::string& sha256) {
    const std::lock_guard lock(mutex_);
    files_.erase(sha256);
  }
  // Makes so many answers break off in their middle.
  void Cut(int answers) {
    const std::lock_guard lock(mutex_);
    cuts_ = answers;
  }
  void SetAway(bool is_away) {
    const std::lock_guard lock(mutex_);
    is_away_ = is_away;
  }
  // Callers get no answer until that ends.
  void SetHanging(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  // Waits until somebody has asked so often.
  void AwaitAsked(size_t times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_.size() >= times; });
  }
  std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  std::vector<Asked> asked_;
  int cuts_ = 0;
  bool is_away_ = false;
  bool hangs_ = false;
  std::condition_variable changed_;
};

inline v1::FileTreeEntry File(const std::string& path, const std::string& content,
                              bool executable = false) {
  v1::FileTreeEntry entry;
  entry.set_path(path);
  entry.set_kind(v1::FILE_KIND_FILE);
  entry.set_size_bytes(content.size());
  entry.set_sha256(Sha256Of(content));
  entry.set_executable(executable);
  return entry;
}

inline v1::FileTreeEntry Link(const std::string& path, const std::string& target) {
  v1::FileTreeEntry entry;
  entry.set_path(path);
  entry.set_kind(v1::FILE_KIND_SYMLINK);
  entry.set_link_target(target);
  return entry;
}

inline v1::FileTreeEntry Directory(const std::string& path) {
  v1::FileTreeEntry entry;
  entry.set_path(path);
  entry.set_kind(v1::FILE_KIND_DIRECTORY);
  return entry;
}

// Entries as they come: whether they are a good tree is the test's affair.
inline v1::FileTree Tree(const std::vector<v1::FileTreeEntry>& entries) {
  v1::FileTree tree;
  uint64_t total = 0;
  for (const v1::FileTreeEntry& entry : entries) {
    *tree.add_entries() = entry;
    total += entry.size_bytes();
  }
  tree.set_total_bytes(total);
  return tree;
}

// The tree is at the source, and the job brings it along.
inline void Bring(FakeSource* source, const v1::FileTree& tree, const std::string& path,
                  v1::JobSpec* spec) {
  v1::Upload* upload = spec->add_uploads();
  upload->set_tree_sha256(source->Add(tree.SerializeAsString()));
  upload->set_path(path);
}

}  // namespace muster::uploads

#endif  // MUSTER_TESTS_UNIT_AGENT_FILES_FAKE_SOURCE_H_
