// A directory for one test, removed at its end.
#ifndef MUSTER_TESTS_UNIT_HOSTS_TEMP_DIR_H_
#define MUSTER_TESTS_UNIT_HOSTS_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace muster::hosts {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "muster-hosts-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + path_);
  }
  // A process that the test has left behind may still write there: the rest stays then.
  ~TempDir() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace muster::hosts

#endif  // MUSTER_TESTS_UNIT_HOSTS_TEMP_DIR_H_
