// A directory that goes with the test.
#ifndef MUSTER_TESTS_UNIT_AGENTS_TEMP_DIR_H_
#define MUSTER_TESTS_UNIT_AGENTS_TEMP_DIR_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::agent {

class TempDir {
 public:
  TempDir() {
    path_ = testing::TempDir() + "/muster.XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster::agent

#endif  // MUSTER_TESTS_UNIT_AGENTS_TEMP_DIR_H_
