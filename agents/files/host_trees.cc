#include "agents/files/host_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "agents/files/disk_room.h"
#include "agents/files/tar_stream.h"
#include "agents/hosts/file_error.h"
#include "agents/hosts/steady_now.h"
#include "contract/text.h"
#include "digest/sha256.h"

namespace muster::uploads {
namespace {

// Some 8 MiB over a slow line.
constexpr absl::Duration kPartPatience = absl::Minutes(2);
// A GiB in fifty thousand files onto a busy file server.
constexpr absl::Duration kTreePatience = absl::Minutes(10);
// Bytes of a host's words about a failure.
constexpr size_t kMaxWordsBytes = 1000;

// The scripts' exit codes for a tree or an archive that is not as it should be.
constexpr int kMissing = 64;
constexpr int kDamaged = 65;
constexpr int kNoRoom = 66;

// A script goes on when its connection breaks, and the next try's runs beside it. So each fills a
// directory of its own, a part, which gets its name when it is whole and nobody has that name yet.
// Parts that are left go after an hour; whoever fills one is ended long before.

// Trees and copies are synced before they get their names: a host that loses its power could
// otherwise come back with the name and with empty files, and both would then be taken for whole, a
// copy even by the run that waits for its start. The whole file system is synced, because thousands
// of files one by one would each take a commit of its journal.

// $1 is a directory, $2 the KiB that must be free there. If df does not tell, they count as free.
constexpr char kHasRoom[] = R"sh(
has_room() {
  free=$(df -Pk "$1" 2>/dev/null | { read -r _; read -r _ _ _ free _; echo "$free"; })
  case $free in '' | *[!0-9]*) return 0 ;; esac
  [ "$free" -ge "$2" ]
}
)sh";

// $1 the tree, $2 the target, $3 the KiB that are to be free.
constexpr char kCopyScript[] = R"sh(
export LC_ALL=C
rmdir "$2" 2>/dev/null
[ -d "$2" ] && exit 0
[ -d "$1" ] || exit 64
touch "$1" || exit
(umask 077; mkdir -p "${2%/*}") || exit
find "${2%/*}" -mindepth 1 -maxdepth 1 -name "${2##*/}.part.*" -mmin +60 -exec rm -rf {} +
has_room "${2%/*}" "$3" || exit 66
part=$(mktemp -d "$2.part.XXXXXX") || exit
timeout --foreground 1200 cp -a --reflink=auto "$1/." "$part" || { rm -rf "$part"; exit 1; }
chmod 755 "$part"
# What was removed meanwhile may not all have been copied.
[ -d "$1" ] || { rm -rf "$part"; exit 64; }
sync -f "$part" 2>/dev/null
mv -nT "$part" "$2"
rm -rf "$part"
[ -d "$2" ]
)sh";

// $1 is the archive, $2 where to go on, $3 the KiB that are to be free. A part that came half
// before is written over.
constexpr char kAppendScript[] = R"sh(
export LC_ALL=C
umask 077
mkdir -p "${1%/*}" || exit
has_room "${1%/*}" "$3" || { rm -f "$1"; exit 66; }
truncate -s "$2" "$1" && cat >>"$1" || { rm -f "$1"; exit 1; }
)sh";

// $1 is the archive, $2 its SHA-256, $3 the tree, $4 how many trees stay, $5 the KiB that are to be
// free.
constexpr char kUnpackScript[] = R"sh(
export LC_ALL=C
archive=$(mktemp "$1.XXXXXX") || exit
mv -T "$1" "$archive" || { rm -f "$archive"; [ -d "$3" ] || exit 65; exit 0; }
echo "$2  $archive" | sha256sum -c --status || { rm -f "$archive"; exit 65; }
(umask 077; mkdir -p "${3%/*}") || exit
has_room "${3%/*}" "$5" || { rm -f "$archive"; exit 66; }
umask 022
part=$(mktemp -d "$3.part.XXXXXX") || exit
chmod 755 "$part"
timeout --foreground 1200 tar -xmop -f "$archive" -C "$part" || {
  rm -rf "$part" "$archive"
  exit 1
}
rm -f "$archive"
sync -f "$part" 2>/dev/null
mv -nT "$part" "$3"
rm -rf "$part"
touch "$3" || exit
cd "${3%/*}" || exit
# Under another name first: nobody copies a part of a tree.
{
  find . -mindepth 1 -maxdepth 1 ! -name '*.part.*' -mtime +7
  ls -t | grep -v '[.]part[.]' | tail -n "+$(($4 + 1))"
} | while read -r old; do
  gone=$(mktemp -d "$old.part.XXXXXX") || exit
  mv -T "$old" "$gone" 2>/dev/null
  rm -rf "$gone"
