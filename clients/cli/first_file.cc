#include "clients/cli/first_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "clients/cli/exit_code.h"
#include "clients/cpp/job_schema.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

constexpr std::string_view kBegin =
    R"(# A job for Muster. A line that begins with # has no effect; take the # away to use it.
# muster plan FILE says where and when it would start, muster submit --wait FILE runs it.
# All fields: docs/job-file.md; editors complete them with the output of muster schema.

name: first                  # for people; default: the first word of the command
time: 10m                    # each run is stopped after this time
resources:                   # of each node
  cpus: 1
  memory: 256Mi
  # gpus: H100:1             # TYPE:COUNT, TYPE or COUNT
# nodes: 2                   # the command starts once on each; NODE_RANK tells them apart
# labels: {team: vision}     # muster list --label team=vision
# env: {LR: "0.1"}
# workdir: .                 # this directory is uploaded, and the command starts in the copy
# depends_on: [12]           # job 12 has to succeed first
)";

constexpr std::string_view kSlurm = R"(
# cluster: NAME              # default: the cluster where it starts first; muster clusters lists them
# pool: gpu                  # the partition
# slurm:                     # with this, the job runs on Slurm clusters only
#   account: lab
#   qos: normal
# image: debian:12           # needs Pyxis on the cluster
)";

constexpr std::string_view kKubernetes = R"(
# cluster: NAME              # default: the cluster where it starts first; muster clusters lists them
# pool: team-a               # the namespace
# image: debian:12           # needed unless the operator has set a default
# kubernetes:                # with this, the job runs on Kubernetes clusters only
#   node_selector: {disk: ssd}
)";

constexpr std::string_view kMachines = R"(
# cluster: NAME              # default: the cluster where it starts first; muster clusters lists them
# image: debian:12           # needs podman, docker, enroot or apptainer on the host
)";

constexpr std::string_view kAny = R"(
# cluster: NAME              # default: the cluster where it starts first; muster clusters lists them
# pool: gpu                  # the Slurm partition, or the Kubernetes namespace
# image: debian:12           # Kubernetes needs one, unless its operator has set a default
)";

constexpr std::string_view kEnd = R"(
run: |
  #!/bin/sh
  echo "hello from $(hostname), rank ${NODE_RANK:-0}"
)";

bool WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

}  // namespace

std::string FirstJobFile(std::string_view kind) {
  const std::string_view place = kind == "slurm"        ? kSlurm
                                 : kind == "kubernetes" ? kKubernetes
                                 : kind == "machines"   ? kMachines
                                                        : kAny;
  return fmt::format("{}{}{}", kBegin, place, kEnd);
}

int Init(const Invocation& call, Terminal& terminal) {
  const std::string path = call.files.empty() ? "job.yaml" : call.files[0];
  const std::string text = FirstJobFile(call.kind);
  if (path == "-") {
    terminal.Out(text);
    return kOk;
  }
  constexpr mode_t kMode = 0666;  // less the user's mask
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (call.force ? O_TRUNC : O_EXCL);
  const int fd = open(path.c_str(), flags, kMode);
  const bool is_there = fd < 0 && errno == EEXIST;
  if (fd < 0 || !WriteWhole(fd, text) || close(fd) != 0) {
    terminal.Err(fmt::format("muster: cannot write {}: {}{}\n", contract::Quoted(path),
                             strerror(errno), is_there ? "; replace it with --force" : ""));
    return kError;
  }
  terminal.Note(fmt::format("wrote {}; run it with: muster submit --wait {}{}",
                            contract::Quoted(path), path.starts_with('-') ? "-- " : "", path));
  return kOk;
}

int Schema(Terminal& terminal) {
  terminal.Out(client::JobFileSchema());
  return kOk;
}

}  // namespace muster::cli
