// Values of sbatch's options, read as sbatch reads them.
#ifndef MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_
#define MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job_spec.pb.h"

namespace muster::client::slurm {

// Reads --time: "90" and "MM:SS" are minutes, else "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". In
// seconds; 0 if none ("UNLIMITED", "INFINITE", "-1", "0"). Nothing: it cannot be read.
std::optional<uint64_t> ParseSbatchTime(std::string_view text);

// Reads --mem: "512", "16G": whole numbers of K, M (the default), G or T, powers of 1024; further
// letters have no meaning ("16GB"). In bytes, up to 2^50.
std::optional<uint64_t> ParseSbatchMemory(std::string_view text);

// Holds --nodes: "2", "2-4", "1k-2k"; a minimum of 0 or none ("-4") is 1, a maximum of 0 or none
// ("2-") is no more than the minimum.
struct NodeRange {
  uint32_t min = 1;
  uint32_t max = 1;
};
std::optional<NodeRange> ParseNodeRange(std::string_view text);

// Counts the nodes of --nodelist in "n1,n2", "n[1-3,7]". Nothing: it cannot be read.
std::optional<uint32_t> CountHosts(std::string_view list);

// Reads --mail-type: the words that sbatch knows of a list, in capitals; others have no meaning for
// it, and "NONE" makes all of the list mean that. Nothing: it knows none of them.
std::optional<std::vector<std::string>> ParseMailTypes(std::string_view text);

// Reads --gpus and the like: "4", "h100", "h100:4"; the last count of a type that comes twice. No
// GPUs if they are of several types, which no spec can say. Nothing: it cannot be read.
std::optional<v1::GpuRequest> ParseSbatchGpus(std::string_view text);

// Holds --gres: its GPUs, likewise, and the rest of the list.
struct Gres {
  std::optional<v1::GpuRequest> gpus;
  std::string others;
};
std::optional<Gres> ParseGres(std::string_view text);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_SBATCH_VALUES_H_