done
find . -mindepth 1 -maxdepth 1 -name '*.part.*' -mmin +60 -exec rm -rf {} +
find "${1%/*}" -type f -mtime +0 -exec rm -f {} +
exit 0
)sh";

}  // namespace

TreeName TreeName::Of(const v1::FileTree& tree) {
  return {.digest = Sha256Of(tree.SerializeAsString()),
          .occupied_bytes = Occupied(tree),
          .archive_bytes = TarBytes(tree)};
}

absl::Status HostTrees::LayOut(const LocalFiles& files, const std::string& target,
                               absl::Duration patience) {
  const absl::Duration until = hosts::SteadyNow() + patience;
  const TreeName tree = TreeName::Of(files.tree);
  absl::Status status = Copy(tree, target);
  if (!absl::IsNotFound(status)) return status;
  const WriterLock lock(mutex_);
  // Another run may have sent it meanwhile.
  status = CopyLocked(tree, target);
  if (!absl::IsNotFound(status)) return status;
  const absl::StatusOr<std::string> sha256 =
      SendLocked(files, tree, until, [](uint64_t /*bytes*/) {});
  status = sha256.ok() ? UnpackLocked(tree, *sha256) : sha256.status();
  return status.ok() ? CopyLocked(tree, target) : status;
}

absl::Status HostTrees::Copy(const TreeName& tree, const std::string& target) {
  const ReaderLock lock(mutex_);
  return CopyLocked(tree, target);
}

absl::StatusOr<std::string> HostTrees::Send(const LocalFiles& files, const TreeName& tree,
                                            absl::Duration patience, const SentListener& sent) {
  const absl::Duration until = hosts::SteadyNow() + patience;
  const WriterLock lock(mutex_);
  return SendLocked(files, tree, until, sent);
}

absl::Status HostTrees::Unpack(const TreeName& tree, const std::string& archive_sha256) {
  const WriterLock lock(mutex_);
  return UnpackLocked(tree, archive_sha256);
}

std::string HostTrees::ArchivePath(const TreeName& tree) const {
  return fmt::format("{}/incoming/{}.tar", directory_, tree.digest);
}

std::string HostTrees::TreePath(const TreeName& tree) const {
  return fmt::format("{}/trees/{}", directory_, tree.digest);
}

absl::Status HostTrees::CopyLocked(const TreeName& tree, const std::string& target) {
  return RunWithRoom(kCopyScript, {TreePath(tree), target},
                     {"a copy", tree.occupied_bytes, target});
}

absl::Status HostTrees::RunWithRoom(const char* script, std::vector<std::string> arguments,
                                    const Need& need, std::string input) {
  arguments.push_back(std::to_string((need.bytes + cache_->keep_free_bytes()) >> 10));
  const absl::Duration patience = input.empty() ? kTreePatience : kPartPatience;
  absl::Status status =
      RunScript(std::string(kHasRoom) + script, std::move(arguments), std::move(input), patience);
  if (!absl::IsOutOfRange(status)) return status;
  const absl::Status no_room =
      NoRoom(need.what, need.bytes, need.directory, cache_->keep_free_bytes());
  return absl::ResourceExhaustedError(
      fmt::format("files could not be laid out on {}, whose disk or quota is full: {}",
                  host_->Name(), ToStd(no_room.message())));
}

