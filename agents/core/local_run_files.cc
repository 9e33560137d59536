#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "agents/core/run_files.h"
#include "agents/hosts/fd.h"
#include "contract/file_tree.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

using hosts::Fd;

// Tries for a path whose directories are renamed while the kernel walks it.
constexpr int kMaxTries = 10;

// The path is relative to the directory and never leads beyond it; `resolve` says more.
absl::StatusOr<Fd> OpenBeneath(int directory, const std::string& path, int flags,
                               uint64_t resolve = 0) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve;
  const char* name = path.empty() ? "." : path.c_str();
  int error = 0;
  for (int i = 0; i < kMaxTries; ++i) {
    const long fd = syscall(SYS_openat2, directory, name, &how, sizeof(how));
    if (fd >= 0) return Fd(static_cast<int>(fd));
    error = errno;
    if (error != EAGAIN && error != EINTR) break;
  }
  return RunFileError(error, path);
}

v1::FileKind KindOf(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return v1::FILE_KIND_FILE;
  if (S_ISDIR(info.st_mode)) return v1::FILE_KIND_DIRECTORY;
  return S_ISLNK(info.st_mode) ? v1::FILE_KIND_SYMLINK : v1::FILE_KIND_UNSPECIFIED;
}

class LocalRunFiles final : public RunFiles {
 public:
  explicit LocalRunFiles(Fd directory) : directory_(std::move(directory)) {}

  absl::StatusOr<v1::FileTreeEntry> LookAt(const std::string& path, bool follow) override {
    const auto there =
        OpenBeneath(directory_.get(), path, O_PATH | (follow || path.empty() ? 0 : O_NOFOLLOW));
    if (!there.ok()) return there.status();
    struct stat info {};
    if (fstat(there->get(), &info) != 0) return RunFileError(errno, path);
    v1::FileTreeEntry entry;
    entry.set_kind(KindOf(info));
    if (entry.kind() == v1::FILE_KIND_FILE) {
      entry.set_size_bytes(static_cast<uint64_t>(info.st_size));
      entry.set_executable((info.st_mode & S_IXUSR) != 0);
      entry.set_owner_only((info.st_mode & (S_IRWXG | S_IRWXO)) == 0);
    } else if (entry.kind() == v1::FILE_KIND_SYMLINK) {
      char target[contract::kMaxTreePathBytes + 1];
      const ssize_t bytes = readlinkat(there->get(), "", target, sizeof(target));
      if (bytes < 0) return RunFileError(errno, path);
      entry.set_link_target(target, static_cast<size_t>(bytes));
    }
    return entry;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    const auto opened = OpenBeneath(directory_.get(), path, O_RDONLY | O_DIRECTORY);
    if (!opened.ok()) return opened.status();
    // closedir closes the descriptor that it was given.
    const int own = fcntl(opened->get(), F_DUPFD_CLOEXEC, 0);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(own < 0 ? nullptr : fdopendir(own),
                                                        closedir);
    if (directory == nullptr) return RunFileError(errno, path);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (names.size() == kMaxNamesInDirectory) {
        return absl::ResourceExhaustedError(
            ToAbsl(fmt::format("has more than {} files", kMaxNamesInDirectory)));
      }
      names.emplace_back(name);
    }
    if (errno != 0) return RunFileError(errno, path);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                   size_t max_bytes) override {
    if (!file_.has_value() || path != file_path_) {
      // A path that was a file a moment ago may be a pipe now, whose open would wait for a writer.
      auto file = OpenBeneath(directory_.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      if (!file.ok()) return file.status();
      struct stat info {};
      if (fstat(file->get(), &info) != 0) return RunFileError(errno, path);
      if (!S_ISREG(info.st_mode)) return PathNotFound(path);
      file_ = *std::move(file);
      file_path_ = path;
    }
    std::string bytes(max_bytes, '\0');
    size_t count = 0;
    while (count < max_bytes) {
      const ssize_t got = pread(file_->get(), bytes.data() + count, max_bytes - count,
                                static_cast<off_t>(offset + count));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return RunFileError(errno, path);
      if (got == 0) break;
      count += static_cast<size_t>(got);
    }
    bytes.resize(count);
    return bytes;
  }

 private:
  const Fd directory_;
  // This file was read last; it is read piece by piece.
  std::optional<Fd> file_;
  std::string file_path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RunFiles>> OpenLocalRunFiles(const std::string& root,
                                                            const std::string& directory) {
  const Fd trusted(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (trusted.get() < 0) return PathNotFound("");
  auto opened = OpenBeneath(trusted.get(), directory, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (absl::IsNotFound(opened.status())) return PathNotFound("");
  if (!opened.ok()) return opened.status();
  return std::make_unique<LocalRunFiles>(*std::move(opened));
}

}  // namespace muster::agents
