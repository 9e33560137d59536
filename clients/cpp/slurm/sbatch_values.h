// Values of sbatch's options, read as sbatch reads them.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

// --time: "90" and "MM:SS" are minutes, else "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". In
// seconds; 0: none ("UNLIMITED", "INFINITE", "-1", "0"). Nothing: it cannot be read.
std::optional<uint64_t> ParseSbatchTime(std::string_view text);

// --mem: "512", "16G": whole numbers of K, M (the default), G or T, powers of 1024. In bytes, up to
// 2^50.
std::optional<uint64_t> ParseSbatchMemory(std::string_view text);

// --nodes: "2", "2-4".
struct NodeRange {
  uint32_t min = 1;
  uint32_t max = 1;
};
std::optional<NodeRange> ParseNodeRange(std::string_view text);

// --gpus and the like: "4", "h100", "h100:4". One type only.
std::optional<v1::GpuRequest> ParseSbatchGpus(std::string_view text);

// --gres: its GPUs, and the rest of the list. Nothing if it asks for GPUs of several types.
struct Gres {
  std::optional<v1::GpuRequest> gpus;
  std::string others;
};
std::optional<Gres> ParseGres(std::string_view text);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_