absl::StatusOr<std::string> HostTrees::SendLocked(const LocalFiles& files, const TreeName& tree,
                                                  absl::Duration until, const SentListener& sent) {
  const std::string archive = ArchivePath(tree);
  const absl::StatusOr<uint64_t> there = SentBytes(archive);
  if (!there.ok()) return there.status();
  sent(*there);
  // The sum of the archive and the tree that is unpacked from it.
  const uint64_t whole = tree.archive_bytes + tree.occupied_bytes;
  uint64_t at = 0;
  std::string part;
  Sha256 sha256;
  const auto send_part = [&]() -> absl::Status {
    const uint64_t begin = at - part.size();
    if (part.empty() || begin < *there) {
      part.clear();
      return absl::OkStatus();
    }
    if (hosts::SteadyNow() >= until) {
      return absl::DeadlineExceededError(fmt::format("{} of {} MiB are on {}", begin >> 20,
                                                     tree.archive_bytes >> 20, host_->Name()));
    }
    absl::Status status = RunWithRoom(
        kAppendScript, {archive, std::to_string(begin)},
        {"the job's archive with its files", whole - std::min(whole, begin), directory_},
        std::exchange(part, {}));
    if (status.ok()) sent(at);
    return status;
  };
  absl::Status status = WriteTar(files, cache_, [&](std::string_view bytes) -> absl::Status {
    sha256.Add(bytes);
    while (!bytes.empty()) {
      // The earlier part has gone with its command.
      if (part.empty()) part.reserve(std::min<uint64_t>(kPartBytes, tree.archive_bytes - at));
      const std::string_view piece = bytes.substr(0, kPartBytes - part.size());
      part.append(piece);
      at += piece.size();
      bytes.remove_prefix(piece.size());
      if (part.size() < kPartBytes) continue;
      if (absl::Status s = send_part(); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  if (status.ok()) status = send_part();
  if (!status.ok()) return status;
  return sha256.Finish();
}

absl::StatusOr<uint64_t> HostTrees::SentBytes(const std::string& archive) {
  const absl::StatusOr<hosts::FileInfo> info = host_->Stat(archive);
  if (absl::IsNotFound(info.status())) return 0;
  if (!info.ok()) return info.status();
  return info->size / kPartBytes * kPartBytes;
}

absl::Status HostTrees::UnpackLocked(const TreeName& tree, const std::string& archive_sha256) {
  return RunWithRoom(kUnpackScript,
                     {ArchivePath(tree), archive_sha256, TreePath(tree), std::to_string(kMaxTrees)},
                     {"a copy", tree.occupied_bytes, directory_});
}

absl::Status HostTrees::RunScript(const std::string& script, std::vector<std::string> arguments,
                                  std::string input, absl::Duration patience) {
  std::vector<std::string> argv = {"/bin/sh", "-c", script, "sh"};
  for (std::string& argument : arguments) argv.push_back(std::move(argument));
  const absl::StatusOr<hosts::CommandResult> result =
      host_->Run({.argv = std::move(argv), .stdin_data = std::move(input), .timeout = patience});
  if (!result.ok()) {
    return absl::UnavailableError(fmt::format("files could not be laid out on {}: {}",
                                              host_->Name(), ToStd(result.status().message())));
  }
  if (result->ok()) return absl::OkStatus();
  if (result->exit_code == kMissing) return absl::NotFoundError("the tree is not there");
  if (result->exit_code == kDamaged)
    return absl::UnavailableError("what came of the files was damaged; it is sent anew");
  if (result->exit_code == kNoRoom) return absl::OutOfRangeError("there is no room for it");
  const std::string words(ToStd(
      absl::StripTrailingAsciiWhitespace(ToAbsl(result->stderr_data).substr(0, kMaxWordsBytes))));
  // The last is tar's when a part of a file still fits.
  const bool is_full = words.find("No space left on device") != std::string::npos ||
                       words.find("Disk quota exceeded") != std::string::npos ||
                       words.find("Wrote only") != std::string::npos;
  const std::string message =
      fmt::format("files could not be laid out on {}{} ({}): {}", host_->Name(),
                  is_full ? ", whose disk or quota is full" : "", directory_, words);
  return is_full ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace muster::uploads
