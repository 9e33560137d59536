// A cache over a source of the test's, with a clock that the test moves.
#ifndef MUSTER_TESTS_UNIT_AGENT_FILES_FILES_FIXTURE_H_
#define MUSTER_TESTS_UNIT_AGENT_FILES_FILES_FIXTURE_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "agents/files/file_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agent_files/fake_source.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::uploads {

inline std::string Slurp(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline void Spill(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path) << content;
}

inline const auto kStillWanted = [] { return false; };

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    options_.keep_free_bytes = 0;
    options_.now = [this] { return now_; };
    Open();
  }

  void Open() {
    cache_.reset();
    absl::StatusOr<std::unique_ptr<FileCache>> cache =
        FileCache::Open(dir_ / "files", options_, &source_);
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  static Wanted Want(const std::string& content) { return {Sha256Of(content), content.size()}; }
  // Fetches it and lets it go.
  absl::Status Fetch(const std::string& content) { return FetchAll({Want(content)}); }
  absl::Status FetchAll(const std::vector<Wanted>& files,
                        absl::Duration patience = absl::Seconds(30)) {
    return cache_->Fetch(files, patience).status();
  }
  std::string KeptPath(const std::string& content) const {
    return dir_ / ("files/kept/" + Sha256Of(content));
  }
  std::string IncomingPath(const std::string& content) const {
    return dir_ / ("files/incoming/" + Sha256Of(content));
  }
  bool IsKept(const std::string& content) const {
    return std::filesystem::exists(KeptPath(content));
  }

  hosts::TempDir dir_;
  absl::Time now_ = absl::Now();
  CacheOptions options_;
  FakeSource source_;
  std::unique_ptr<FileCache> cache_;
};

}  // namespace muster::uploads

#endif  // MUSTER_TESTS_UNIT_AGENT_FILES_FILES_FIXTURE_H_
