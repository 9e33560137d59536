#include "clients/cli/tree_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "contract/characters.h"
#include "contract/file_tree.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

using contract::Quoted;

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

absl::Status SystemError(std::string_view what, std::string_view name) {
  const int error = errno;
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("cannot {} {}", what, Quoted(name))));
}

absl::Status Hostile(std::string_view path, std::string_view what) {
  return absl::InvalidArgumentError(
      ToAbsl(fmt::format("what the broker sends is refused: {} {}", Quoted(path), what)));
}

void Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

mode_t ModeOf(const v1::FileTreeEntry& entry) {
  const mode_t mask = umask(0);
  umask(mask);
  const mode_t mode = entry.executable() ? 0777 : 0666;
  return mode & ~mask & (entry.owner_only() ? 0700 : 0777);
}

}  // namespace

TreeWriter::~TreeWriter() {
  if (file_ >= 0 && has_name_) unlinkat(directory_, temporary_name_.c_str(), 0);
  Close(&file_);
  Close(&directory_);
  Close(&root_);
}

std::string TreeWriter::path() const {
  return (std::filesystem::path(parent_path_) / root_name_).lexically_normal().native();
}

absl::Status TreeWriter::Begin(const v1::FileTreeEntry& entry) {
  if (absl::Status status = EndFile(); !status.ok()) return status;
  if (!has_root_) return BeginRoot(entry);
  if (root_ < 0) return Hostile(entry.path(), "comes after a file that was all that was asked for");
  if (const std::string_view wrong = contract::WhatIsWrongWithTreePath(entry.path());
      !wrong.empty())
    return Hostile(entry.path(), wrong);
  if (entry.kind() == v1::FILE_KIND_SYMLINK) {
    v1::FileTreeEntry* link = links_.add_entries();
    link->set_path(entry.path());
    link->set_kind(entry.kind());
    link->set_link_target(entry.link_target());
    return absl::OkStatus();
  }
  std::string name;
  auto parent = OpenParent(entry.path(), &name);
  if (!parent.ok()) return parent.status();
  if (entry.kind() == v1::FILE_KIND_FILE) return BeginFile(entry, *parent, name);
  absl::Status status;
  if (entry.kind() != v1::FILE_KIND_DIRECTORY) {
    status = Hostile(entry.path(), "is neither a file nor a directory nor a link");
  } else if (mkdirat(*parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
    status = SystemError("make the directory", entry.path());
  }
  Close(&*parent);
  return status;
}

absl::Status TreeWriter::BeginRoot(const v1::FileTreeEntry& entry) {
  if (!entry.path().empty()) return Hostile(entry.path(), "comes before what was asked for");
  has_root_ = true;
  std::error_code error;
  const std::filesystem::path place = place_;
  const bool is_into = std::filesystem::is_directory(place, error);
  parent_path_ = is_into ? place_ : place.has_parent_path() ? place.parent_path().native() : ".";
  root_name_ = is_into ? name_ : place.filename().native();
  // The last part of "new/" is empty.
  if (root_name_.empty()) {
    return absl::NotFoundError(
        ToAbsl(fmt::format("there is no directory {}; make it first", Quoted(place_))));
  }
  int parent = open(parent_path_.c_str(), kDirectory);
  if (parent < 0) return SystemError("write into", parent_path_);
  if (entry.kind() == v1::FILE_KIND_FILE) return BeginFile(entry, parent, root_name_);
  absl::Status status;
  if (entry.kind() != v1::FILE_KIND_DIRECTORY) {
    status = Hostile(root_name_, "is neither a file nor a directory");
  } else if (mkdirat(parent, root_name_.c_str(), 0777) != 0 && errno != EEXIST) {
    status = SystemError("make the directory", path());
  } else if (root_ = openat(parent, root_name_.c_str(), kDirectory | O_NOFOLLOW); root_ < 0) {
    status = SystemError("write into", path());
  }
  Close(&parent);
  return status;
}

absl::StatusOr<int> TreeWriter::OpenParent(std::string_view path, std::string* name) const {
  int at = openat(root_, ".", kDirectory);
  for (size_t slash = path.find('/'); at >= 0 && slash != path.npos; slash = path.find('/')) {
    const int below =
        openat(at, std::string(path.substr(0, slash)).c_str(), kDirectory | O_NOFOLLOW);
    const int error = errno;
    close(at);
    errno = error;
    at = below;
    path.remove_prefix(slash + 1);
  }
  if (at < 0) return SystemError("write", path);
  *name = path;
  return at;
}

absl::Status TreeWriter::BeginFile(const v1::FileTreeEntry& entry, int directory,
                                   const std::string& name) {
  directory_ = directory;
  file_name_ = name;
  temporary_name_ = fmt::format(".muster-cp-{}-{}", getpid(), files_);
  entry_ = entry;
  written_ = 0;
  // The file has no name: it is gone with this process, however that ends.
  file_ = openat(directory_, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  has_name_ = file_ < 0;
  // Some file systems have only files with names.
  if (has_name_) {
    file_ = openat(directory_, temporary_name_.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  return file_ < 0 ? SystemError("write", name) : absl::OkStatus();
}

// A link replaces nothing, so that it gets another name first.
bool TreeWriter::NameFile() {
  const std::string path = fmt::format("/proc/self/fd/{}", file_);
  has_name_ = has_name_ || linkat(AT_FDCWD, path.c_str(), directory_, temporary_name_.c_str(),
                                  AT_SYMLINK_FOLLOW) == 0;
  return has_name_ &&
         renameat(directory_, temporary_name_.c_str(), directory_, file_name_.c_str()) == 0;
}

absl::Status TreeWriter::Append(std::string_view bytes) {
  if (file_ < 0) return Hostile(entry_.path(), "has bytes, and is no file");
  if (bytes.size() > entry_.size_bytes() - written_)
    return Hostile(file_name_, "has more bytes than were announced");
  written_ += bytes.size();
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("write", file_name_);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status TreeWriter::EndFile() {
  if (file_ < 0) return absl::OkStatus();
  absl::Status status;
  if (fchmod(file_, ModeOf(entry_)) != 0 || !NameFile()) {
    status = SystemError("write", file_name_);
    if (has_name_) unlinkat(directory_, temporary_name_.c_str(), 0);
  }
  Close(&file_);
  Close(&directory_);
  ++files_;
  return status;
}

absl::Status TreeWriter::MakeLinks() {
  auto& links = *links_.mutable_entries();
  std::sort(links.begin(), links.end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  if (absl::Status status = contract::CheckFileTree(links_); !status.ok()) return status;
  for (const v1::FileTreeEntry& link : links) {
    std::string name;
    auto parent = OpenParent(link.path(), &name);
    if (!parent.ok()) return parent.status();
    struct stat info {};
    const bool is_link =
        fstatat(*parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    if (is_link) unlinkat(*parent, name.c_str(), 0);
    absl::Status status;
    if (symlinkat(link.link_target().c_str(), *parent, name.c_str()) != 0)
      status = SystemError("make the link", link.path());
    Close(&*parent);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status TreeWriter::Finish() {
  if (absl::Status status = EndFile(); !status.ok()) return status;
  return MakeLinks();
}

}  // namespace muster::cli
